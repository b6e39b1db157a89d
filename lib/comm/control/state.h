// The state of a control channel, and its thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "comm/control/channel.h"
#include "comm/control/meeting.h"
#include "comm/control/wire.h"
#include "comm/failure.h"

namespace abtrain::comm {

// The error that an exit code stands for; 1, an internal error, has no kind.
std::exception_ptr error_of(std::int64_t code, const std::string& text);

struct ControlChannel::State {
  explicit State(ControlOptions given);
  ~State();

  bool is_hub() const {
    return options.rank == 0;
  }
  std::string name_of(int rank) const {
    const std::string& host = met.hosts[static_cast<std::size_t>(rank)];
    return formatted("worker {}{}{}", rank, host.empty() ? "" : " on ", host);
  }
  void serve();
  bool is_sound(const wire::Message& message, std::size_t connection) const;
  void handle(const wire::Message& message);         // from worker 0 or itself
  void handle_at_hub(const wire::Message& message);  // hub: from any worker
  void lost(std::size_t connection, const char* why);
  void post(std::size_t connection, const wire::Message& message);
  void to_hub(const wire::Message& message);
  void to_others(const wire::Message& message);
  void to_all(const wire::Message& message);
  void take_failure(const wire::Message& message, bool is_gone);

  ControlOptions options;
  wire::Connections met;
  std::vector<wire::Inbox> inboxes;  // the thread's own, one per met.sockets

  std::mutex send_mutex;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::int64_t begun = 0;
  bool asked_for_stop = false;  // this worker has asked worker 0
  bool holding = false;         // has answered Ask, waits for StopAt
  std::int64_t stop_at = -1;
  std::int64_t verdicts = 0;
  wire::Message verdict{wire::Type::Verdict, 0};
  std::deque<std::string> shared;  // not yet taken by share()
  std::vector<bool> left;          // connections that said Bye or are gone
  bool closing = false;
  Failure failure;

  // For worker 0 only, guarded by hub_mutex.
  std::recursive_mutex hub_mutex;
  bool asked = false;
  bool decided = false;
  std::vector<std::optional<std::int64_t>> begun_of;
  std::vector<std::optional<wire::Message>> votes;
  SpentBoard board;

  std::jthread thread;
};

}  // namespace abtrain::comm
