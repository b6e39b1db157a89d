#include "comm/meter.h"

#include <utility>

#include "base/clock.h"
#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

std::int64_t sent_bytes(const Call& call, int n, int rank) {
  const std::int64_t numel = call.source().numel();
  const auto width = static_cast<std::int64_t>(call.source().element_size());
  switch (call.kind) {
    case Call::Kind::AllReduce:
      return all_reduce_bytes(numel, width, n, rank);
    case Call::Kind::AllGather:
      return all_gather_bytes(numel, width, n);
    case Call::Kind::ReduceScatter:
      return reduce_scatter_bytes(numel, width, n, rank);
    case Call::Kind::AllToAll:
      return all_to_all_bytes(numel, call.counts[static_cast<std::size_t>(rank)], width);
    case Call::Kind::Broadcast:
      return broadcast_bytes(numel, width, n, rank, call.root);
    default:
      return 0;
  }
}

class Metered : public Communicator {
 public:
  Metered(std::shared_ptr<Communicator> inner, std::string scope, TrafficMeter& meter)
      : Communicator(inner->rank(), inner->size()),
        inner_(std::move(inner)),
        scope_(std::move(scope)),
        meter_(meter) {}

  std::unique_ptr<Communicator> split(int color) override {
    const Stopwatch watch;
    auto part = inner_->split(color);
    meter_.count_seconds(watch.seconds());
    return metered(std::move(part), "group", meter_);
  }

  Pending start(Call call) override {
    const Purpose purpose = call.purpose;
    const std::int64_t bytes = sent_bytes(call, size(), rank());
    std::shared_ptr<device::Span> span;  // for CUDA tensors; otherwise the host's clock is used
    if (call.out.is_cuda() && size() > 1) {
      span = std::make_shared<device::Span>(call.out.device());
    }
    const Stopwatch watch;
    const auto inner = std::make_shared<Pending>(inner_->start(std::move(call)));
    if (!span) {
      meter_.count_seconds(scope_, purpose, watch.seconds());
    }
    // Counted only now, because a call that fails has sent nothing.
    meter_.count(scope_, purpose, bytes);
    return Pending(
        [=, scope = scope_, &meter = meter_] {
          const Stopwatch waiting;
          inner->wait();
          if (span) {
            span->end();
            meter.count_span(scope, purpose, std::move(*span));
          } else {
            meter.count_seconds(scope, purpose, waiting.seconds());
          }
        },
        nullptr);  // the destructor of `inner` waits
  }

  void barrier() override {
    const Stopwatch watch;
    inner_->barrier();
    meter_.count_seconds(watch.seconds());
  }
  void check_peers() override {
    inner_->check_peers();
  }

 private:
  std::shared_ptr<Communicator> inner_;
  std::string scope_;
  TrafficMeter& meter_;
};

}  // namespace

void TrafficMeter::count(const std::string& scope, Purpose purpose, std::int64_t bytes) {
  Traffic& traffic = scopes_[scope][static_cast<std::size_t>(purpose)];
  traffic.bytes += bytes;
  ++traffic.calls;
}

void TrafficMeter::count_seconds(const std::string& scope, Purpose purpose, double seconds) {
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
  return found == scopes_.end() ? Traffic{} : found->second[static_cast<std::size_t>(purpose)];
}

Traffic TrafficMeter::of(Purpose purpose) const {
  Traffic sum;
  for (const auto& [scope, purposes] : scopes_) {
    sum += purposes[static_cast<std::size_t>(purpose)];
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

std::unique_ptr<Communicator> metered(Communicator& inner, std::string scope, TrafficMeter& meter) {
  return std::make_unique<Metered>(
      std::shared_ptr<Communicator>(&inner, [](Communicator*) {}), std::move(scope), meter);
}

std::unique_ptr<Communicator> metered(
    std::unique_ptr<Communicator> inner, std::string scope, TrafficMeter& meter) {
  return std::make_unique<Metered>(std::move(inner), std::move(scope), meter);
}

}  // namespace abtrain::comm
