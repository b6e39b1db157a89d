// Control messages (control.h) among workers that are processes. Each has a TCP connection to
// worker 0, the hub; one thread per process serves its connections. They also carry errors, and a
// connection that ends reveals a dead process within moments.
//
// How a stop works: a worker that notices a signal asks worker 0, which asks all workers how many
// steps they have begun. A worker that has answered begins no further step until worker 0 has
// announced the largest of these numbers, the step at which all stop. The channels' threads send
// the answers, so no step has to finish first.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "comm/control/control.h"
#include "comm/control/meeting.h"
#include "comm/control/wire.h"
#include "comm/failure.h"

namespace abtrain::comm {

struct ControlOptions : wire::MeetOptions {
  std::function<bool()> wanted;  // returns true if the run should stop; called at every step
  // The channel's thread calls this once, when another worker has failed or is lost. The message of
  // `cause` names that worker. `gone` is its rank if its connection to this process has ended,
  // otherwise -1.
  std::function<void(std::exception_ptr cause, int gone)> on_failure;
  // A connection whose other end takes no bytes for this many seconds counts as lost.
  double send_timeout = 30;
  // Seconds that agree() and share() wait for the others.
  double patience = 300;
  // Called when agree() or share() has waited for 2 s, with the names of the missing workers, and
  // at the end of that wait with "".
  std::function<void(const std::string& names)> waiting = [](const std::string&) {};
};

class ControlChannel : public Control {
 public:
  // Collective. Throws the errors of wire::meet().
  explicit ControlChannel(ControlOptions options);
  ~ControlChannel() override;

  bool stop_before(int worker, std::int64_t t) override;
  void post(int worker, std::int64_t steps, const Spent& spent) override;

  // Collective. Returns if no worker has an error (`mine`). Otherwise the lowest-ranked worker with
  // an error rethrows it, and the others throw an error of the same kind that names that worker.
  // Every worker passes a `text` without 0 bytes; the result holds all texts in rank order. Throws
  // TimedOut, which names the missing workers.
  std::vector<std::string> agree(std::exception_ptr mine, const std::string& text = "");
  // Gives worker 0's bytes to all workers. All pass the same number of bytes, at most
  // wire::kMaxTextLength. Collective; worker 0 does not wait for the others.
  void share(void* data, std::size_t bytes);
  void share(int /*worker*/, void* data, std::size_t bytes, const std::function<void()>&) override {
    share(data, bytes);
  }
  // Tells the other workers about an error, unless one of them reported it. From then on, the end
  // of their connections does not count as a failure.
  void fail(const std::exception_ptr& cause) noexcept;
  // The first error that another worker reported, or one that says that a worker is lost; null if
  // there is none.
  std::exception_ptr cause() const {
    return failure_.cause();
  }
  // The worker whose connection to this process ended and so caused the failure; -1 if none did.
  // Known as soon as a call has thrown the failure.
  int gone() const {
    return gone_;
  }
  // Ends the channel. Collective. From now on, the end of a connection does not count as a failure.
  void close() noexcept;
  // After close(): waits until all workers have called close(), so that they end at the same time.
  void wait_for_all() noexcept;
  void set_patience(double seconds) {
    patience_ = seconds;
  }

 private:
  bool is_hub() const {
    return options_.rank == 0;
  }
  std::string name_of(int rank) const {
    const std::string& host = met_.hosts[static_cast<std::size_t>(rank)];
    return formatted("worker {}{}{}", rank, host.empty() ? "" : " on ", host);
  }
  void wait_for_others(std::unique_lock<std::mutex>& lock, const std::function<bool()>& came);
  std::vector<int> missing();
  void serve();
  bool is_sound(const wire::Message& message, std::size_t connection) const;
  void handle(const wire::Message& message);         // a message from worker 0
  void handle_at_hub(const wire::Message& message);  // on worker 0: a message from any worker
  void lost(std::size_t connection, const char* why);
  void send(std::size_t connection, const wire::Message& message);
  void to_hub(const wire::Message& message);
  void to_others(const wire::Message& message);
  void to_all(const wire::Message& message);
  void take_failure(const wire::Message& message, bool is_gone);

  ControlOptions options_;
  wire::Connections met_;
  std::vector<wire::Inbox> inboxes_;  // one per socket in met_; used by the thread only

  std::atomic<double> patience_;
  std::mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t begun_ = 0;       // steps begun
  bool asked_for_stop_ = false;  // this worker has asked worker 0
  bool holding_ = false;         // has answered Ask and waits for StopAt
  std::int64_t stop_at_ = -1;
  std::optional<wire::Message> verdict_;  // not yet taken by agree()
  std::deque<std::string> shared_;        // not yet taken by share()
  std::vector<bool> left_;                // connections that said Bye or have ended
  std::atomic<bool> closing_ = false;
  Failure failure_;
  std::atomic<int> gone_ = -1;

  // For worker 0 only, guarded by hub_mutex_.
  std::recursive_mutex hub_mutex_;
  bool asked_ = false;
  bool decided_ = false;
  std::vector<std::optional<std::int64_t>> begun_of_;
  std::vector<std::optional<wire::Message>> votes_;

  std::jthread thread_;
};

}  // namespace abtrain::comm
