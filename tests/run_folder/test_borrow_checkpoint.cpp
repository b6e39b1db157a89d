// A checkpoint of a run that goes on, and prunes it, while another run reads
// it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "run_folder/checkpoint.h"
#include "run_folder/checkpoint_files.h"
#include "temp_folder.h"

namespace {

using namespace abtrain;
namespace fs = std::filesystem;

// A worker's file without tensors: length of the header, then the header.
std::string no_tensors(std::int64_t step) {
  const std::string header =
      formatted(R"({{"__metadata__":{{"state":"{{}}","step":"{}","worker":"0"}}}})", step);
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header;
}

// As CheckpointWriter leaves one.
std::string add_checkpoint(const TempFolder& folder, std::int64_t step) {
  const std::string name = run_folder::step_folder(step);
  const std::string beside = "other/checkpoints/.unfinished-" + name + "/";
  nlohmann::json files;
  for (const auto& [file, content] :
       {std::pair(run_folder::worker_file(0), no_tensors(step)),
        std::pair(std::string("config.yaml"), "workers: 1\nname: " + name + "\n")}) {
    const InputFile added(folder.add(beside + file, content));
    files[file] = {
        {"bytes", added.size()}, {"xxh3", run_folder::hash_text(run_folder::hash_of(added))}};
  }
  const nlohmann::json manifest = {
      {"format", run_folder::kCheckpointFormat},
      {"step", step},
      {"run_steps", 100000},
      {"workers", 1},
      {"leads", {0}},
      {"validation_accuracy", nullptr},
      {"metrics_bytes", 0},
      {"files", files}};
  folder.add(beside + config::kManifest, manifest.dump());
  const std::string place = folder / ("other/checkpoints/" + name);
  fs::rename(folder / beside.substr(0, beside.size() - 1), place);
  return place;
}

void prune(const std::string& place) {
  const fs::path path = place;
  const fs::path gone = path.parent_path() / (".gone-" + path.filename().string());
  fs::rename(place, gone);
  fs::remove_all(gone);
}

TEST(BorrowCheckpoint, OneThatIsPrunedMeanwhileIsFollowedByANewerOne) {
  const TempFolder folder;
  Log log(LogLevel::Quiet);
  std::string newest = add_checkpoint(folder, 1);
  std::jthread other([&](const std::stop_token& stop) {
    for (std::int64_t step = 2; !stop.stop_requested(); ++step) {
      const std::string next = add_checkpoint(folder, step);
      prune(newest);
      newest = next;
    }
  });
  for (int i = 0; i < 150; ++i) {
    const run_folder::Checkpoint found =
        run_folder::borrow_checkpoint(folder / "other", folder / "own", log);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_NO_THROW(run_folder::verify(found));  // whatever the other has removed
    EXPECT_EQ(fs::path(found.copy_of).parent_path(), folder / "other/checkpoints");
  }
  run_folder::return_checkpoint(folder / "own");
  EXPECT_TRUE(fs::is_empty(folder / "own"));
}

TEST(BorrowCheckpoint, DamageIsNamedByItsOwnPlace) {
  const TempFolder folder;
  Log log(LogLevel::Quiet);
  const std::string good = add_checkpoint(folder, 1);
  const std::string bad = add_checkpoint(folder, 2);
  folder.add("other/checkpoints/step-0000000002/config.yaml", "else");
  EXPECT_EQ(run_folder::borrow_checkpoint(folder / "other", folder / "own", log).copy_of, good);
  try {
    run_folder::borrow_checkpoint(bad, folder / "own", log);
    ADD_FAILURE() << "a damaged checkpoint was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::DamagedData);
    EXPECT_EQ(std::string(error.what()).find(bad + "/config.yaml"), 0U) << error.what();
  }
}

}  // namespace
