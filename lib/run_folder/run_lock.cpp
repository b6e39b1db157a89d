#include "run_folder/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/socket.h"
#include "base/text.h"

namespace abtrain::run_folder {

namespace {

constexpr std::chrono::milliseconds kPause{50};
constexpr std::chrono::milliseconds kPatience{300};

// Timed, because a release must not wait for a check that hangs on a network disk.
std::timed_mutex registry_mutex;
RunLock* registered = nullptr;
std::atomic<bool> lost{false};

std::string lock_in(const std::string& folder) {
  return folder + "/lock.json";
}

std::string message_of(int error) {
  return std::generic_category().message(error);
}

// Unless `ok`, throws Error(Io) with the reason in errno.
void check_done(bool ok, const std::string& path) {
  ABT_CHECK(ok, Io, "cannot lock the run folder with '{}': {}", path, message_of(errno));
}

// The result is not open if the file or its folder does not exist.
Descriptor open_lock(const std::string& path, int flags) {
  Descriptor file(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  check_done(file.is_open() || errno == ENOENT, path);
  return file;
}

std::string text_of(const Descriptor& file, const std::string& path) {
  std::array<char, 4096> block{};
  const auto got =
      uninterrupted([&] { return ::pread(file.get(), block.data(), block.size(), 0); });
  check_done(got >= 0, path);
  return {block.data(), static_cast<std::size_t>(got)};
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string holder_in(const std::string& text) {
  JsonProblem ignored;
  const nlohmann::ordered_json value = parse_json(text, ignored);
  const auto pid = value_in<std::int64_t>(value, "pid");
  return pid <= 0 ? "another process"
                  : printable(formatted(
                        "process {} on {}, since {}", pid, value_in<std::string>(value, "host"),
                        value_in<std::string>(value, "started")));
}

}  // namespace

RunLock::RunLock(std::string folder, Log& log, double patience)
    : folder_(std::move(folder)), path_(lock_in(folder_)), made_folder_(!is_there(folder_)) {
  const nlohmann::ordered_json about = {
      {"host", host_name()}, {"pid", ::getpid()}, {"started", utc_now()}};
  text_ = about.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (const Stopwatch watch; !try_take(log); std::this_thread::sleep_for(kPause)) {
    if (watch.seconds() >= patience) {
      const auto seen = look_at_lock(folder_);
      throw Error(
          ErrorKind::Stopped,
          formatted(
              "{} is in use by {}: wait for it to end, `kill` it there (it saves a checkpoint "
              "first), or choose another --name",
              folder_, seen ? seen->holder : "another process"));
    }
  }
  const std::lock_guard lock(registry_mutex);
  registered = this;
  lost = false;
}

RunLock::~RunLock() {
  {
    const std::lock_guard lock(registry_mutex);
    if (registered == this) {
      registered = nullptr;
    }
  }
  release();
}

bool RunLock::try_take(Log& log) {
  make_folders(folder_);
  Descriptor file = open_lock(path_, O_RDWR | O_CREAT);
  if (!file.is_open()) {
    return false;  // whoever had created the folder has removed it
  }
  struct flock whole = whole_file();
  const auto lock = [&] { return ::fcntl(file.get(), F_OFD_SETLK, &whole); };
  const int error = uninterrupted(lock) == 0 ? 0 : errno;
  if (error == EAGAIN || error == EACCES) {
    return false;
  }
  check_done(::ftruncate(file.get(), 0) == 0 && write_all(file.get(), text_), path_);
  // An earlier holder may have removed this file since open_lock(), and another may exist.
  if (!why_lost().empty()) {
    return false;
  }
  if (error != 0) {
    log.warning(
        "{}: its file system has no locks ({}), so take care that no second program trains in it",
        folder_, message_of(error));
  }
  file_ = std::move(file);
  return true;
}

// Why the lock is lost; empty if it is not. Throws Error(Io) if that cannot be determined.
std::string RunLock::why_lost() const {
  const Descriptor file = open_lock(path_, O_RDONLY);
  if (!file.is_open()) {
    return formatted("{} is gone", path_);
  }
  const std::string text = text_of(file, path_);
  return text == text_ ? "" : formatted("it is held by {}", holder_in(text));
}

void RunLock::check() const {
  std::string why;
  try {
    why = file_.is_open() ? why_lost() : "";
  } catch (const Error&) {
    // The error may be temporary, and the lock is still held.
  }
  if (!why.empty()) {
    lost = true;
    throw Error(
        ErrorKind::Io,
        formatted(
            "this run has lost its folder {}: {}. It ends here and writes nothing more", folder_,
            why));
  }
}

void RunLock::release() noexcept {
  if (!file_.is_open()) {
    return;
  }
  try {
    if (why_lost().empty()) {
      ::unlink(path_.c_str());
    }
  } catch (...) {
    // The file stays, as after a kill.
  }
  file_ = Descriptor();  // on NFS, only now is the folder empty
  if (made_folder_) {
    ::rmdir(folder_.c_str());
  }
}

void check_run_lock() {
  const std::lock_guard lock(registry_mutex);
  if (registered != nullptr) {
    registered->check();
  }
}

void release_run_lock() noexcept {
  const std::unique_lock lock(registry_mutex, kPatience);
  if (lock && registered != nullptr) {
    registered->release();
  }
}

bool lost_run_lock() noexcept {
  return lost;
}

void break_run_lock(const std::string& folder) {
  remove_path(lock_in(folder));
}

std::optional<LockSeen> look_at_lock(const std::string& folder) {
  const std::string path = lock_in(folder);
  const Descriptor file = open_lock(path, O_RDONLY);
  if (!file.is_open()) {
    return std::nullopt;
  }
  LockSeen seen{holder_in(text_of(file, path)), std::nullopt};
  struct flock whole = whole_file();
  if (uninterrupted([&] { return ::fcntl(file.get(), F_OFD_GETLK, &whole); }) == 0) {
    seen.is_held = whole.l_type != F_UNLCK;
  }
  return seen;
}

}  // namespace abtrain::run_folder
