// A process that has ended, for tests of locks that it might have held.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace abtrain::run_folder {

inline pid_t pid_of_the_dead() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return child;
}

}  // namespace abtrain::run_folder
