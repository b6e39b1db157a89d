// How a process ends, as a child of this one.
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

namespace abtrain::train {

// Exit code, -1 after a signal, and what it said on standard error.
using ProcessEnd = std::pair<int, std::string>;

inline ProcessEnd end_of_fork(const std::function<void()>& body) {
  const TempFolder folder;
  const std::string said = folder.add("said", "");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(said.c_str(), O_WRONLY), 2);
    body();
    ::_exit(99);  // not reached
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(said)};
}

}  // namespace abtrain::train
