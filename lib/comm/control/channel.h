// Control among processes, over TCP connections from all workers to worker 0
// that one thread in each process serves. They also carry errors, and a
// connection that ends reveals a dead process within moments.
//
// How a stop works: whoever notices a signal asks worker 0, which asks all
// workers how many steps they have begun. A worker that has answered begins no
// further step until worker 0 has announced the largest of these numbers: the
// step at which all stop. The threads send the answers, so no step has to
// finish first.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/control/control.h"
#include "comm/control/meeting.h"

namespace abtrain::comm {

struct ControlOptions : wire::MeetOptions {
  std::function<bool()> wanted;  // whether to stop; called at every step
  // Called once, by the channel's thread, when another worker has failed or is
  // gone, with the cause: an error whose message names the worker. `gone`: the
  // worker that cannot report it, or -1.
  std::function<void(std::exception_ptr cause, int gone)> on_failure;
  // A connection whose other end takes no bytes for this many seconds counts as
  // lost.
  double send_timeout = 30;
};

class ControlChannel : public Control {
 public:
  // Collective. Throws what wire::meet() throws.
  explicit ControlChannel(ControlOptions options);
  ~ControlChannel() override;

  bool stop_before(int worker, std::int64_t t) override;
  void post(int worker, std::int64_t steps, const Spent& spent) override;
  AllSpent spent() override;

  // Collective. Returns if all workers came without an error. Otherwise the
  // lowest worker that had one rethrows it, and the others throw an error of
  // the same kind that names that worker. `text` is one line for all to know:
  // the result holds every worker's, in rank order.
  std::vector<std::string> agree(std::exception_ptr mine, const std::string& text = "");
  // Gives worker 0's bytes to all: the same number of bytes everywhere, at most
  // wire::kMaxTextLength. Collective; worker 0 does not wait for the others.
  void share(void* data, std::size_t bytes);
  // Tells the others about an error, unless it is one that they reported. From
  // then on it is no failure when their connections end.
  void fail(const std::exception_ptr& cause) noexcept;
  // The error that another worker reported, or its loss; null while all is
  // well.
  std::exception_ptr cause() const;
  // Ends the channel. Collective: from now on a connection that ends is no
  // failure.
  void close() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abtrain::comm
