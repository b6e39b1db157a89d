#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "program.h"

namespace {

using namespace abtrain;

TEST(Cli, VersionGoesToStandardOutput) {
  const std::string version = output_of("--version");
  EXPECT_TRUE(version.starts_with("abtrain " ABTRAIN_VERSION)) << version;
  ASSERT_TRUE(version.ends_with('\n'));
}

TEST(Cli, HelpListsEveryCommand) {
  const std::string help = output_of("--help");
  for (const char* verb :
       {"train", "plan", "evaluate", "predict", "generate", "sweep", "report", "export",
        "decompose", "doctor", "help"}) {
    expect_has(help, std::string("\n  ") + verb + " ");
  }
}

TEST(Cli, HelpOfACommandHasItsOwnExamples) {
  for (const std::string verb :
       {"train", "plan", "evaluate", "predict", "generate", "sweep", "report", "export",
        "decompose", "completion"}) {
    const std::string help = output_of("help " + verb);
    EXPECT_EQ(help, output_of(verb + " --help"));
    const std::size_t begin = help.find("Examples:\n");
    ASSERT_NE(begin, std::string::npos) << verb;
    const std::string examples = help.substr(begin);
    expect_has(examples, "abtrain " + verb + " ");
    EXPECT_FALSE(contains(examples, "abtrain help")) << examples;
  }
  EXPECT_EQ(output_of("help"), output_of("--help"));
}

TEST(Cli, HelpOfAKeyIsThatOfTheDocuments) {
  EXPECT_EQ(
      output_of("help optimizer.lr"),
      "optimizer.lr = 0.001\n    learning rate after the warm-up\n"
      "    Expected: a number above 0 and at most 1e38.\n");
  const std::string page = read_file(std::string(ABTRAIN_SOURCE_DIR) + "/docs/config.md");
  for (const std::string section : {"optimizer", "train", "evaluate", "method.rank"}) {
    const bool is_command = section == "train" || section == "evaluate";
    const std::string text = "\n" + output_of("help " + section + (is_command ? "." : ""));
    std::size_t keys = 0;
    for (const std::string& line : split_text(page, '\n')) {
      if (line.starts_with("| `" + section + ".")) {
        const std::vector<std::string> cells = split_text(line, '|');
        expect_has(
            text, "\n" + replaced(std::string(trim(cells[1])), "`", "") + " = " +
                      replaced(std::string(trim(cells[2])), "`", "") + "\n");
        ++keys;
      }
    }
    EXPECT_GE(keys, 2U) << section;
  }
  expect_has(output_of("help workers"), "A resumed run may change it.");
}

struct WrongUse {
  const char* name;
  const char* arguments;
  const char* says;
  const char* points_to = "`abtrain help train`";
};

class CliWrongUse : public ::testing::TestWithParam<WrongUse> {};

TEST_P(CliWrongUse, ExitsTwoAndSaysWhy) {
  expect_exit(2, GetParam().arguments, {GetParam().says, GetParam().points_to});
}

INSTANTIATE_TEST_SUITE_P(
    All, CliWrongUse,
    ::testing::Values(
        WrongUse{"Nothing", "", "Usage: abtrain", ""},
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
        WrongUse{"PartOfAKey", "help lr", "did you mean 'optimizer.lr'?", "`abtrain help help`"},
        WrongUse{
            "NoKey", "help optimizer.lrr", "; did you mean 'optimizer.lr'?", "`abtrain help help`"},
        WrongUse{
            "NoSection", "help optimiser", "; did you mean 'optimizer'?", "`abtrain help help`"},
        WrongUse{
            "KeyOfOthers", "help num_workers", "; use 'data.decode_threads'",
            "`abtrain help help`"},
        WrongUse{"NoSuchThing", "x.yaml --wandb", "'--wandb'; abtrain has none; metrics.jsonl"},
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
    kCaseName);

TEST(Cli, MissingConfigurationIsNamed) {
  for (const char* words : {"", "--config ", "train --config ", "plan --config "}) {
    expect_exit(66, std::string(words) + "no_such_file.yaml", {"no_such_file.yaml"});
  }
}

// What was typed is what --config and --set would say; the last value counts.
TEST(Cli, WordsAreConfigurationAndOverrides) {
  const auto expect_all = [](const std::string& first, const std::vector<std::string>& lines) {
    const std::string expected = output_of(first);
    EXPECT_FALSE(expected.empty());
    for (const std::string& line : lines) {
      EXPECT_EQ(output_of(line), expected) << line;
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
}

TEST(Cli, MisspeltKeysAndValuesAreExplained) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"plan fashion_mnist_mlp method.nme=ddp", "did you mean 'method.name'?"},
      {"plan fashion_mnist_mlp lr=0.1", "did you mean 'optimizer.lr'?"},
      {"plan fashion_mnist_mlp method.name=dpp", "did you mean 'ddp'?"},
      {"--config fashion_mnist_mlp.yaml --set train.epocs=2", "epochs"}};
  for (const auto& [words, says] : cases) {
    expect_exit(78, words, {says});
  }
}

TEST(Cli, NamesAreTakenAsTheyAreWritten) {
  const std::string config =
      output_of("plan fashion_mnist_mlp --name 'exp 3 # lr' --output 'a: [b' --show-config");
  expect_has(config, "name: \"exp 3 # lr\"\n");
  expect_has(config, "\noutput: \"a: [b\"\n");
}

// config.yaml could not be read back.
TEST(Cli, TextsOfOptionsAreUtf8) {
  expect_exit(
      78, "plan fashion_mnist_mlp --name caf\xE9",
      {"--name caf\\xe9: error: name: expected a folder name, got 'caf\\xe9' (it is not UTF-8 "
       "text)"});
  expect_exit(
      78, "plan fashion_mnist_mlp --output caf\xE9", {"error: output: ", "(it is not UTF-8 text)"});
  expect_exit(
      78, "plan fashion_mnist_mlp output='$ABT_OUT'", {"error: output: ", "(it is not UTF-8 text)"},
      "ABT_OUT=caf\xE9 ");
  output_of("plan fashion_mnist_mlp --name caf\xC3\xA9");
}

// All processes have the same command line: one of them complains.
TEST(Cli, ProcessesOfALauncherLeaveComplaintsToTheFirst) {
  const auto said_by = [](const std::string& rank) {
    return expect_exit(
        2, "fashion_mnist_mlp --wrong", {},
        "OMPI_COMM_WORLD_RANK=" + rank + " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=" +
            rank + " OMPI_COMM_WORLD_LOCAL_SIZE=2 ");
  };
  expect_has(said_by("0"), "unknown option '--wrong'");
  EXPECT_EQ(said_by("1"), "");
  // Nobody collects the output of those that a user has started one by one.
  expect_exit(
      2, "fashion_mnist_mlp --wrong", {"unknown option '--wrong'"},
      "RANK=1 WORLD_SIZE=2 MASTER_ADDR=head MASTER_PORT=29500 ");
}

TEST(Cli, HelpWritesValuesInOneNotation) {
  for (const char* verb : {"train", "plan", "generate", "sweep", "report", "export", "decompose"}) {
    const std::string text = output_of(std::string("help ") + verb);
    for (const char* other : {":{", "TEXT:", "INT:", "FLOAT:", "NONNEGATIVE"}) {
      EXPECT_FALSE(contains(text, other)) << verb << ": " << other;
    }
  }
  expect_has(output_of("help generate"), "--temperature FLOAT in [0, 100]");
  expect_has(output_of("help export"), "--form factored|merged");
}

TEST(Cli, DoctorTellsOfEachPart) {
  const std::string findings = "\n" + output_of("doctor");
  for (const char* topic : {"abtrain", "LibTorch", "CUDA", "CPU", "configs", "fashion-mnist"}) {
    expect_has(findings, std::string("\n") + topic + " ");
  }
}

}  // namespace
