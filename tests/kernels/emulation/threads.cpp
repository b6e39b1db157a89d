// Every member of a block is a thread, so that ThreadSanitizer sees races.
#include "emulation/block.h"

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace abtrain::kernels::emulation {

// A thread that has ended counts as one that is there, as on a GPU.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads), running_(threads) {}

  void wait() {
    std::unique_lock lock(mutex_);
    const std::int64_t round = round_;
    ++waiting_;
    open_if_all();
    opened_.wait(lock, [&] { return round_ != round; });
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --running_;
    open_if_all();
  }
  // For the next block; no thread is inside.
  void reset() {
    const std::lock_guard lock(mutex_);
    running_ = threads_;
  }

 private:
  void open_if_all() {
    if (waiting_ > 0 && waiting_ == running_) {
      waiting_ = 0;
      ++round_;
      opened_.notify_all();
    }
  }

  const int threads_;
  int running_;
  int waiting_ = 0;
  std::int64_t round_ = 0;
  std::mutex mutex_;
  std::condition_variable opened_;
};

// Of all threads of the block, and of those of each warp.
class Barrier {
 public:
  explicit Barrier(int threads) : block_(threads) {
    for (int begin = 0; begin < threads; begin += kWarp) {
      warps_.emplace_back(std::min(kWarp, threads - begin));
    }
  }
  Meeting& of_block() {
    return block_;
  }
  Meeting& of_warp(unsigned thread) {
    return warps_[thread / kWarp];
  }
  void reset() {
    block_.reset();
    std::ranges::for_each(warps_, &Meeting::reset);
  }

 private:
  static constexpr int kWarp = 32;
  Meeting block_;
  std::deque<Meeting> warps_;
};

void BlockMember::synchronize(bool block) {
  (block ? barrier_.of_block() : barrier_.of_warp(thread_)).wait();
}

void run_together(
    std::int64_t blocks, int threads, std::size_t shared_bytes,
    const std::function<void(unsigned block, unsigned thread, BlockMember& self)>& body) {
  // No larger than it says, so that a sanitizer sees the first byte behind it.
  const std::unique_ptr<unsigned char[]> shared(new unsigned char[shared_bytes]);
  const auto fill = [&] { std::fill_n(shared.get(), shared_bytes, 0xff); };
  fill();
  Barrier barrier(threads);
  std::barrier block_end(threads, [&]() noexcept {
    barrier.reset();
    fill();
  });
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&](unsigned thread) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      try {
        BlockMember self(barrier, thread, shared.get());
        body(static_cast<unsigned>(block), thread, self);
        self.end();
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = error ? error : std::current_exception();
      }
      barrier.of_warp(thread).leave();
      barrier.of_block().leave();
      block_end.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> team;
    for (int thread = 0; thread < threads; ++thread) {
      team.emplace_back(work, static_cast<unsigned>(thread));
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace abtrain::kernels::emulation
