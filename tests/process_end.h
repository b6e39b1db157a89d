// How a process ends, as a child of this one, and one that has ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>

#include "base/files.h"
#include "temp_folder.h"

namespace abtrain {

// Exit code, or minus the signal that killed it, and what it said on standard error.
using ProcessEnd = std::pair<int, std::string>;

inline ProcessEnd end_of_fork(const std::function<void()>& body) {
  const TempFolder folder;
  const std::string said = folder.add("said", "");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(said.c_str(), O_WRONLY), 2);
    body();
    ::_exit(98);  // the body has not ended it
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(said)};
}

// For tests of what a process that is gone has left.
inline pid_t pid_of_the_dead() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return child;
}

}  // namespace abtrain
