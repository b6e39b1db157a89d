#include <gtest/gtest.h>

#include <string>

#include "program.h"

namespace {

using namespace abtrain;

TEST(Cli, VersionGoesToStandardOutput) {
  const Outcome outcome = run("--version", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.text.rfind("abtrain " ABTRAIN_VERSION, 0), 0u)
      << outcome.text;
}

TEST(Cli, HelpListsEveryCommand) {
  const Outcome outcome = run("--help", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* verb :
       {"train",
        "plan",
        "evaluate",
        "generate",
        "sweep",
        "report",
        "export",
        "decompose",
        "doctor"}) {
    EXPECT_TRUE(contains(outcome.text, std::string("\n  ") + verb + " "))
        << verb;
  }
}

TEST(Cli, NothingAtAllIsWrongUse) {
  const Outcome outcome = run("", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.text, "Usage: abtrain")) << outcome.text;
}

struct WrongUse {
  const char* name;
  const char* arguments;
  const char* says;
};

class CliWrongUse : public ::testing::TestWithParam<WrongUse> {};

TEST_P(CliWrongUse, ExitsTwoAndSaysWhy) {
  const Outcome outcome = run(GetParam().arguments, Stream::Error);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.text, GetParam().says)) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "`abtrain --help`")) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(
    All,
    CliWrongUse,
    ::testing::Values(
        WrongUse{"Misspelt", "trian --config x.yaml", "did you mean 'train'?"},
        WrongUse{
            "BareFile",
            "x.yaml",
            "did you mean `abtrain --config x.yaml`?"},
        WrongUse{"NoFile", "train", "--config is required"},
        WrongUse{"OnlySet", "--set a=1", "--config is required"},
        WrongUse{"TwoValues", "--config x.yaml --set a=1 b=2", "b=2"},
        WrongUse{"UnknownOption", "--config x.yaml --fast", "--fast"},
        WrongUse{"NoRun", "evaluate", "run is required"}),
    [](const auto& test) { return test.param.name; });

TEST(Cli, MissingConfigurationIsNamed) {
  for (const char* verb : {"", "train ", "plan "}) {
    const Outcome outcome =
        run(std::string(verb) + "--config no_such_file.yaml", Stream::Error);
    EXPECT_EQ(outcome.exit_code, 66) << verb;
    EXPECT_TRUE(contains(outcome.text, "no_such_file.yaml")) << outcome.text;
  }
}

TEST(Cli, WrongKeyIsAConfigurationError) {
  const Outcome outcome =
      run("--config fashion_mnist_mlp.yaml --set train.epocs=2", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_TRUE(contains(outcome.text, "epochs")) << outcome.text;
}

TEST(Cli, PlanAndDryRunPrintTheSame) {
  const std::string arguments =
      "--config fashion_mnist_mlp.yaml --set workers=8 --name planned";
  const Outcome plan = run("plan " + arguments, Stream::Out);
  const Outcome dry_run = run(arguments + " --dry-run", Stream::Out);
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_EQ(dry_run.exit_code, 0);
  EXPECT_TRUE(contains(plan.text, "planned")) << plan.text;
  EXPECT_EQ(plan.text, dry_run.text);
}

TEST(Cli, DoctorTellsOfEachPart) {
  const Outcome outcome = run("doctor", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* topic :
       {"abtrain", "LibTorch", "CUDA", "CPU", "configs", "fashion-mnist"}) {
    EXPECT_TRUE(contains("\n" + outcome.text, std::string("\n") + topic + " "))
        << topic;
  }
}

}  // namespace
