// What -o may replace, where else it may lead, and that names from files do not
// reach the terminal as they are. No test names /dev/null as an output: a
// mistake would replace it for the whole machine.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "run_folders.h"
#include "small_run.h"
#include "weights_file.h"

namespace abtrain {
namespace {

namespace fs = std::filesystem;

class CliOutput : public ::testing::Test {
 protected:
  // A trained run, once for all.
  static void SetUpTestSuite() {
    runs() = new TempFolder;
    expect_exit(
        0, "--config fashion_mnist_mlp --output '" + runs()->path() +
               "' --name r --set 'model.hidden=[8, 8]' --set workers=1 --set "
               "data.subset=256 --set train.steps=2 --set method.name=ddp "
               "--set schedule.warmup_steps=0 --set data.batch_size=16 --set "
               "device=cpu");
  }
  static void TearDownTestSuite() {
    delete runs();
  }
  static TempFolder*& runs() {
    static TempFolder* folder = nullptr;
    return folder;
  }

  void SetUp() override {
    folder_.add("in.safetensors", weights(1, 20, 12));
    folder_.add("sweep.yaml", "base: fashion_mnist_mlp\nseeds: 2\n");
  }
  // Each command that writes a file, without the file.
  std::vector<std::string> commands() const {
    return {
        "export '" + runs()->file("r") + "' -o ",
        "decompose '" + folder_.file("in.safetensors") + "' --rank 2 -o ",
        "report '" + runs()->file("r") + "' --format csv -o ",
        "sweep '" + folder_.file("sweep.yaml") + "' --sbatch=--time=5 --emit-slurm "};
  }
  const TempFolder folder_;
};

TEST_F(CliOutput, FilesOfAnotherKindAreReplacedByForceAlone) {
  const std::string config = "workers: 2\n";
  for (const std::string& command : commands()) {
    const std::string path = folder_.add("mine", config);
    const std::string line = command + "'" + path + "'";
    expect_exit(2, line, {"'" + path + "' already exists and", "; --force replaces it"});
    EXPECT_EQ(content(path), config);
    expect_exit(0, line + " --force");
    EXPECT_NE(content(path), config) << command;
    // Its own earlier output is no other kind.
    expect_exit(0, line);
  }
}

TEST_F(CliOutput, ModelsOfRunsAreReplacedByForceAlone) {
  folder_.add("other/config.yaml", "workers: 2\n");
  const std::string model = folder_.add("other/model.safetensors", weights(1, 4, 3));
  const std::string before = content(model);
  const std::string shard =
      folder_.add("other/checkpoints/step-00000002/worker-00000.safetensors", before);
  folder_.add("other/checkpoints/step-00000002/manifest.json", "{}");
  for (const std::string& path : {model, shard}) {
    for (const std::size_t i : {0, 1}) {
      expect_exit(2, commands()[i] + "'" + path + "'", {"of a run; --force"});
      EXPECT_EQ(content(path), before);
    }
  }
  expect_exit(0, commands()[1] + "'" + model + "' --force");
  EXPECT_NE(content(model), before);
}

// PyTorch's torch.load would not read it.
TEST_F(CliOutput, ANameOfAnotherFormatIsRefused) {
  for (const std::size_t i : {0, 1}) {
    for (const char* name : {"m.pt", "m.ONNX", "m.SAFETENSOR"}) {
      expect_exit(
          2, commands()[i] + "'" + folder_.file(name) + "'",
          {std::string("/") + name + "' ends in .", "expected a name that ends in .safetensors"});
      EXPECT_FALSE(std::filesystem::exists(folder_.file(name)));
    }
    EXPECT_EQ(expect_exit(0, commands()[i] + "'" + folder_.file("m.SafeTensors") + "'"), "");
  }
}

TEST_F(CliOutput, StandardOutputGetsTheFileAlone) {
  for (const std::string& command : commands()) {
    const std::string path = folder_.file("out");
    expect_exit(0, command + "'" + path + "'");
    const std::string expected = content(path);
    EXPECT_TRUE(output_of(command + "-") == expected) << command;
    // A file that standard output is redirected to is added to, not replaced.
    const std::string log = folder_.add("log", "before\n");
    output_of(command + "/dev/stdout >>'" + log + "'");
    EXPECT_TRUE(content(log) == "before\n" + expected) << command;
    EXPECT_FALSE(fs::exists("-"));
    fs::remove(path);
  }
}

TEST_F(CliOutput, FifosAndLinksStayWhatTheyAre) {
  for (const std::string& command : commands()) {
    const std::string path = folder_.file("out");
    expect_exit(0, command + "'" + path + "'");
    const std::string expected = content(path);
    fs::create_symlink("out", folder_.file("link"));
    expect_exit(0, command + "'" + folder_.file("link") + "'");
    EXPECT_TRUE(fs::is_symlink(folder_.file("link"))) << command;
    const std::string fifo = folder_.file("fifo");
    const Outcome through =
        run(command + "'" + fifo + "' >&2 & cat '" + fifo + "'; wait", Stream::Out,
            "mkfifo '" + fifo + "'; ");
    EXPECT_TRUE(through.text == expected) << command;
    EXPECT_TRUE(fs::is_fifo(fifo)) << command;
    for (const char* name : {"out", "link", "fifo"}) {
      fs::remove(folder_.file(name));
    }
  }
}

// Names that would clear the screen, change its title or turn text around.
TEST_F(CliOutput, NamesFromFilesAreEscaped) {
  const std::string evil =
      "\x1b[2J\x1b]0;x\x07\xc2\x9b"
      "31m\u202e\n";
  const std::string shown = "\\x1b[2J\\x1b]0;x\\x07\\xc2\\x9b31m\\xe2\\x80\\xae\\n";
  const std::string in = folder_.add("evil.safetensors", weights(2, 20, 12, evil));
  const auto expect_clean = [&](const Outcome& outcome) {
    for (const char* part : {"\x1b", "\x07", "\xc2\x9b", "\u202e"}) {
      EXPECT_FALSE(contains(outcome.text, part)) << outcome.text;
    }
    expect_has(outcome.text, shown.substr(0, 20));
  };
  const Outcome table = run("decompose '" + in + "' --dry-run --rank 2", Stream::Out);
  expect_clean(table);
  expect_has(table.text, shown);
  folder_.add("cut.safetensors", weights(2, 20, 12, evil).substr(0, 1200));
  expect_clean(run("decompose '" + folder_.file("cut.safetensors") + "' --dry-run", Stream::Error));
  // Names of folders, and of runs, which may hold some of it.
  const std::string odd = evil.substr(0, evil.size() - 4);
  testing::add_run(folder_, {.name = odd});
  expect_clean(run("report '" + folder_.file(odd) + "'", Stream::Error));
  expect_clean(run("--config '" + odd + "'", Stream::Error));
  const std::string place = testing::add_run(folder_, {.name = "a\u202eb"});
  expect_has(output_of("report '" + place + "'"), "\na\\xe2\\x80\\xaeb ");
}

// In a file that is read later by a terminal or a spreadsheet, too.
TEST_F(CliOutput, NamesFromFilesAreEscapedForPrograms) {
  const std::string evil = "=cmd\x1b[2J\u202e";
  const std::string in = folder_.add("evil.safetensors", weights(1, 20, 12, evil));
  const std::string place = testing::add_run(folder_, {.name = "=a\u202eb", .reducer = "topk"});
  const auto printed = [](const std::string& command, const char* format) {
    const std::string text = output_of(command + " --format " + format);
    for (const char* part : {"\x1b", "\u202e", ",=", "\n="}) {
      EXPECT_FALSE(contains(text, part)) << text;
    }
    return text;
  };
  const std::string decompose = "decompose '" + in + "' --dry-run --rank 2";
  EXPECT_TRUE(contains(printed(decompose, "csv"), "\n'=cmd\\x1b[2J\\xe2\\x80\\xae0.weight,20x12,"));
  const auto json = nlohmann::json::parse(printed(decompose, "json"));
  EXPECT_EQ(json["tensors"][0]["name"], evil + "0.weight");
  EXPECT_TRUE(contains(printed("report '" + place + "'", "csv"), "\n'=a\\xe2\\x80\\xaeb,1,1,"));
  const auto report = nlohmann::json::parse(printed("report '" + place + "'", "json"));
  EXPECT_EQ(report["settings"][0]["name"], "=a\u202eb");
}

// Each @ stands for a run.
class CliIgnored : public CliOutput, public ::testing::WithParamInterface<BadUse> {};

TEST_P(CliIgnored, IsRefusedAndNamed) {
  expect_refused(GetParam(), "", runs()->file("r"));
}

INSTANTIATE_TEST_SUITE_P(
    All, CliIgnored,
    ::testing::Values(
        BadUse{
            "ConfigurationOfATimedPlan", "plan fashion_mnist_mlp --show-config --nodes 1",
            "--show-config prints a configuration and nothing else"},
        BadUse{
            "ConfigurationInJson", "plan fashion_mnist_mlp --show-config --json",
            "--show-config prints a configuration and nothing else"},
        BadUse{
            "TimeOfASameSizeInJson",
            "plan --same-size-as fashion_mnist_mlp --format json --nodes 1",
            "says nothing about time"},
        BadUse{
            "NodesAlone", "plan fashion_mnist_mlp --nodes 2 --set workers=2 --set method.name=ddp",
            "for 2 workers on 2 nodes; got none (--nodes 1: all on one)"},
        BadUse{
            "LatencyAlone", "plan -c fashion_mnist_mlp --latency 1ms",
            "--bandwidth: expected the rate"},
        BadUse{
            "BandwidthOfOneNode", "plan -c fashion_mnist_mlp --nodes 1 --bandwidth 1Gbit",
            "all workers are on one"},
        BadUse{
            "WorkersThatMeasureNothing",
            "plan -c fashion_mnist_mlp --nodes 1 --compute 1s --workers-here 2",
            "--workers-here is for measuring"},
        BadUse{
            "UnknownEnding", "report @ -o r.pdf",
            "ends in .txt, .csv, .json, .md or .html, or --format; got "
            "'r.pdf'"},
        BadUse{"ForceOfNoFile", "report @ --force", "--force goes with -o FILE"},
        BadUse{
            "ForceOfNoBatchFile", "sweep -c fashion_mnist_mlp --seeds 2 --emit-slurm --force",
            "--force goes with --emit-slurm FILE"},
        BadUse{
            "EmptyName", "-c fashion_mnist_mlp --dry-run --name ''",
            "--name: expected NAME, got ''"},
        BadUse{
            "EmptyOutput", "-c fashion_mnist_mlp --dry-run --output ''",
            "--output: expected FOLDER, got ''"},
        BadUse{"EmptyResume", "-c fashion_mnist_mlp --dry-run --resume ''", "--resume: expected"},
        BadUse{"EmptyFile", "report @ -o ''", "--output: expected FILE, got ''"},
        BadUse{"EmptyPattern", "decompose x --dry-run --only ''", "--only: expected GLOB, got ''"},
        BadUse{"EmptyRule", "decompose x --dry-run --keep ''", "--keep: expected FLOAT, got ''"},
        BadUse{"Letter", "-v", "train: unknown option '-v'"},
        BadUse{"Mistyped", "--confg x", "train: unknown option '--confg'; did you mean --config?"},
        BadUse{
            "Processes", "fashion_mnist_mlp --rank 0 --processes 2",
            "train: unknown option '--rank'; set variables instead, as torchrun does: RANK=0 "
            "WORLD_SIZE=2 MASTER_ADDR=host0 MASTER_PORT=29500"},
        BadUse{"Meeting", "sweep s.yaml --task 0 --meet-at=h:1", "MASTER_ADDR=host0"},
        BadUse{"Shortened", "--cfg x", "train: unknown option '--cfg'; did you mean --config?"},
        BadUse{
            "WithAValue", "evaluate --modle=x",
            "evaluate: unknown option '--modle'; did you mean --model?"}),
    kCaseName);

}  // namespace
}  // namespace abtrain
