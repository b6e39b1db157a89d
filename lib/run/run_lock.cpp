#include "run/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/socket.h"

namespace abtrain::run {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kLock = "lock.json";
// The file has one length, so that a beat is one write that changes no size.
constexpr std::size_t kBytes = 1024;
constexpr int kTries = 200;
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kPatience{300};

std::timed_mutex registry_mutex;
RunLock* registered = nullptr;
std::atomic<bool> any_lost{false};

// Also counts the time for which the machine slept.
double now_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::string first_line(const std::string& path) {
  try {
    const std::string text = read_file(path);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return {};
  }
}

// Pids mean something only in one process namespace of one boot.
std::string this_machine() {
  std::error_code error;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", error);
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  return error || boot.empty() ? std::string()
                               : str(boot, " ", space.string());
}

struct ProcessState {
  bool is_zombie = false;
  std::string ticks;
};

// From /proc/PID/stat; nothing where that is hidden or gone.
std::optional<ProcessState> process_state(pid_t pid) {
  const std::string line = first_line(str("/proc/", pid, "/stat"));
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > line.size()) {
    return std::nullopt;
  }
  const auto words = split_text(line.substr(name_end + 2), ' ');
  if (words.size() < 20) {
    return std::nullopt;
  }
  // Its first thread may have ended while others still do.
  const bool last = words[17] == "0" || words[17] == "1";
  return ProcessState{(words[0] == "Z" || words[0] == "X") && last, words[19]};
}

bool lives(const LockHolder& holder) {
  if (::kill(holder.pid, 0) != 0 && errno == ESRCH) {
    return false;
  }
  const auto state = process_state(holder.pid);
  return !state ||
         (!state->is_zombie &&
          (holder.ticks.empty() || holder.ticks == state->ticks));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%FT%TZ", std::gmtime(&now));
  return text.data();
}

std::string random_id() {
  std::random_device device;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x", device(), device());
  return text.data();
}

LockHolder this_process() {
  LockHolder me;
  me.id = random_id();
  me.host = host_name();
  me.machine = this_machine();
  me.pid = ::getpid();
  if (const auto state = process_state(me.pid)) {
    me.ticks = state->ticks;
  }
  me.started = utc_now();
  return me;
}

std::string to_text(const LockHolder& holder, std::int64_t beat) {
  const nlohmann::ordered_json value = {
      {"host", holder.host},
      {"pid", holder.pid},
      {"started", holder.started},
      {"beat", beat},
      {"machine", holder.machine},
      {"ticks", holder.ticks},
      {"id", holder.id}};
  std::string text =
      value.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize(std::max(text.size(), kBytes - 1), ' ');
  return text + "\n";
}

// What a lock file says. One that a process was killed in while it wrote it has
// the number of the file for an id.
LockHolder from_text(const std::string& text, ino_t inode) {
  LockHolder holder;
  holder.id = str("inode", inode);
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_plain = [](unsigned char c) { return c >= ' ' && c < 127; };
  const auto word = [&](const char* key) {
    const std::string found =
        value.is_object() && value.contains(key) && value[key].is_string()
            ? value[key].get<std::string>()
            : std::string();
    return std::ranges::all_of(found, is_plain) ? found : std::string();
  };
  const std::string id = word("id");
  const std::int64_t pid =
      value.is_object() && value.contains("pid") &&
              value["pid"].is_number_integer()
          ? value["pid"].get<std::int64_t>()
          : 0;
  if (id.empty() || pid <= 0 || pid > std::numeric_limits<pid_t>::max() ||
      id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return holder;
  }
  holder.id = id;
  holder.host = word("host");
  holder.machine = word("machine");
  holder.pid = static_cast<pid_t>(pid);
  holder.ticks = word("ticks");
  holder.started = word("started");
  return holder;
}

struct LockFile {
  std::string path;
  std::string text;  // changes with each beat
  LockHolder holder;
};

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : file_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const {
    return file_;
  }

 private:
  int file_;
};

[[noreturn]] void fail(const std::string& path, int error) {
  throw Error(
      ErrorKind::Io,
      str("cannot lock the run folder by '",
          path,
          "': ",
          std::generic_category().message(error)));
}

// Nothing where it is not there.
std::optional<LockFile> read_lock(const std::string& path, int file) {
  if (file < 0) {
    if (errno == ENOENT || errno == ESTALE) {
      return std::nullopt;
    }
    fail(path, errno);
  }
  std::array<char, 2 * kBytes> block{};
  struct stat status {};
  const ssize_t got = ::pread(file, block.data(), block.size(), 0);
  if (got < 0 || ::fstat(file, &status) != 0) {
    if (errno == ESTALE) {
      return std::nullopt;
    }
    fail(path, errno);
  }
  const std::string text(block.data(), static_cast<std::size_t>(got));
  return LockFile{path, text, from_text(text, status.st_ino)};
}

std::optional<LockFile> read_lock(const std::string& path) {
  return read_lock(path, Descriptor(path, O_RDONLY));
}

std::string claim_on(const std::string& folder, const LockHolder& holder) {
  return str(folder, "/lock-", holder.id, ".json");
}

// Who holds the folder: the one in lock.json, or who is taking over from that
// one, or from that one again. Nothing: nobody.
std::optional<LockFile> find_holder(const std::string& folder) {
  auto last = read_lock(str(folder, "/", kLock));
  while (last) {
    auto next = read_lock(claim_on(folder, last->holder));
    if (!next) {
      break;
    }
    last = std::move(next);
  }
  return last;
}

std::string name_of(const LockHolder& holder) {
  return holder.pid == 0 ? str("a process that has not said who it is")
                         : str("process ", holder.pid, " on ", holder.host);
}

[[noreturn]] void refuse(const std::string& folder, const LockHolder& holder) {
  throw Error(
      ErrorKind::Stopped,
      str(folder,
          " is in use: ",
          name_of(holder),
          " has been training in it",
          holder.started.empty() ? "" : str(" since ", holder.started),
          ". Wait for its end",
          holder.pid == 0
              ? ""
              : str(", stop it there with `kill ", holder.pid, "` (it saves)"),
          ", or take another --name"));
}

}  // namespace

RunLock::RunLock(std::string folder, Log& log, LockTimes times)
    : folder_(std::move(folder)), times_(times), me_(this_process()) {
  made_folder_ = ::access(folder_.c_str(), F_OK) != 0;
  int tries = 0;
  do {
    if (tries > 0) {
      std::this_thread::sleep_for(kPause);
    }
    ABT_CHECK(
        ++tries <= kTries,
        Stopped,
        folder_,
        " is in use: other processes are taking and giving back its lock; try "
        "again");
    make_folders(folder_);  // another that had made it may have removed it
  } while (!try_take(log));
  // Half-made locks of processes that were killed, and claims on earlier ones.
  std::error_code ignored;
  const fs::path own = claim_on(folder_, me_);
  for (fs::directory_iterator i(folder_, ignored), end; !ignored && i != end;
       i.increment(ignored)) {
    const std::string name = i->path().filename().string();
    if (name.starts_with("lock-") && name != own.filename().string()) {
      ::unlink(i->path().c_str());
    }
  }
  held_ = true;
  fresh_until_ = now_seconds() + 3 * times_.beat;
  {
    const std::lock_guard lock(registry_mutex);
    registered = this;
    any_lost = false;
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(sleep_);
      wake_.wait_for(
          lock, stop, std::chrono::duration<double>(times_.beat), [] {
            return false;
          });
      if (stop.stop_requested()) {
        return;
      }
      lock.unlock();
      const std::lock_guard guard(mutex_);
      beat();
    }
  });
}

RunLock::~RunLock() {
  {
    const std::lock_guard lock(registry_mutex);
    if (registered == this) {
      registered = nullptr;
    }
  }
  thread_.request_stop();
  thread_.join();
  release();
}

bool RunLock::try_take(Log& log) {
  const std::string place = str(folder_, "/", kLock);
  const auto found = find_holder(folder_);
  if (!found) {
    return create(place, me_);
  }
  if (!is_dead(found->path, found->holder, log)) {
    return false;
  }
  const std::string claim = claim_on(folder_, found->holder);
  if (!create(claim, me_)) {
    return false;  // another was faster
  }
  // The claim counts only if nobody has come between.
  const auto now = find_holder(folder_);
  if (!now || now->holder.id != me_.id) {
    ::unlink(claim.c_str());
    return false;
  }
  if (::rename(claim.c_str(), place.c_str()) != 0) {
    return false;
  }
  log.info(
      folder_,
      ": ",
      name_of(found->holder),
      " has ended without giving back its lock: taken over");
  return true;
}

// True where it is. Throws where it lives, and returns false where something
// has changed meanwhile.
bool RunLock::is_dead(
    const std::string& path,
    const LockHolder& holder,
    Log& log) {
  if (holder.pid > 0 && !holder.machine.empty() &&
      holder.machine == me_.machine) {
    if (lives(holder)) {
      refuse(folder_, holder);
    }
    return true;
  }
  const auto before = read_lock(path);
  if (!before || before->holder.id != holder.id) {
    return false;
  }
  if (!std::exchange(waited_, true)) {
    log.info(
        folder_,
        ": locked by ",
        name_of(holder),
        holder.started.empty() ? "" : str(" since ", holder.started),
        ". Watching it for ",
        times_.stale,
        " s to see whether it is still alive");
  }
  // Counted by looks, so that a file system that hangs does not age it.
  const double between = times_.beat / 3;
  const auto looks = static_cast<int>(std::ceil(times_.stale / between));
  for (int look = 0; look < looks; ++look) {
    pause_for(between);
    const auto now = read_lock(path);
    if (!now || now->holder.id != holder.id) {
      return false;
    }
    if (now->text != before->text) {
      refuse(folder_, holder);
    }
  }
  return true;
}

// False where the name is there already.
bool RunLock::create(const std::string& path, const LockHolder& holder) const {
  const std::string text = to_text(holder, 0);
  const std::string beside = str(folder_, "/lock-", me_.id, ".tmp");
  const auto write_new = [&](const std::string& name) {
    const Descriptor file(name, O_WRONLY | O_CREAT | O_EXCL);
    if (file < 0 && (errno == EEXIST || errno == ENOENT)) {
      return false;
    }
    if (file < 0 || ::write(file, text.data(), text.size()) !=
                        static_cast<ssize_t>(text.size())) {
      const int error = errno;
      if (file >= 0) {
        ::unlink(name.c_str());
      }
      fail(name, error);
    }
    return true;
  };
  if (!write_new(beside)) {
    return false;
  }
  const bool linked = ::link(beside.c_str(), path.c_str()) == 0;
  const int error = errno;
  // Over NFS the answer to a call that succeeded may be lost.
  struct stat status {};
  const bool is_there = linked || (::stat(beside.c_str(), &status) == 0 &&
                                   status.st_nlink == 2);
  ::unlink(beside.c_str());
  if (is_there) {
    return true;
  }
  if (error == EEXIST || error == ENOENT) {
    return false;
  }
  return write_new(path);  // a file system without links
}

void RunLock::beat() {
  if (!held_ || !lost_.empty()) {
    return;
  }
  const auto lose = [&](const std::string& why) {
    lost_ = why;
    any_lost = true;
  };
  const std::string path = str(folder_, "/", kLock);
  try {
    const Descriptor file(path, O_RDWR);
    const auto found = read_lock(path, file);
    const auto claim = read_lock(claim_on(folder_, me_));
    if (!found) {
      lose(str(path, " is gone"));
    } else if (found->holder.id != me_.id) {
      lose(str(name_of(found->holder), " has taken over the folder"));
    } else if (claim) {
      lose(str(name_of(claim->holder), " is taking over the folder"));
    } else {
      // Into the file that was looked at, whatever the name means by now.
      const std::string text = to_text(me_, ++beats_);
      if (::pwrite(file, text.data(), text.size(), 0) !=
          static_cast<ssize_t>(text.size())) {
        fail(path, errno);
      }
      fresh_until_ = now_seconds() + 3 * times_.beat;
    }
  } catch (const Error& error) {
    // It may come right again, but not after others could think us dead.
    if (now_seconds() > fresh_until_ + times_.stale / 3) {
      lose(error.what());
    }
  }
}

void RunLock::check(bool now) {
  if (!now && !any_lost && now_seconds() < fresh_until_) {
    return;
  }
  const std::lock_guard lock(mutex_);
  beat();
  ABT_CHECK(
      lost_.empty(),
      Io,
      "this run has lost its folder ",
      folder_,
      ": ",
      lost_,
      ". It ends here and writes nothing more");
}

void RunLock::release() noexcept {
  const std::unique_lock lock(mutex_, kPatience);
  if (!lock || !std::exchange(held_, false) || !lost_.empty()) {
    return;
  }
  try {
    // Who takes over creates the same name, so only one of us goes on.
    const std::string place = str(folder_, "/", kLock);
    const std::string claim = claim_on(folder_, me_);
    LockHolder leaving = me_;
    leaving.id = random_id();
    if (create(claim, leaving)) {
      const auto found = read_lock(place);
      if (found && found->holder.id == me_.id) {
        ::unlink(place.c_str());
      }
      ::unlink(claim.c_str());
    }
    if (made_folder_) {
      ::rmdir(folder_.c_str());
    }
  } catch (...) {
    // It is found dead later.
  }
}

void check_run_lock(bool now) {
  const std::lock_guard lock(registry_mutex);
  if (registered != nullptr) {
    registered->check(now);
  }
}

void release_run_lock() noexcept {
  const std::unique_lock lock(registry_mutex, kPatience);
  if (lock && registered != nullptr) {
    registered->release();
  }
}

bool lost_run_lock() noexcept {
  return any_lost;
}

}  // namespace abtrain::run
