#include "comm/meter.h"

#include <chrono>
#include <optional>
#include <utility>

#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

using Clock = std::chrono::steady_clock;

// Runs the call and passes the seconds that it took to `add`.
template <class Call, class Add>
auto timed(const Call& call, const Add& add) {
  const auto start = Clock::now();
  auto result = call();
  add(std::chrono::duration<double>(Clock::now() - start).count());
  return result;
}

class MeteredWork : public Pending::Work {
 public:
  MeteredWork(
      Pending inner,
      std::string scope,
      Purpose purpose,
      TrafficMeter& meter,
      std::optional<device::Span> span)
      : inner_(std::move(inner)),
        scope_(std::move(scope)),
        purpose_(purpose),
        meter_(meter),
        span_(std::move(span)) {}

  void wait() override {
    if (span_) {
      inner_.wait();
      span_->end();
      meter_.count_span(scope_, purpose_, *std::exchange(span_, {}));
      return;
    }
    timed(
        [&] {
          inner_.wait();
          return 0;
        },
        [&](double seconds) {
          meter_.count_seconds(scope_, purpose_, seconds);
        });
  }

 private:
  Pending inner_;
  std::string scope_;
  Purpose purpose_;
  TrafficMeter& meter_;
  std::optional<device::Span> span_;  // on a GPU; else the host's clock is used
};

class Metered : public Communicator {
 public:
  Metered(
      std::shared_ptr<Communicator> inner,
      std::string scope,
      TrafficMeter& meter)
      : inner_(std::move(inner)), scope_(std::move(scope)), meter_(meter) {}

  int rank() const override {
    return inner_->rank();
  }
  int size() const override {
    return inner_->size();
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    auto part = timed(
        [&] { return inner_->split(color, key); },
        [&](double seconds) { meter_.count_seconds(seconds); });
    return metered(std::move(part), "group", meter_);
  }

  Pending all_reduce(at::Tensor buffer, ReduceOp op, Purpose purpose) override {
    const auto bytes =
        all_reduce_bytes(buffer.numel(), element_size(buffer), size(), rank());
    return start(purpose, bytes, buffer, [&] {
      return inner_->all_reduce(buffer, op, purpose);
    });
  }

  Pending all_gather(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose purpose) override {
    const auto bytes = all_gather_bytes(in.numel(), element_size(in), size());
    return start(purpose, bytes, in, [&] {
      return inner_->all_gather(out, in, counts, purpose);
    });
  }

  Pending reduce_scatter(
      at::Tensor out,
      at::Tensor in,
      ReduceOp op,
      Purpose purpose) override {
    const auto bytes =
        reduce_scatter_bytes(in.numel(), element_size(in), size(), rank());
    return start(purpose, bytes, in, [&] {
      return inner_->reduce_scatter(out, in, op, purpose);
    });
  }

  Pending all_to_all(
      at::Tensor out,
      at::Tensor in,
      const std::vector<std::int64_t>& counts,
      Purpose purpose) override {
    // Too few counts are rejected below, with a message.
    const auto own = static_cast<std::size_t>(rank()) < counts.size()
                         ? counts[static_cast<std::size_t>(rank())]
                         : 0;
    const auto bytes = all_to_all_bytes(in.numel(), own, element_size(in));
    return start(purpose, bytes, in, [&] {
      return inner_->all_to_all(out, in, counts, purpose);
    });
  }

  Pending broadcast(at::Tensor buffer, int root, Purpose purpose) override {
    const auto bytes = broadcast_bytes(
        buffer.numel(), element_size(buffer), size(), rank(), root);
    return start(purpose, bytes, buffer, [&] {
      return inner_->broadcast(buffer, root, purpose);
    });
  }

  void barrier() override {
    timed(
        [&] {
          inner_->barrier();
          return 0;
        },
        [&](double seconds) { meter_.count_seconds(seconds); });
  }
  void check_peers() override {
    inner_->check_peers();
  }

 private:
  static std::int64_t element_size(const at::Tensor& t) {
    return static_cast<std::int64_t>(t.element_size());
  }

  // Count after the call: a call that was rejected has sent nothing.
  template <class Call>
  Pending start(
      Purpose purpose,
      std::int64_t bytes,
      const at::Tensor& buffer,
      const Call& call) {
    std::optional<device::Span> span;
    Pending inner;
    if (buffer.is_cuda() && size() > 1) {
      span = device::Span::begin(buffer.device());
      inner = call();
    } else {
      inner = timed(call, [&](double seconds) {
        meter_.count_seconds(scope_, purpose, seconds);
      });
    }
    meter_.count(scope_, purpose, bytes);
    return Pending(std::make_unique<MeteredWork>(
        std::move(inner), scope_, purpose, meter_, std::move(span)));
  }

  std::shared_ptr<Communicator> inner_;
  std::string scope_;
  TrafficMeter& meter_;
};

}  // namespace

void TrafficMeter::count(
    const std::string& scope,
    Purpose purpose,
    std::int64_t bytes) {
  Traffic& traffic = scopes_[scope][static_cast<std::size_t>(purpose)];
  traffic.bytes += bytes;
  ++traffic.calls;
}

void TrafficMeter::count_seconds(
    const std::string& scope,
    Purpose purpose,
    double seconds) {
  scopes_[scope][static_cast<std::size_t>(purpose)].seconds += seconds;
}

void TrafficMeter::settle(bool wait) {
  while (!open_.empty()) {
    const auto seconds = open_.front().span.seconds(wait);
    if (!seconds) {
      return;
    }
    count_seconds(open_.front().scope, open_.front().purpose, *seconds);
    open_.pop_front();
  }
}

Traffic TrafficMeter::of(const std::string& scope, Purpose purpose) const {
  const auto found = scopes_.find(scope);
  return found == scopes_.end()
             ? Traffic{}
             : found->second[static_cast<std::size_t>(purpose)];
}

Traffic TrafficMeter::of(Purpose purpose) const {
  Traffic sum;
  for (const auto& [scope, purposes] : scopes_) {
    const Traffic& part = purposes[static_cast<std::size_t>(purpose)];
    sum.bytes += part.bytes;
    sum.calls += part.calls;
    sum.seconds += part.seconds;
  }
  return sum;
}

std::int64_t TrafficMeter::training_bytes() const {
  std::int64_t bytes = 0;
  for (int p = 0; p < kPurposes; ++p) {
    const auto purpose = static_cast<Purpose>(p);
    bytes += purpose == Purpose::Metrics ? 0 : of(purpose).bytes;
  }
  return bytes;
}

double TrafficMeter::seconds() const {
  double sum = other_seconds_;
  for (int p = 0; p < kPurposes; ++p) {
    sum += of(static_cast<Purpose>(p)).seconds;
  }
  return sum;
}

std::unique_ptr<Communicator>
metered(Communicator& inner, std::string scope, TrafficMeter& meter) {
  return std::make_unique<Metered>(
      std::shared_ptr<Communicator>(&inner, [](Communicator*) {}),
      std::move(scope),
      meter);
}

std::unique_ptr<Communicator> metered(
    std::unique_ptr<Communicator> inner,
    std::string scope,
    TrafficMeter& meter) {
  return std::make_unique<Metered>(std::move(inner), std::move(scope), meter);
}

}  // namespace abtrain::comm
