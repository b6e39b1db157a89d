// Ends a test for want of a part that scripts/setup.sh --tests brings: it is skipped, but fails
// under scripts/test.sh, which has run that.
//   if (!has("zsh")) { ABT_LACKS("zsh"); }
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#define ABT_LACKS(what)                                            \
  if (std::getenv("ABTRAIN_TESTS_COMPLETE") != nullptr) {          \
    FAIL() << "no " << (what) << ": run scripts/setup.sh --tests"; \
  }                                                                \
  GTEST_SKIP() << "no " << (what) << "; scripts/setup.sh --tests installs it"
