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

  // `body` of every member up to its next barrier, until all have ended.
  void run_block(const std::function<void(unsigned thread)>& body) {
    body_ = &body;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      ::getcontext(&members_[i].context);
      members_[i].context.uc_stack.ss_sp = stacks_.get() + i * kStack;
      members_[i].context.uc_stack.ss_size = kStack;
      members_[i].context.uc_link = &runner_;
      members_[i].has_ended = false;
      ::makecontext(&members_[i].context, &Barrier::enter, 0);
    }
    running = this;
    // Forwards and backwards by turns: where a barrier is missing, one of the
    // orders shows it.
    for (bool all_ended = false, forwards = true; !all_ended; forwards = !forwards) {
      all_ended = true;
      for (std::size_t i = 0; i < members_.size(); ++i) {
        now_ = forwards ? i : members_.size() - 1 - i;
        if (!members_[now_].has_ended) {
          ::swapcontext(&runner_, &members_[now_].context);
          all_ended = all_ended && members_[now_].has_ended;
        }
      }
    }
  }

  void wait() {
    ::swapcontext(&members_[now_].context, &runner_);
  }

 private:
  struct Member {
    ucontext_t context;
    bool has_ended = false;
  };
  static constexpr std::size_t kStack = 64 * 1024;

  static void enter() {
    Barrier& self = *running;
    (*self.body_)(static_cast<unsigned>(self.now_));
    self.members_[self.now_].has_ended = true;
  }

  static inline thread_local Barrier* running = nullptr;
  const std::function<void(unsigned thread)>* body_ = nullptr;
  std::vector<Member> members_;
  std::unique_ptr<unsigned char[]> stacks_;
  std::size_t now_ = 0;
  ucontext_t runner_;
};

void BlockMember::synchronize() {
  barrier_.wait();
}

void run_together(
    std::int64_t blocks, int threads, std::size_t shared_bytes,
    const std::function<void(unsigned block, unsigned thread, BlockMember& self)>& body) {
  std::vector<unsigned char> shared(shared_bytes);
  Barrier barrier(threads);
  std::exception_ptr error;
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::ranges::fill(shared, 0xff);
    barrier.run_block([&](unsigned thread) {
      try {
        BlockMember self(barrier, shared.data());
        body(static_cast<unsigned>(block), thread, self);
        self.end();
      } catch (...) {
        error = error ? error : std::current_exception();
      }
    });
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace abtrain::kernels::emulation
