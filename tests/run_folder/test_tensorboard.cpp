// The bytes of the events file. Expected ones are those that Google's protobuf
// and TensorBoard's own checksums make of the same values; TensorBoard reads
// whole runs in tests/metrics.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "error_of.h"
#include "run_folder/tensorboard.h"
#include "run_folder/tensorboard_records.h"
#include "run_folder/tensorboard_wire.h"
#include "temp_folder.h"

namespace abtrain::run_folder {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

TEST(TensorBoardWire, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
}

TEST(TensorBoardWire, RecordsHaveLengthAndMaskedChecksums) {
  EXPECT_EQ(hex(tfrecord("123456789")), "090000000000000037f97139313233343536373839e5b08ac7");
  EXPECT_EQ(hex(tfrecord("")), "000000000000000029039807d8ea82a2");
}

TEST(TensorBoardWire, FieldsOfEverySize) {
  for (const auto& [message, wanted] : std::vector<std::pair<Message, std::string>>{
           {Message().integer(1, 0), "0800"},
           {Message().integer(2, 127), "107f"},
           {Message().integer(2, 300), "10ac02"},
           {Message().integer(1, -1), "08ffffffffffffffffff01"},
           {Message().integer(16, 1), "800101"},
           {Message().real(1, 1), "09000000000000f03f"},
           {Message().real32(2, 1), "150000803f"},
           {Message().bytes(1, ""), "0a00"},
           {Message().message(1, Message().bytes(1, "a")), "0a030a0161"}}) {
    EXPECT_EQ(hex(message.bytes()), wanted);
  }
}

TEST(TensorBoardScalars, AreTheNumbersOfAnEvent) {
  const ordered_json event = {
      {"event", "evaluate"},   {"step", 7},
      {"seconds", 1.5},        {"accuracy", 0.5},
      {"validation_loss", 2},  {"loss", std::numeric_limits<double>::quiet_NaN()},
      {"train_loss", nullptr}, {"final", true},
      {"mode", "full"},        {"group_accuracy", {0.25, 0.75}}};
  const std::vector<std::pair<std::string, double>> expected = {
      {"evaluate/accuracy", 0.5},
      {"evaluate/validation_loss", 2},
      {"evaluate/group_accuracy/0", 0.25},
      {"evaluate/group_accuracy/1", 0.75}};
  EXPECT_EQ(scalars_of(event), expected);
  EXPECT_TRUE(scalars_of(ordered_json::object()).empty());
}

class TensorBoardFile : public ::testing::Test {
 protected:
  // The file that is not empty.
  std::string path() const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.file_size() > 0) {
        EXPECT_EQ(found, "");
        found = entry.path().string();
      }
    }
    return found;
  }
  std::size_t records() const {
    const std::string bytes = read_file(path());
    std::size_t count = 0;
    for (std::size_t at = 0; at < bytes.size(); ++count) {
      at += 16 + static_cast<unsigned char>(bytes[at]) +
            256U * static_cast<unsigned char>(bytes[at + 1]);
    }
    return count;
  }
  static double start_of(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    return std::stod(split_text(name, '.')[3]);
  }

  TempFolder folder_;
  config::RunOptions options_;
  Log log_{LogLevel::Quiet};
};

TEST_F(TensorBoardFile, HoldsScalars) {
  TensorBoard board(folder_.path(), options_, "", log_);
  EXPECT_EQ(records(), 3U);                                       // version, start, configuration
  board.add({{"event", "sync"}, {"step", 1}, {"mode", "full"}});  // no number
  EXPECT_EQ(records(), 3U);
  board.add(
      {{"event", "decompose"},
       {"step", 300},
       {"seconds", 2.5},
       {"layers",
        {{{"name", "fc1"},
          {"rank", 4},
          {"energy", 0.75},
          {"singular_values", {{"index", {1, 2, 4}}, {"value", {8, 4, 0.5}}}}}}}});
  EXPECT_EQ(records(), 4U);
  const std::string time = Message().real(1, start_of(path()) + 2.5).bytes();
  const std::string event =
      hex(time) +
      "10ac022a240a0f0a0872616e6b2f66633115000080400a110a0a656e657267792f666331"
      "150000403f";
  const std::string whole = hex(read_file(path()));
  EXPECT_NE(whole.find(event), std::string::npos) << whole;
}

TEST_F(TensorBoardFile, IsMadeAnewFromTheLinesThatStay) {
  const std::string line = R"({"event":"step","step":1,"seconds":5.5,"loss":2})"
                           "\n";
  TensorBoard(folder_.path(), options_, "", log_).add(ordered_json::parse(line));
  const std::string first = path();
  const std::string content = read_file(first);
  TensorBoard(folder_.path(), options_, line + "{\"torn\n[3]\n" + line, log_);
  EXPECT_GT(path(), first);
  EXPECT_EQ(start_of(path()), start_of(first));
  EXPECT_EQ(records(), 5U);
  EXPECT_TRUE(read_file(path()).starts_with(content));
  // The one before is empty, those before that are gone.
  TensorBoard(folder_.path(), options_, line, log_);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(read_file(path()) == content);
  remove_events_files(folder_.path());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(TensorBoardFile, StartsWhereTheMetricsBeganWithoutAFile) {
  const double now = [&] {
    TensorBoard board(folder_.path(), options_, "", log_);
    return start_of(path());
  }();
  remove_events_files(folder_.path());
  TensorBoard(
      folder_.path(), options_, R"({"event":"step","step":1,"seconds":5000,"loss":2})", log_);
  EXPECT_NEAR(start_of(path()), now - 5000, 100);
}

TEST_F(TensorBoardFile, LeavesFilesOfOthersAlone) {
  const std::string other = "events.out.tfevents.9999999999.host.17.0";
  folder_.add(other, "theirs");
  // Of this program, from a clock that was ahead.
  folder_.add("events.out.tfevents.9999999998.0000.host", "ours");
  TensorBoard(folder_.path(), options_, "", log_);
  EXPECT_EQ(read_file(folder_.file(other)), "theirs");
  fs::remove(folder_.file(other));
  EXPECT_LT(start_of(path()), 9999999998);
}

TEST_F(TensorBoardFile, ThatCannotBeWrittenIsAnError) {
  expect_error(
      [&] { TensorBoard(folder_.add("file", ""), options_, "", log_); }, ErrorKind::Io,
      {"events.out.tfevents."});
}

}  // namespace
}  // namespace abtrain::run_folder
