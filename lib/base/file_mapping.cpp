#include "base/file_mapping.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace abtrain {

// Entries are never freed, because the handler may be reading the list. Entries of destroyed
// mappings are reused.
struct FileMapping::Entry {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> lost{false};
  Entry* next = nullptr;  // constant once the entry is in the list
  // Only under the mutex:
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
};

namespace {

using MappedEntry = FileMapping::Entry;

std::atomic<MappedEntry*> mapped_entries{nullptr};
std::atomic<int> lost_mappings{0};
std::mutex mapped_entries_mutex;
std::vector<MappedEntry*> free_mapped_entries;
std::once_flag bus_errors_are_caught;
struct sigaction bus_action_before;
std::uintptr_t bytes_per_page = 0;

// Replaces a mapping with zeros, from the page that contains `at` to the end. Calls only functions
// that are allowed in a signal handler. Returns false if no mapping contains `at`.
bool replace_lost_pages(std::uintptr_t at) {
  for (MappedEntry* entry = mapped_entries.load(); entry != nullptr; entry = entry->next) {
    const std::uintptr_t begin = entry->begin.load(), end = entry->end.load();
    if (begin == 0 || at < begin || at >= end) {
      continue;
    }
    // Set before the zeros appear, so that a reader of zeros finds it set.
    if (!entry->lost.exchange(true)) {
      ++lost_mappings;
    }
    const std::uintptr_t page = at / bytes_per_page * bytes_per_page;
    return ::mmap(
               reinterpret_cast<void*>(page), end - page, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_fault = info->si_code > 0;  // not sent by a process
  const bool is_ours =
      is_fault && replace_lost_pages(reinterpret_cast<std::uintptr_t>(info->si_addr));
  errno = error;
  if (is_ours) {
    return;
  }
  if ((bus_action_before.sa_flags & SA_SIGINFO) != 0) {
    bus_action_before.sa_sigaction(number, info, context);
  } else if (bus_action_before.sa_handler == SIG_DFL || is_fault) {
    // Restores the default action, so that the repeated access or signal ends the process.
    ::signal(number, SIG_DFL);
    if (!is_fault) {
      ::raise(number);
    }
  } else if (bus_action_before.sa_handler != SIG_IGN) {
    bus_action_before.sa_handler(number);
  }
}

void catch_bus_errors() {
  bytes_per_page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGBUS, &action, &bus_action_before);
}

[[noreturn]] void fail_for(const std::string& path) {
  throw Error(
      ErrorKind::Io,
      formatted(
          "{}: cannot be read any more: another program shortened the file after it was opened, "
          "or its disk has failed",
          path));
}

}  // namespace

FileMapping::FileMapping(const InputFile& file) : size_(file.size()) {
  std::call_once(bus_errors_are_caught, catch_bus_errors);
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  ABT_CHECK(
      data != MAP_FAILED, Io, "{}: cannot be mapped: {}{}", file.path(),
      std::generic_category().message(errno),
      errno == ENOMEM ? ": a process may have as many mapped files as /proc/sys/vm/max_map_count "
                        "says; join the files into fewer and larger ones"
                      : "");
  data_ = static_cast<std::uint8_t*>(data);
  struct stat status {};
  ::fstat(file.descriptor(), &status);
  const std::lock_guard lock(mapped_entries_mutex);
  const bool is_new = free_mapped_entries.empty();
  if (is_new) {
    entry_ = new MappedEntry;
    entry_->next = mapped_entries.load();
  } else {
    entry_ = free_mapped_entries.back();
    free_mapped_entries.pop_back();
  }
  entry_->path = file.path();
  entry_->device = status.st_dev;
  entry_->inode = status.st_ino;
  entry_->end = reinterpret_cast<std::uintptr_t>(data_) + size_;
  entry_->begin = reinterpret_cast<std::uintptr_t>(data_);
  if (is_new) {
    mapped_entries = entry_;
  }
}

FileMapping::~FileMapping() {
  const std::lock_guard lock(mapped_entries_mutex);
  entry_->begin = 0;
  if (entry_->lost.exchange(false)) {
    --lost_mappings;
  }
  ::munmap(data_, size_);
  free_mapped_entries.push_back(entry_);
}

void check_mapped_files() {
  if (lost_mappings.load() == 0) {
    return;
  }
  const std::lock_guard lock(mapped_entries_mutex);
  for (const MappedEntry* entry = mapped_entries.load(); entry != nullptr; entry = entry->next) {
    if (entry->lost.load()) {
      fail_for(entry->path);
    }
  }
}

void check_sizes_of_mapped_files() {
  check_mapped_files();
  const std::lock_guard lock(mapped_entries_mutex);
  for (const MappedEntry* entry = mapped_entries.load(); entry != nullptr; entry = entry->next) {
    struct stat status {};
    // A file that was replaced or removed keeps its bytes for a process that has opened it.
    if (entry->begin.load() != 0 && ::stat(entry->path.c_str(), &status) == 0 &&
        status.st_dev == entry->device && status.st_ino == entry->inode &&
        static_cast<std::uintptr_t>(status.st_size) < entry->end.load() - entry->begin.load()) {
      fail_for(entry->path);
    }
  }
}

}  // namespace abtrain
