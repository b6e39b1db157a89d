#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "run/build_info.h"
#include "run/doctor.h"

namespace abtrain::run {
namespace {

TEST(Doctor, AlignsTopicsAndCollectsAdvice) {
  EXPECT_EQ(
      format_findings(
          {{"CUDA", "compiled in", ""}, {"cifar10", "not found", "get it"}}),
      "CUDA     compiled in\n"
      "cifar10  not found\n"
      "\n"
      "What could be better:\n"
      "  cifar10: get it\n");
}

TEST(Doctor, SaysWhenNothingIsMissing) {
  EXPECT_EQ(
      format_findings({{"CUDA", "compiled in", ""}}),
      "CUDA  compiled in\n"
      "\n"
      "Nothing is missing.\n");
}

TEST(Doctor, KnowsWhatIsCompiledIn) {
  const std::vector<Finding> findings = diagnose();
  const auto cuda =
      std::ranges::find(findings, std::string("CUDA"), &Finding::topic);
  ASSERT_NE(cuda, findings.end());
  EXPECT_EQ(
      cuda->text.find("not compiled in") == std::string::npos,
      !build_info().cuda.empty());
}

TEST(BuildInfo, PinnedLibTorch) {
  EXPECT_EQ(build_info().torch, "2.11.0");
  EXPECT_EQ(version_line().rfind(build_info().version, 0), 0u);
}

}  // namespace
}  // namespace abtrain::run
