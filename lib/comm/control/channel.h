// Control among processes: TCP connections of all workers to worker 0, served
// by a thread of each. They also carry what went wrong, and a connection that
// ends tells of a dead process within moments.
//
// A stop: whoever notices a signal asks worker 0, which asks all how many steps
// they have begun. From their answer on workers begin no further step until
// worker 0 has told the largest number: the step at which all stop. Answers
// come from the threads, so nobody has to finish a step for it.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/control/control.h"
#include "comm/control/secret.h"

namespace abtrain::comm {

struct ControlOptions {
  int rank = 0;
  int size = 1;
  // Gives worker 0's bytes to all; collective.
  std::function<void(void* data, std::size_t bytes)> share;
  std::function<bool()> wanted;  // a stop: asked at every step
  // Called by the thread, once, when another worker has failed or is gone, with
  // the cause: an Error whose message names the worker.
  std::function<void(std::exception_ptr)> on_failure;
  double connect_timeout = 60;  // seconds
  // A connection whose other end takes no bytes for so long counts as lost.
  double send_timeout = 30;
  Secret secret = {};        // authenticates the connections
  std::string address = {};  // where worker 0 listens; empty: everywhere
};

class ControlChannel : public Control {
 public:
  // Collective. Throws what wire::meet() throws.
  explicit ControlChannel(ControlOptions options);
  ~ControlChannel() override;

  bool stop_before(int worker, std::int64_t t) override;

  // Collective. Returns where all came without an error. Else the lowest worker
  // that had one throws it again, and the others an error of the same kind that
  // names it. `text`, of one line, is for all to know: returns those of all
  // workers, in rank order.
  std::vector<std::string> agree(
      std::exception_ptr mine,
      const std::string& text = "");
  // Gives worker 0's bytes to all: of the same number everywhere, at most
  // wire::kLongestText. Collective; worker 0 does not wait for the others.
  void share(void* data, std::size_t bytes);
  // Tells the others, unless the error is one that they told. That they end
  // then is no failure any more.
  void fail(const std::exception_ptr& cause) noexcept;
  // What another worker told or left; null while all is well.
  std::exception_ptr cause() const;
  // Collective end: from now on a connection that ends is no failure.
  void close() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abtrain::comm
