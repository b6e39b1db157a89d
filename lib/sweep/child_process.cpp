#include "sweep/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "device/devices.h"

namespace abtrain::sweep {

namespace {

constexpr int kCannotStart = 127;

// Runs between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void become(char* const* arguments, int log, const cpu_set_t* cores, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {  // the parent died before prctl()
    ::_exit(kCannotStart);
  }
  if (cores != nullptr) {
    ::sched_setaffinity(0, sizeof(*cores), cores);
  }
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::execv(arguments[0], arguments);
  ::_exit(kCannotStart);
}

}  // namespace

std::unique_ptr<ChildProcess> ChildProcess::start(
    const std::vector<std::string>& command, const std::string& log,
    const std::vector<int>& cores) {
  const Descriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  ABT_CHECK(file.is_open(), Io, "cannot write '{}': {}", log, strerror(errno));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return nullptr;
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(core, &set);
  }
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id == 0) {
    become(arguments.data(), file.get(), cores.empty() ? nullptr : &set, parent);
  }
  ABT_CHECK(id > 0, Io, "cannot start '{}': {}", command.front(), strerror(errno));
  ::setpgid(id, id);  // parent and child both set it: no race
  return std::unique_ptr<ChildProcess>(new ChildProcess(id));
}

ChildProcess::~ChildProcess() {
  if (!code_) {
    ::kill(-id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
}

std::optional<int> ChildProcess::ended() {
  int status = 0;
  if (!code_ && ::waitpid(id_, &status, WNOHANG) == id_) {
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return code_;
}

void ChildProcess::send(int signal) const {
  if (!code_) {
    ::kill(-id_, signal);
  }
}

std::vector<int> cores_of_slot(std::size_t slot, std::size_t slots) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (slots <= 1 || ::sched_getaffinity(0, sizeof(mine), &mine) != 0) {
    return {};
  }
  std::vector<int> all;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mine)) {
      all.push_back(core);
    }
  }
  // A CPU quota may allow less than all of these cores.
  const auto usable = static_cast<std::size_t>(device::cpu_cores());
  const std::size_t share = std::max<std::size_t>(1, std::min(usable, all.size()) / slots);
  std::vector<int> own;
  for (std::size_t i = 0; i < share; ++i) {
    own.push_back(all[(slot * share + i) % all.size()]);
  }
  return own;
}

}  // namespace abtrain::sweep
