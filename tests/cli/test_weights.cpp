// abtrain export and decompose from the command line.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "program.h"
#include "temp_folder.h"
#include "weights_file.h"

namespace abtrain {
namespace {

using nlohmann::json;

TEST(CliDecompose, ReportsInThreeFormats) {
  const TempFolder folder;
  const std::string in = folder.add("in.safetensors", weights(2, 20, 12));
  const std::string out = folder.file("out.safetensors");
  const std::string command = "decompose '" + in + "' -o '" + out + "' --rule fixed --rank 3";
  const Outcome table = run(command, Stream::Out);
  ASSERT_EQ(table.exit_code, 0);
  EXPECT_TRUE(contains(table.text, "2 of 2 matrices cut")) << table.text;
  EXPECT_TRUE(contains(table.text, "480 -> 192 numbers")) << table.text;
  const Outcome text = run(command + " --format json", Stream::Out);
  const json report = json::parse(text.text);
  EXPECT_EQ(report["tensors"][1]["name"], "layer1.weight");
  EXPECT_EQ(report["totals"]["file_after"], std::filesystem::file_size(out));
  const Outcome csv = run(command + " --format csv", Stream::Out);
  EXPECT_TRUE(contains(csv.text, "\nlayer0.weight,20x12,20,12,3,F32,")) << csv.text;
  std::filesystem::remove(out);
  const Outcome dry = run("decompose '" + in + "' --dry-run --keep 0.5", Stream::Out);
  EXPECT_EQ(dry.exit_code, 0);
  EXPECT_TRUE(contains(dry.text, "nothing written")) << dry.text;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(CliDecompose, WarnsOfRankOneAndTakesAFloor) {
  const TempFolder folder;
  const std::string command = "decompose '" + folder.add("in.safetensors", weights(2, 20, 12)) +
                              "' --dry-run --rule budget ";
  const Outcome warned = run(command + "--ratio 7", Stream::Error);
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_TRUE(
      contains(warned.text, "2 of 2 matrices are cut to rank 1 (layer0.weight, layer1.weight)"))
      << warned.text;
  const Outcome even = run(command + "--ratio 2 --floor 0.9", Stream::Error);
  EXPECT_EQ(even.exit_code, 0) << even.text;
  EXPECT_EQ(even.text, "");
}

struct BadDecompose {
  const char* name;
  const char* arguments;  // @ stands for a good file
  int exit_code;
  const char* says;
};

class CliBadDecompose : public ::testing::TestWithParam<BadDecompose> {};

TEST_P(CliBadDecompose, EndsWithItsCodeAndSaysWhy) {
  const TempFolder folder;
  const std::string in = folder.add("in.safetensors", weights(1, 9, 7));
  folder.add("cut.safetensors", weights(1, 9, 7).substr(0, 200));
  std::string arguments = GetParam().arguments;
  for (std::size_t at; (at = arguments.find('@')) != std::string::npos;) {
    arguments.replace(at, 1, in);
  }
  const Outcome outcome = run("decompose " + arguments, Stream::Error);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, GetParam().says)) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "internal error")) << outcome.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadDecompose,
    ::testing::Values(
        BadDecompose{"Nothing", "", 2, "input is required"},
        BadDecompose{"NoOutput", "@ --keep 0.9", 2, "-o FILE is required"},
        BadDecompose{
            "Range", "@ --dry-run --keep 2", 2,
            "--keep: error: expected a number above 0 and at most 1, got "
            "'2'\n"},
        BadDecompose{"Rule", "@ --dry-run --rule svd", 2, "sigma"},
        BadDecompose{"TwoKeys", "@ --dry-run --keep 0.9 --rank 3", 2, "--rank does not belong to"},
        BadDecompose{
            "OtherKey", "@ --dry-run --rule fixed --keep 0.9", 2,
            "--keep does not belong to --rule fixed"},
        BadDecompose{"WhichRatio", "@ --dry-run --ratio 4", 2, "--rule budget (for the"},
        BadDecompose{"Size", "@ --dry-run --budget 20Mb/s", 2, "--budget: expected a size"},
        BadDecompose{"TwoBudgets", "@ --dry-run --budget 1MB --ratio 3", 2, "give only one"},
        BadDecompose{
            "BudgetOfARule", "@ --dry-run --budget 1MB --rule energy", 2, "--budget belongs"},
        BadDecompose{"Dtype", "@ --dry-run --dtype fp8", 2, "--dtype"},
        BadDecompose{"Glob", "@ --dry-run --only x*", 2, "matches no tensor"},
        BadDecompose{"Itself", "@ -o @ --rank 2", 2, "is the file that is read"},
        BadDecompose{"Missing", "no.safetensors --dry-run", 66, "no.safetensors"},
        BadDecompose{"Cut", "`dirname @`/cut.safetensors --dry-run", 65, "'layer0.weight'"},
        BadDecompose{"NoFolder", "@ -o no/such/out --rank 2", 74, "no/such/out"}),
    [](const auto& test) { return test.param.name; });

TEST(CliExport, SaysWhatIsMissing) {
  const TempFolder folder;
  const Outcome none = run("export", Stream::Error);
  EXPECT_EQ(none.exit_code, 2);
  const Outcome form = run("export x -o y --form dense", Stream::Error);
  EXPECT_EQ(form.exit_code, 2);
  EXPECT_TRUE(contains(form.text, "merged")) << form.text;
  const Outcome no_run =
      run("export '" + folder.path() + "' -o '" + folder.file("y") + "'", Stream::Error);
  EXPECT_EQ(no_run.exit_code, 66);
  EXPECT_TRUE(contains(no_run.text, "expected a run folder")) << no_run.text;
}

// Most memory that the program had at a time, in bytes.
double peak(const std::string& in, const std::string& out) {
  std::string program = ABTRAIN_PROGRAM;
  std::vector<std::string> arguments = {program,  "decompose", in,        "-o", out,
                                        "--rule", "budget",    "--ratio", "1.6"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  EXPECT_EQ(status, 0);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// At most 8 times the largest matrix above an idle start, in two passes over
// more than that. Square: its Gram matrix is twice as large as itself.
TEST(CliDecompose, MemoryIsThatOfTheLargestMatrix) {
  constexpr std::size_t kSide = 1024;
  // MKL keeps buffers of several MB, or not, as its threads happen to meet.
  ::setenv("MKL_DISABLE_FAST_MM", "1", /*overwrite=*/1);
  const TempFolder folder;
  const std::string out = folder.file("out");
  const double idle = peak(folder.add("small", weights(1, 8, 6)), out);
  const double all = peak(folder.add("all", weights(6, kSide, kSide)), out);
  EXPECT_LT(all - idle, 8.0 * 4 * kSide * kSide);
  // Before it runs, a spawned program has the memory of the process that
  // spawned it, which must not hide its own.
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  EXPECT_LT(1024.0 * static_cast<double>(own.ru_maxrss), idle);
}

}  // namespace
}  // namespace abtrain
