#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "program.h"

namespace {

using namespace abtrain;

TEST(Cli, VersionGoesToStandardOutput) {
  const Outcome outcome = run("--version", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.text.rfind("abtrain " ABTRAIN_VERSION, 0), 0u) << outcome.text;
}

TEST(Cli, TheManualPageNamesTheVersion) {
  std::string version = run("--version", Stream::Out).text;
  ASSERT_TRUE(version.ends_with('\n'));
  version.pop_back();
  EXPECT_TRUE(contains(run("man", Stream::Out).text, '"' + version + '"'));
}

TEST(Cli, HelpListsEveryCommand) {
  const Outcome outcome = run("--help", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* verb :
       {"train", "plan", "evaluate", "predict", "generate", "sweep", "report", "export",
        "decompose", "doctor", "help"}) {
    EXPECT_TRUE(contains(outcome.text, std::string("\n  ") + verb + " ")) << verb;
  }
}

TEST(Cli, HelpOfACommandHasItsOwnExamples) {
  for (const std::string verb :
       {"train", "plan", "evaluate", "predict", "generate", "sweep", "report", "export",
        "decompose", "completion"}) {
    const Outcome outcome = run("help " + verb, Stream::Out);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.text, run(verb + " --help", Stream::Out).text);
    const std::size_t begin = outcome.text.find("Examples:\n");
    ASSERT_NE(begin, std::string::npos) << verb;
    const std::string examples = outcome.text.substr(begin);
    EXPECT_TRUE(contains(examples, "abtrain " + verb + " ")) << examples;
    EXPECT_FALSE(contains(examples, "abtrain help")) << examples;
  }
  EXPECT_EQ(run("help", Stream::Out).text, run("--help", Stream::Out).text);
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
  const char* points_to = "`abtrain help train`";
};

class CliWrongUse : public ::testing::TestWithParam<WrongUse> {};

TEST_P(CliWrongUse, ExitsTwoAndSaysWhy) {
  const Outcome outcome = run(GetParam().arguments, Stream::Error);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.text, GetParam().says)) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, GetParam().points_to)) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, CliWrongUse,
    ::testing::Values(
        WrongUse{"Misspelt", "trian x.yaml", "did you mean 'train'?", "`abtrain --help`"},
        WrongUse{
            "MisspeltConfiguration", "fashion_mnst_mlp", "did you mean 'fashion_mnist_mlp'?",
            "`abtrain --help`"},
        WrongUse{"NoFile", "train", "expected a configuration"},
        WrongUse{"OnlySet", "--set a=1", "expected a configuration"},
        WrongUse{"OnlyAnOverride", "a=1", "expected a configuration"},
        WrongUse{
            "TwoFiles", "train x.yaml y.yaml",
            "train: expected one configuration, got 'x.yaml' and 'y.yaml'"},
        WrongUse{
            "NoEquals", "-c x.yaml method.name ddp",
            "got 'x.yaml' and 'method.name' (an override is written as "
            "KEY=VALUE)"},
        WrongUse{"UnknownOption", "--config x.yaml --fast", "--fast"},
        WrongUse{
            "KeyAsAnOption", "train x.yaml --lr 0.1",
            "unknown option '--lr'; did you mean optimizer.lr=0.1?"},
        WrongUse{
            "KeyOfTwoWords", "plan x.yaml --batch-size=32", "did you mean data.batch_size=32?",
            "`abtrain help plan`"},
        WrongUse{
            "WholeKeyAsAnOption", "x.yaml --method.outer.lr 1", "did you mean method.outer.lr=1?"},
        WrongUse{"SectionAsAnOption", "x.yaml --model vgg16", "did you mean model.name=vgg16?"},
        WrongUse{"OptionOfOthers", "x.yaml --num-workers", "did you mean data.decode_threads=...?"},
        WrongUse{
            "KeyOfARun", "evaluate x --data-dir /d", "did you mean --set data.root=/d?",
            "`abtrain help evaluate`"},
        WrongUse{
            "OverrideOfASweep", "sweep x.yaml method.name=ddp",
            "sweep: did you mean --set method.name=ddp?", "`abtrain help sweep`"},
        WrongUse{"Verbose", "x.yaml -v", "did you mean --version?"},
        WrongUse{"NoCommand", "help nothing", "nothing", "`abtrain help help`"},
        WrongUse{
            "ATextForANumber", "generate x --top-k many",
            "--top-k: expected an integer of at least 0, got 'many'", "`abtrain help generate`"},
        WrongUse{
            "OutOfRange", "generate x --temperature 1e6",
            "--temperature: expected a number from 0 to 100, got '1e6'", "`abtrain help generate`"},
        WrongUse{
            "NotAChoice", "report x --format yml",
            "--format: expected one of table, csv, json, markdown, html, got "
            "'yml'",
            "`abtrain help report`"},
        WrongUse{"NoRun", "evaluate", "run is required", "`abtrain help evaluate`"}),
    [](const auto& test) { return test.param.name; });

TEST(Cli, MissingConfigurationIsNamed) {
  for (const char* verb : {"", "train ", "plan "}) {
    const Outcome outcome = run(std::string(verb) + "--config no_such_file.yaml", Stream::Error);
    EXPECT_EQ(outcome.exit_code, 66) << verb;
    EXPECT_TRUE(contains(outcome.text, "no_such_file.yaml")) << outcome.text;
  }
}

// What was typed is what --config and --set would say; the last value counts.
TEST(Cli, WordsAreConfigurationAndOverrides) {
  const auto expect_all = [](const std::string& first, const std::vector<std::string>& lines) {
    const std::string expected = run(first, Stream::Out).text;
    EXPECT_FALSE(expected.empty());
    for (const std::string& line : lines) {
      const Outcome outcome = run(line, Stream::Out);
      EXPECT_EQ(outcome.exit_code, 0) << line;
      EXPECT_EQ(outcome.text, expected) << line;
    }
  };
  expect_all(
      "plan --config fashion_mnist_mlp --set workers=8 --set seed=3 "
      "--show-config",
      {"plan fashion_mnist_mlp workers=8 seed=3 --show-config",
       "plan workers=8 fashion_mnist_mlp.yaml --show-config --set seed=3",
       "plan --show-config fashion_mnist_mlp --set workers=4 workers=8 seed=3",
       "plan fashion_mnist_mlp seed=4 --set seed=3 workers=4 --show-config "
       "--set=workers=8",
       "plan -c fashion_mnist_mlp workers=8 seed=3 --show-config"});
  expect_all(
      "plan --config fashion_mnist_mlp --set workers=8 --name mine",
      {"fashion_mnist_mlp workers=8 name=mine --dry-run",
       "workers=8 name=mine fashion_mnist_mlp --dry-run",
       "train fashion_mnist_mlp workers=8 --dry-run name=mine"});
  const Outcome missing = run("no_such_file.yaml", Stream::Error);
  EXPECT_EQ(missing.exit_code, 66);
  EXPECT_TRUE(contains(missing.text, "no_such_file.yaml")) << missing.text;
}

TEST(Cli, MisspeltOverridesAreExplained) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"method.nme=ddp", "did you mean 'method.name'?"},
      {"lr=0.1", "did you mean 'optimizer.lr'?"},
      {"method.name=dpp", "did you mean 'ddp'?"}};
  for (const auto& [word, says] : cases) {
    const Outcome outcome = run(std::string("plan fashion_mnist_mlp ") + word, Stream::Error);
    EXPECT_EQ(outcome.exit_code, 78) << outcome.text;
    EXPECT_TRUE(contains(outcome.text, says)) << outcome.text;
  }
}

TEST(Cli, WrongKeyIsAConfigurationError) {
  const Outcome outcome = run("--config fashion_mnist_mlp.yaml --set train.epocs=2", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_TRUE(contains(outcome.text, "epochs")) << outcome.text;
}

TEST(Cli, NamesAreTakenAsTheyAreWritten) {
  const Outcome outcome =
      run("plan fashion_mnist_mlp --name 'exp 3 # lr' --output 'a: [b' "
          "--show-config",
          Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(contains(outcome.text, "name: \"exp 3 # lr\"\n"));
  EXPECT_TRUE(contains(outcome.text, "\noutput: \"a: [b\"\n"));
}

// All processes have the same command line: one of them complains.
TEST(Cli, ProcessesOfALauncherLeaveComplaintsToTheFirst) {
  const auto of_rank = [](const std::string& rank, const char* arguments) {
    const std::string before = "OMPI_COMM_WORLD_RANK=" + rank +
                               " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=" + rank +
                               " OMPI_COMM_WORLD_LOCAL_SIZE=2 ";
    return run(arguments, Stream::Error, before);
  };
  constexpr const char* kWrong = "fashion_mnist_mlp --wrong";
  EXPECT_TRUE(contains(of_rank("0", kWrong).text, "unknown option '--wrong'"));
  const Outcome other = of_rank("1", kWrong);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_EQ(other.text, "");
}

TEST(Cli, HelpWritesValuesInOneNotation) {
  for (const char* verb : {"train", "plan", "generate", "sweep", "report", "export", "decompose"}) {
    const std::string text = run(std::string("help ") + verb, Stream::Out).text;
    for (const char* other : {":{", "TEXT:", "INT:", "FLOAT:", "NONNEGATIVE"}) {
      EXPECT_FALSE(contains(text, other)) << verb << ": " << other;
    }
  }
  EXPECT_TRUE(contains(run("help generate", Stream::Out).text, "--temperature FLOAT in [0, 100]"));
  EXPECT_TRUE(contains(run("help export", Stream::Out).text, "--form factored|merged"));
}

TEST(Cli, DoctorTellsOfEachPart) {
  const Outcome outcome = run("doctor", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* topic : {"abtrain", "LibTorch", "CUDA", "CPU", "configs", "fashion-mnist"}) {
    EXPECT_TRUE(contains("\n" + outcome.text, std::string("\n") + topic + " ")) << topic;
  }
}

}  // namespace
