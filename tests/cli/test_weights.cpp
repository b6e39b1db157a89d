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
  const std::string table = output_of(command);
  expect_has(table, "2 of 2 matrices cut");
  expect_has(table, "480 -> 192 numbers");
  const json report = json::parse(output_of(command + " --format json"));
  EXPECT_EQ(report["tensors"][1]["name"], "layer1.weight");
  EXPECT_EQ(report["totals"]["file_after"], std::filesystem::file_size(out));
  expect_has(output_of(command + " --format csv"), "\nlayer0.weight,20x12,20,12,3,F32,");
  std::filesystem::remove(out);
  expect_has(output_of("decompose '" + in + "' --dry-run --keep 0.5"), "nothing written");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(CliDecompose, WarnsOfRankOneAndTakesAFloor) {
  const TempFolder folder;
  const std::string command = "decompose '" + folder.add("in.safetensors", weights(2, 20, 12)) +
                              "' --dry-run --rule budget ";
  expect_exit(
      0, command + "--ratio 7",
      {"2 of 2 matrices are cut to rank 1 (layer0.weight, layer1.weight)"});
  EXPECT_EQ(expect_exit(0, command + "--ratio 2 --floor 0.9"), "");
}

// Each @ stands for a good file.
class CliBadDecompose : public ::testing::TestWithParam<BadUse> {};

TEST_P(CliBadDecompose, EndsWithItsCodeAndSaysWhy) {
  const TempFolder folder;
  const std::string in = folder.add("in.safetensors", weights(1, 9, 7));
  folder.add("cut.safetensors", weights(1, 9, 7).substr(0, 200));
  expect_refused(GetParam(), "decompose ", in);
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadDecompose,
    ::testing::Values(
        BadUse{"Nothing", "", "input is required"},
        BadUse{"NoOutput", "@ --keep 0.9", "-o FILE is required"},
        BadUse{
            "Range", "@ --dry-run --keep 2",
            "--keep: error: expected a number above 0 and at most 1, got "
            "'2'\n"},
        BadUse{"Rule", "@ --dry-run --rule svd", "sigma"},
        BadUse{"TwoKeys", "@ --dry-run --keep 0.9 --rank 3", "--rank does not belong to"},
        BadUse{
            "OtherKey", "@ --dry-run --rule fixed --keep 0.9",
            "--keep does not belong to --rule fixed"},
        BadUse{"WhichRatio", "@ --dry-run --ratio 4", "--rule budget (for the"},
        BadUse{"Size", "@ --dry-run --budget 20Mb/s", "--budget: expected a size"},
        BadUse{"TwoBudgets", "@ --dry-run --budget 1MB --ratio 3", "give only one"},
        BadUse{"BudgetOfARule", "@ --dry-run --budget 1MB --rule energy", "--budget belongs"},
        BadUse{"Dtype", "@ --dry-run --dtype fp8", "--dtype"},
        BadUse{"Glob", "@ --dry-run --only x*", "matches no tensor"},
        BadUse{"Itself", "@ -o @ --rank 2", "is the file that is read"},
        BadUse{"Missing", "no.safetensors --dry-run", "no.safetensors", 66},
        BadUse{"Cut", "`dirname @`/cut.safetensors --dry-run", "'layer0.weight'", 65},
        BadUse{"NoFolder", "@ -o no/such/out --rank 2", "no/such/out", 74}),
    kCaseName);

TEST(CliExport, SaysWhatIsMissing) {
  const TempFolder folder;
  expect_exit(2, "export");
  expect_exit(2, "export x -o y --form dense", {"merged"});
  expect_exit(
      66, "export '" + folder.path() + "' -o '" + folder.file("y") + "'",
      {"expected a run folder"});
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
