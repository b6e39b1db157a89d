#include "comm/local/group.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "comm/traffic.h"

namespace abtrain::comm {

namespace {

using Kind = Call::Kind;

// Up to this many bytes over all members, one member does the work alone: a
// second meeting would cost more.
constexpr std::int64_t kAloneBytes = 256 << 10;

// Copies a piece between flat buffers; on the CPU without making views of them,
// which matters when many members exchange little.
void copy(const at::Tensor& to, const at::Tensor& from, const Piece& piece) {
  const auto size = static_cast<std::int64_t>(to.element_size());
  const auto* begin = static_cast<const char*>(from.const_data_ptr()) + piece.source * size;
  auto* place = static_cast<char*>(to.mutable_data_ptr()) + piece.target * size;
  if (piece.count == 0 || begin == place) {
    return;
  }
  if (to.is_cuda()) {
    const at::NoGradGuard no_grad;
    to.narrow(0, piece.target, piece.count).copy_(from.narrow(0, piece.source, piece.count));
  } else {
    std::memmove(place, begin, static_cast<std::size_t>(piece.count * size));
  }
}

bool alike(const Call& a, const Call& b) {
  const auto same_buffer = [](const at::Tensor& x, const at::Tensor& y) {
    return x.defined() == y.defined() &&
           (!x.defined() || (x.scalar_type() == y.scalar_type() && x.device() == y.device()));
  };
  const auto numel = [](const Call& call) {
    const at::Tensor& t = call.common_buffer();
    return t.defined() ? t.numel() : 0;
  };
  return a.kind == b.kind && a.op == b.op && a.root == b.root && a.counts == b.counts &&
         same_buffer(a.out, b.out) && numel(a) == numel(b);
}

bool is_large(const Call& call, int members) {
  return call.out.defined() &&
         static_cast<std::int64_t>(std::max(call.source().nbytes(), call.out.nbytes())) * members >
             kAloneBytes;
}

std::vector<at::Tensor> buffers_of(const LocalOperation& operation) {
  std::vector<at::Tensor> buffers;
  for (const Call& call : operation.calls) {
    buffers.push_back(call.common_buffer());
  }
  return buffers;
}

}  // namespace

LocalGroup::LocalGroup(std::shared_ptr<LocalWorld> world, std::vector<int> workers)
    : world_(std::move(world)), workers_(std::move(workers)) {}

void LocalGroup::wake() {
  const Lock lock(mutex_);
  changed_.notify_all();
}

std::shared_ptr<LocalOperation> LocalGroup::post(int rank, std::uint64_t sequence, Call call) {
  std::shared_ptr<LocalOperation> operation;
  {
    const Lock lock(mutex_);
    world_->throw_if_happened();
    auto& entry = open_[sequence];
    if (!entry) {
      entry = std::make_shared<LocalOperation>(sequence, size());
    }
    operation = entry;
    operation->calls[rank] = std::move(call);
    operation->came[rank] = true;
    if (std::ranges::count(operation->came, false) > 0) {
      return operation;
    }
    open_.erase(sequence);
    ++operation->at_work;
  }
  // The last to post checks all calls; the others wait for `posted`.
  try {
    begin(*operation);
  } catch (...) {
    world_->abort(std::current_exception());
    const Lock lock(mutex_);
    --operation->at_work;
    changed_.notify_all();
    throw;
  }
  return operation;
}

void LocalGroup::begin(LocalOperation& operation) {
  std::string mismatch = compare(operation);
  const Call& first = operation.calls.front();
  const bool on_cuda = first.out.defined() && first.out.is_cuda();
  const bool alone = mismatch.empty() && (on_cuda || size() == 1 || !is_large(first, size()));
  if (alone) {
    do_all(operation);
  }
  if (!mismatch.empty()) {
    world_->abort(std::make_exception_ptr(Error(ErrorKind::Config, mismatch)));
  }
  const Lock lock(mutex_);
  operation.mismatch = std::move(mismatch);
  operation.done = alone;
  operation.posted = true;
  --operation.at_work;
  changed_.notify_all();
}

void LocalGroup::complete(LocalOperation& operation, int rank) {
  Lock lock(mutex_);
  meet(lock, operation, operation.posted, operation.came);
  if (!operation.done) {
    ++operation.at_work;
    lock.unlock();
    // The call is checked and large, so this share is CPU work that cannot
    // throw.
    do_share(operation, rank);
    lock.lock();
    --operation.at_work;
    operation.ended[rank] = true;
    operation.done = std::ranges::count(operation.ended, false) == 0;
    if (operation.done || world_->happened()) {
      changed_.notify_all();
    }
    meet(lock, operation, operation.done, operation.ended);
  }
  // Nobody reads the call any more, so its owner drops its tensors.
  const Call mine = std::move(operation.calls[rank]);
  lock.unlock();
  operation.result.order_after();
}

// Returns, with the lock held, when the flag is set; throws if the world has failed before
// the operation was done.
void LocalGroup::meet(
    Lock& lock, const LocalOperation& operation, const std::atomic<bool>& flag,
    const std::vector<bool>& members) {
  // A longer wait would overflow the clock.
  const double seconds = std::min(world_->timeout, 1e8);
  const auto came = [&] { return flag.load() || world_->happened(); };
  if (!changed_.wait_for(lock, std::chrono::duration<double>(seconds), came)) {
    const auto first = std::ranges::find(operation.came, true) - operation.came.begin();
    std::vector<int> missing;
    for (int i = 0; i < size(); ++i) {
      if (!members[i]) {
        missing.push_back(workers_[i]);
      }
    }
    const TimedOut late(
        describe(operation.calls[static_cast<std::size_t>(first)]), seconds, missing);
    lock.unlock();
    world_->abort(std::make_exception_ptr(late));
    lock.lock();
  }
  if (!operation.done && world_->happened()) {
    // The caller may free its buffer once this has thrown, so members still
    // working on it finish first.
    changed_.wait(lock, [&] { return operation.at_work == 0; });
    ABT_CHECK(operation.mismatch.empty(), Config, "{}", operation.mismatch);
    world_->throw_if_happened();
  }
}

std::string LocalGroup::compare(const LocalOperation& operation) const {
  const Call& first = operation.calls.front();
  for (int i = 1; i < size(); ++i) {
    if (!alike(first, operation.calls[i])) {
      return formatted(
          "workers called different collectives: worker {} {}; worker {} {}", workers_[0],
          describe(first), workers_[i], describe(operation.calls[i]));
    }
  }
  return {};
}

void LocalGroup::do_all(LocalOperation& operation) {
  const Call& first = operation.calls.front();
  for (const Call& call : operation.calls) {
    call.ready.order_after();
  }
  if (first.kind == Kind::Split) {
    do_split(operation);
  } else if (first.kind == Kind::AllReduce && size() == 1) {
    // The buffer is its own sum.
  } else if (first.kind == Kind::AllReduce) {
    const auto buffers = buffers_of(operation);
    ops::reduce_buffers(buffers, 0, first.out.numel(), buffers, 0, first.op);
  } else {
    for (int i = 0; i < size(); ++i) {
      do_share(operation, i);
    }
  }
  if (first.out.defined()) {
    operation.result = device::Event::record(first.out.device());
  }
}

void LocalGroup::do_share(const LocalOperation& operation, int rank) const {
  const Call& mine = operation.calls[rank];
  if (mine.reduces()) {
    const auto buffers = buffers_of(operation);
    const auto numel = mine.common_buffer().numel();
    const auto begin = chunk_begin(numel, size(), rank);
    const auto count = chunk_size(numel, size(), rank);
    if (mine.kind == Kind::AllReduce) {
      ops::reduce_buffers(buffers, begin, count, buffers, begin, mine.op);
    } else {
      ops::reduce_buffers(buffers, begin, count, {mine.out}, 0, mine.op);
    }
  } else if (mine.out.defined()) {
    for (int i = 0; i < size(); ++i) {
      copy(mine.out, operation.calls[i].source(), piece_of(mine, i, rank));
    }
  }
}

void LocalGroup::do_split(LocalOperation& operation) {
  std::map<int, std::vector<int>> colors;
  for (int i = 0; i < size(); ++i) {
    colors[operation.calls[i].color].push_back(i);
  }
  operation.parts.resize(operation.calls.size());
  for (const auto& [color, ranks] : colors) {
    std::vector<int> workers;
    for (const int rank : ranks) {
      workers.push_back(workers_[rank]);
    }
    const auto group = world_->make_group(workers);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      operation.parts[ranks[i]] = {group, static_cast<int>(i)};
    }
  }
}

}  // namespace abtrain::comm
