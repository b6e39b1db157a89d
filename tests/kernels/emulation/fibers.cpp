// The members of a block take turns in one thread, many times faster than
// threads. Sanitizers do not understand it.
#include "emulation/block.h"

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>

namespace abtrain::kernels::emulation {

// Switches between the members of a block and the one that runs them in turn.
class Barrier {
 public:
  explicit Barrier(int threads) : members_(static_cast<std::size_t>(threads)) {
    // Not initialized: only pages that are used take memory.
    stacks_.reset(new unsigned char[members_.size() * kStack]);
  }

  // `body` of every member up to its next barrier, until all have ended: in the
  // order of their indices or backwards, by turns. Where a barrier is missing,
  // one of the orders shows it, so both must begin some block.
  void run_block(const std::function<void(unsigned thread)>& body, bool forwards) {
    body_ = &body;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      ::getcontext(&members_[i].context);
      members_[i].context.uc_stack.ss_sp = stacks_.get() + i * kStack;
      members_[i].context.uc_stack.ss_size = kStack;
      members_[i].context.uc_link = &runner_;
      members_[i].state = State::AtBlock;
      ::makecontext(&members_[i].context, &Barrier::enter, 0);
    }
    running = this;
    while (run_warps(forwards) && run_warps(!forwards)) {
    }
  }

  void wait(bool for_block) {
    members_[now_].state = for_block ? State::AtBlock : State::AtWarp;
    ::swapcontext(&members_[now_].context, &runner_);
  }

 private:
  enum class State { AtBlock, AtWarp, HasEnded };
  struct Member {
    ucontext_t context;
    State state = State::AtBlock;
  };
  static constexpr std::size_t kStack = 64 * 1024, kWarp = 32;

  // Up to the next barrier of the block; false where all had ended.
  bool run_warps(bool forwards) {
    const std::size_t warps = (members_.size() + kWarp - 1) / kWarp;
    bool any = false;
    for (std::size_t i = 0; i < warps; ++i) {
      any |= run_warp(forwards ? i : warps - 1 - i, forwards);
    }
    return any;
  }
  bool run_warp(std::size_t warp, bool forwards) {
    const std::size_t begin = warp * kWarp, end = std::min(begin + kWarp, members_.size());
    bool any = false;
    for (State from = State::AtBlock;; from = State::AtWarp, forwards = !forwards) {
      bool again = false;
      for (std::size_t i = begin; i < end; ++i) {
        now_ = forwards ? i : begin + end - 1 - i;
        Member& member = members_[now_];
        if (member.state == from) {
          any = true;
          ::swapcontext(&runner_, &member.context);
        }
        again |= member.state == State::AtWarp;
      }
      if (!again) {
        return any;
      }
    }
  }

  static void enter() {
    Barrier& self = *running;
    (*self.body_)(static_cast<unsigned>(self.now_));
    self.members_[self.now_].state = State::HasEnded;
  }

  static inline thread_local Barrier* running = nullptr;
  const std::function<void(unsigned thread)>* body_ = nullptr;
  std::vector<Member> members_;
  std::unique_ptr<unsigned char[]> stacks_;
  std::size_t now_ = 0;
  ucontext_t runner_;
};

void BlockMember::synchronize(bool block) {
  barrier_.wait(block);
}

void run_together(
    std::int64_t blocks, int threads, std::size_t shared_bytes,
    const std::function<void(unsigned block, unsigned thread, BlockMember& self)>& body) {
  std::vector<unsigned char> shared(shared_bytes);
  Barrier barrier(threads);
  std::exception_ptr error;
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::ranges::fill(shared, 0xff);
    const auto run = [&](unsigned thread) {
      try {
        BlockMember self(barrier, thread, shared.data());
        body(static_cast<unsigned>(block), thread, self);
        self.end();
      } catch (...) {
        error = error ? error : std::current_exception();
      }
    };
    barrier.run_block(run, block % 2 == 0);
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace abtrain::kernels::emulation
