#include "run_folder/lock_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/json.h"
#include "base/process.h"
#include "base/socket.h"

namespace abtrain::run_folder {

namespace {

namespace fs = std::filesystem;

// The file has a fixed length, so a heartbeat is one write that does not change
// its size.
constexpr std::size_t kBytes = 1024;

Descriptor open_lock(const std::string& path, int flags) {
  return Descriptor(
      uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666); }));
}

// PIDs are meaningful only within one PID namespace of one boot.
std::string this_machine() {
  std::error_code error;
  const fs::path space = fs::read_symlink("/proc/self/ns/pid", error);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return error || boot.empty() ? "" : formatted("{} {}", boot, space.string());
}

std::string lock_text(const LockHolder& holder, std::int64_t beat) {
  const nlohmann::ordered_json value = {
      {"host", holder.host}, {"pid", holder.pid},         {"started", holder.started},
      {"beat", beat},        {"machine", holder.machine}, {"ticks", holder.ticks},
      {"id", holder.id}};
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize(std::max(text.size(), kBytes - 1), ' ');
  return text + "\n";
}

// Parses a lock file. If its process was killed while writing it, the inode
// number serves as the id.
LockHolder from_text(const std::string& text, ino_t inode) {
  JsonProblem problem;
  const nlohmann::ordered_json value = parse_json(text, problem);
  const auto is_plain = [](unsigned char c) { return c >= ' ' && c < 127; };
  const auto word = [&](const char* key) {
    const auto found = value_in<std::string>(value, key);
    return std::ranges::all_of(found, is_plain) ? found : std::string();
  };
  const std::string id = word("id");
  const auto pid = value_in<std::int64_t>(value, "pid");
  if (id.empty() || pid <= 0 || pid > std::numeric_limits<pid_t>::max() ||
      id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return {.id = formatted("inode{}", inode)};
  }
  return {
      .id = id,
      .host = word("host"),
      .machine = word("machine"),
      .pid = static_cast<pid_t>(pid),
      .ticks = word("ticks"),
      .started = word("started")};
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::Io, formatted("cannot lock the run folder with '{}': {}", path, why));
}

[[noreturn]] void fail(const std::string& path, int error) {
  fail(path, std::generic_category().message(error));
}

// Returns nullopt if the file does not exist.
std::optional<LockFile> read_lock(const std::string& path, int file) {
  std::array<char, 2 * kBytes> block{};
  struct stat status {};
  const bool is_known = file >= 0 && ::fstat(file, &status) == 0;
  if (is_known && !S_ISREG(status.st_mode)) {
    fail(path, "expected a file, found a folder, device or pipe; remove it");
  }
  const auto read = [&] { return ::pread(file, block.data(), block.size(), 0); };
  const ssize_t got = is_known ? uninterrupted(read) : -1;
  if (got < 0) {
    if (errno == ENOENT || errno == ESTALE) {
      return std::nullopt;
    }
    fail(path, errno);
  }
  const std::string text(block.data(), static_cast<std::size_t>(got));
  return LockFile{path, text, from_text(text, status.st_ino)};
}

}  // namespace

LockHolder this_process() {
  const pid_t pid = ::getpid();
  const auto state = process_state(pid);
  std::random_device random;
  return {
      .id = formatted("{:08x}{:08x}", random(), random()),
      .host = host_name(),
      .machine = this_machine(),
      .pid = pid,
      .ticks = state ? state->started : "",
      .started = utc_now()};
}

bool is_on_machine(const LockHolder& holder, const LockHolder& me) {
  return holder.pid > 0 && !holder.machine.empty() && holder.machine == me.machine;
}

bool is_alive(const LockHolder& holder) {
  if (::kill(holder.pid, 0) != 0 && errno == ESRCH) {
    return false;
  }
  const auto state = process_state(holder.pid);
  return !state || (!state->has_ended && (holder.ticks.empty() || holder.ticks == state->started));
}

std::string name_of(const LockHolder& holder) {
  return holder.pid == 0 ? "an unidentified process"
                         : formatted("process {} on {}", holder.pid, holder.host);
}

std::string lock_in(const std::string& folder) {
  return folder + "/lock.json";
}

std::string claim_on(const std::string& folder, const LockHolder& holder) {
  return formatted("{}/lock-{}.json", folder, holder.id);
}

std::optional<LockFile> read_lock(const std::string& path) {
  return read_lock(path, open_lock(path, O_RDONLY).get());
}

std::optional<LockFile> find_holder(const std::string& folder) {
  auto last = read_lock(lock_in(folder));
  while (last) {
    auto next = read_lock(claim_on(folder, last->holder));
    if (!next) {
      break;
    }
    last = std::move(next);
  }
  return last;
}

bool create_lock(const std::string& path, const LockHolder& holder) {
  const std::string text = lock_text(holder, 0);
  const std::string beside =
      (fs::path(path).parent_path() / formatted("lock-{}.tmp", holder.id)).string();
  const auto write_new = [&](const std::string& name) {
    const Descriptor file = open_lock(name, O_WRONLY | O_CREAT | O_EXCL);
    if (!file.is_open() && (errno == EEXIST || errno == ENOENT)) {
      return false;
    }
    if (!file.is_open() || !write_all(file.get(), text)) {
      const int error = errno;
      if (file.is_open()) {
        ::unlink(name.c_str());
      }
      fail(name, error);
    }
    return true;
  };
  if (!write_new(beside)) {
    return false;
  }
  const bool linked = uninterrupted([&] { return ::link(beside.c_str(), path.c_str()); }) == 0;
  const int error = errno;
  // Over NFS the reply to a call that succeeded may be lost.
  struct stat status {};
  const bool is_there = linked || (::stat(beside.c_str(), &status) == 0 && status.st_nlink == 2);
  ::unlink(beside.c_str());
  if (is_there) {
    return true;
  }
  if (error == EEXIST || error == ENOENT) {
    return false;
  }
  return write_new(path);  // a file system without hard links
}

std::optional<LockFile> beat_lock(
    const std::string& path, const LockHolder& holder, std::int64_t beat) {
  const Descriptor file = open_lock(path, O_RDWR);
  auto found = read_lock(path, file.get());
  if (found && found->holder.id == holder.id) {
    // Writes into the file that was read, whatever the name refers to by now.
    const std::string text = lock_text(holder, beat);
    const auto write = [&] { return ::pwrite(file.get(), text.data(), text.size(), 0); };
    if (uninterrupted(write) != static_cast<ssize_t>(text.size())) {
      fail(path, errno);
    }
  }
  return found;
}

}  // namespace abtrain::run_folder
