// Checkpoints that workers write, list, verify, prune and load, and what a
// save that was interrupted leaves.
#include "run_folder/checkpoint.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/files.h"
#include "comm/run_workers.h"
#include "config/config.h"
#include "damaged_checkpoint.h"
#include "error_of.h"
#include "said_log.h"
#include "temp_folder.h"

namespace abtrain::run_folder {
namespace {

namespace fs = std::filesystem;

// What is saved; worker w's own tensor is `value` + w, and its replicas' is
// `value` + 10 times their lead.
struct Save {
  std::int64_t step = 0;
  std::optional<double> accuracy = {};
  float value = 0;
};

struct Setting {
  std::vector<int> leads = {0};
  std::int64_t keep = 100;
  CheckpointWriter::Hook hook = {};
  Log* log = nullptr;
};

// Whether each save succeeded, according to all workers.
std::vector<bool> save_all(
    const TempFolder& folder, const std::vector<Save>& saves, const Setting& setting = {}) {
  const auto workers = static_cast<int>(setting.leads.size());
  config::RunOptions options;
  options.workers = workers;
  options.method.name = "ddp";
  const CheckpointWriter::Options place{folder.path(), config::to_yaml(options), setting.keep};
  std::vector<bool> all(saves.size(), true);
  std::mutex mutex;
  comm::run_workers(workers, 60, [&](comm::Communicator& world) {
    const int lead = setting.leads[static_cast<std::size_t>(world.rank())];
    CheckpointWriter writer(place, world, world.rank() == 0 ? setting.log : nullptr, setting.hook);
    for (std::size_t i = 0; i < saves.size(); ++i) {
      const Save& save = saves[i];
      state::State state;
      auto archive = state::Archive::saving(state);
      at::Tensor own = at::full({3}, save.value + static_cast<float>(world.rank()));
      at::Tensor shared = at::full({2}, save.value + 10.0F * lead);
      std::int64_t rank = world.rank();
      archive.tensor("own", own, state::Owner::Worker);
      archive.tensor("shared", shared, state::Owner::Replicas);
      archive.value("rank", rank);
      Checkpoint about;
      about.step = save.step;
      about.run_steps = 1000;
      about.validation_accuracy = save.accuracy;
      about.metrics_bytes = 12 + save.step;
      const bool saved = writer.save(about, state, lead);
      const std::lock_guard lock(mutex);
      all[i] = all[i] && saved;
    }
  });
  return all;
}

std::vector<std::int64_t> steps_in(const TempFolder& folder) {
  std::vector<std::int64_t> steps;
  for (const Checkpoint& checkpoint : list_checkpoints(folder.path())) {
    steps.push_back(checkpoint.step);
  }
  return steps;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

using Steps = std::vector<std::int64_t>;
using Names = std::set<std::string>;

TEST(CheckpointFiles, HaveNamesThatSortByNumber) {
  EXPECT_EQ(worker_file(3), "worker-00003.safetensors");
  EXPECT_EQ(worker_file(65535), "worker-65535.safetensors");
  EXPECT_EQ(step_folder(420), "step-0000000420");
  EXPECT_EQ(hash_text(0x1234567890abcdefULL), "1234567890abcdef");
  EXPECT_EQ(hash_text(0xf), "000000000000000f");
}

// The hash of nothing, from the specification of XXH3.
TEST(CheckpointFiles, AreMarkedByTheirHash) {
  const TempFolder folder;
  const auto hash = [&](const char* name, const char* content) {
    return hash_text(hash_of(InputFile(folder.add(name, content))));
  };
  EXPECT_EQ(hash("empty", ""), "2d06800538d394c2");
  EXPECT_NE(hash("some", "abc"), hash("other", "abd"));
}

TEST(SavedCheckpoint, SaysWhatItIs) {
  const TempFolder folder;
  EXPECT_EQ(
      save_all(folder, {{4, 0.75}, {8}}, {.leads = std::vector<int>{0, 0, 2, 2}}),
      (std::vector<bool>{true, true}));
  const Checkpoint first = read_checkpoint(place_of(folder, 4));
  EXPECT_EQ(first.folder, place_of(folder, 4));
  EXPECT_EQ(first.step, 4);
  EXPECT_EQ(first.run_steps, 1000);
  EXPECT_EQ(first.leads, (std::vector<int>{0, 0, 2, 2}));
  EXPECT_EQ(first.workers(), 4);
  EXPECT_EQ(first.validation_accuracy, 0.75);
  EXPECT_EQ(first.metrics_bytes, 16);
  EXPECT_EQ(read_checkpoint(place_of(folder, 8)).validation_accuracy, std::nullopt);
  EXPECT_EQ(
      names_in(place_of(folder, 4)), (Names{
                                         "config.yaml", "manifest.json", worker_file(0),
                                         worker_file(1), worker_file(2), worker_file(3)}));
}

TEST(SavedCheckpoint, GivesEachWorkerItsOwnStateAndItsReplicas) {
  const TempFolder folder;
  const std::vector<int> leads = {0, 0, 2, 0};
  save_all(folder, {{5, {}, 0.5F}}, {.leads = leads});
  const Checkpoint checkpoint = read_checkpoint(place_of(folder, 5));
  verify(checkpoint);
  for (int rank = 0; rank < 4; ++rank) {
    const int lead = leads[static_cast<std::size_t>(rank)];
    const state::State state = load_state(checkpoint, rank);
    EXPECT_EQ(*state.values, (nlohmann::ordered_json{{"rank", rank}}));
    ASSERT_EQ(state.own.size(), 1U);
    ASSERT_EQ(state.replicas.size(), 1U);
    EXPECT_TRUE(at::equal(state.own.at("own"), at::full({3}, 0.5F + static_cast<float>(rank))));
    EXPECT_TRUE(at::equal(state.replicas.at("shared"), at::full({2}, 0.5F + 10.0F * lead)));
    // Stored once, by the lead.
    const state::SafetensorsFile file(checkpoint.folder + "/" + worker_file(rank));
    EXPECT_EQ(file.names().size(), lead == rank ? 2U : 1U) << rank;
  }
}

TEST(SavedCheckpoint, ReplacesAnEarlierOneOfTheSameStep) {
  const TempFolder folder;
  save_all(folder, {{3, {}, 1}, {3, {}, 2}});
  EXPECT_EQ(steps_in(folder), Steps{3});
  EXPECT_EQ(names_in(folder / "checkpoints"), Names{step_folder(3)});
  const Checkpoint checkpoint = read_checkpoint(place_of(folder, 3));
  verify(checkpoint);
  EXPECT_TRUE(at::equal(load_state(checkpoint, 0).own.at("own"), at::full({3}, 2.0F)));
}

TEST(ListCheckpoints, NewestFirstWithoutThoseThatCannotBeRead) {
  const TempFolder folder;
  EXPECT_EQ(steps_in(folder), Steps{});
  save_all(folder, {{3}, {20}, {100}});
  fs::create_directories(place_of(folder, 500));
  fs::copy(place_of(folder, 100), folder / "checkpoints/.unfinished-step-7");
  fs::copy(place_of(folder, 100), folder / "checkpoints/backup");
  EXPECT_EQ(steps_in(folder), (Steps{100, 20, 3}));
}

TEST(NamedCheckpoint, IsTheLastOrTheBestOrThatOfAStep) {
  const TempFolder unscored;
  expect_error([&] { named_checkpoint(unscored.path(), "last"); }, ErrorKind::MissingInput);
  save_all(unscored, {{20}, {100}});
  expect_error(
      [&] { named_checkpoint(unscored.path(), "best"); }, ErrorKind::MissingInput,
      {"no checkpoint 'best', since none has a validation accuracy",
       "there are last, step-100, step-20"});
  const TempFolder folder;
  const auto step = [&](const char* name) { return named_checkpoint(folder.path(), name).step; };
  save_all(folder, {{0, 0.5}, {20}, {40, 0.75}, {60, 0.25}, {100}});
  EXPECT_EQ(step("last"), 100);
  EXPECT_EQ(step("best"), 40);
  EXPECT_EQ(step("step-20"), 20);
  EXPECT_EQ(step("step-0000000020"), 20);
  EXPECT_EQ(step("step-0"), 0);
  for (const char* name : {"step-2", "step-", "", "..", "step-020", "step--1"}) {
    SCOPED_TRACE(name);
    expect_error(
        [&] { step(name); }, ErrorKind::MissingInput,
        {"there are last, best, step-100, step-60, step-40, step-20, step-0"});
  }
  // A damaged one is not passed over.
  fs::resize_file(place_of(folder, 100) + "/" + worker_file(0), 10);
  expect_error([&] { step("last"); }, ErrorKind::DamagedData);
  fs::resize_file(place_of(folder, 100) + "/manifest.json", 10);
  expect_error([&] { step("last"); }, ErrorKind::DamagedData);
  EXPECT_EQ(step("step-60"), 60);
}

TEST(NewestCheckpoint, IsTheNewestThatVerifies) {
  const TempFolder folder;
  SaidLog said(LogLevel::Warning);
  EXPECT_FALSE(newest_checkpoint(folder.path(), said.log()));
  save_all(folder, {{3}, {20}, {100}});
  EXPECT_EQ(newest_checkpoint(folder.path(), said.log())->step, 100);
  EXPECT_EQ(said.text(), "");
  fs::remove(place_of(folder, 100) + "/manifest.json");
  write_file(place_of(folder, 20) + "/config.yaml", "workers: 1\n");
  EXPECT_EQ(newest_checkpoint(folder.path(), said.log())->step, 3);
  expect_has(said.text(), place_of(folder, 100) + "/manifest.json");
  expect_has(said.text(), place_of(folder, 20) + "/config.yaml");
}

// That one was pruned is no damage that a user should hear of.
TEST(NewestCheckpoint, OneThatIsPrunedMeanwhileIsFollowedByANewerOne) {
  const TempFolder folder;
  SaidLog said(LogLevel::Warning);
  save_all(folder, {{1}});
  {
    const std::jthread other([&](const std::stop_token& stop) {
      for (std::int64_t step = 2; step < 1000 && !stop.stop_requested(); ++step) {
        save_all(folder, {{step}}, {.keep = 1});
      }
    });
    for (int i = 0; i < 150; ++i) {
      EXPECT_TRUE(newest_checkpoint(folder.path(), said.log()));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  EXPECT_EQ(said.text(), "");
}

TEST(VerifyCheckpoint, NamesTheFileThatChanged) {
  for (const std::string& name : {std::string(config::kConfig), worker_file(0), worker_file(1)}) {
    const TempFolder folder;
    save_all(folder, {{6}}, {.leads = std::vector<int>{0, 1}});
    const Checkpoint checkpoint = read_checkpoint(place_of(folder, 6));
    EXPECT_NO_THROW(verify(checkpoint));
    const std::string file = checkpoint.folder + "/" + name;
    const std::string whole = read_file(file);
    const auto expect_refused = [&](const std::string& says) {
      const std::string what =
          expect_error([&] { verify(checkpoint); }, ErrorKind::DamagedData, {says});
      EXPECT_TRUE(what.starts_with(file + ": ")) << what;
    };
    std::string other = whole;
    other.back() = static_cast<char>(other.back() ^ 1);
    write_file(file, other);
    expect_refused("XXH3");
    write_file(file, whole + "x");
    expect_refused(formatted("expected {} bytes, found {}", whole.size(), whole.size() + 1));
    write_file(file, whole);
    EXPECT_NO_THROW(verify(checkpoint));
    fs::remove(file);
    expect_has(error_of([&] { verify(checkpoint); }).second, file);
  }
}

TEST(PruneCheckpoints, KeepsTheNewestAndTheBest) {
  const TempFolder folder;
  const Setting two{.keep = 2};
  save_all(folder, {{1, 0.5}, {2, 0.9}, {3, 0.6}, {4, 0.7}, {5}}, two);
  EXPECT_EQ(steps_in(folder), (Steps{5, 4, 2}));
  save_all(folder, {{6, 0.95}}, two);
  EXPECT_EQ(steps_in(folder), (Steps{6, 5}));
  // Of equally good ones the newest is kept.
  save_all(folder, {{7, 0.95}, {8, 0.1}, {9, 0.2}}, two);
  EXPECT_EQ(steps_in(folder), (Steps{9, 8, 7}));
  // Nothing of the others is left.
  EXPECT_EQ(
      names_in(folder / "checkpoints"), (Names{step_folder(7), step_folder(8), step_folder(9)}));
}

TEST(PruneCheckpoints, KeepsNoBestWithoutAccuracies) {
  const TempFolder folder;
  save_all(folder, {{1}, {2}, {3}}, {.keep = 1});
  EXPECT_EQ(steps_in(folder), Steps{3});
}

// A run that goes on with more workers counts fewer steps: its new checkpoints must not be pruned
// in favor of those before, nor may a resume choose these.
TEST(PruneCheckpoints, ThoseWithLaterStepsArePutAside) {
  const TempFolder folder;
  const TempFolder disk;
  for (const bool linked : {false, true}) {
    SaidLog said(LogLevel::Warning);
    fs::remove_all(folder / "checkpoints");
    if (linked) {
      fs::create_directory_symlink(disk.path(), folder / "checkpoints");
    }
    save_all(folder, {{300}, {400, 0.5}}, {.keep = 2});
    save_all(folder, {{150}}, {.keep = 2, .log = &said.log()});
    EXPECT_EQ(steps_in(folder), Steps{150});
    EXPECT_EQ(newest_checkpoint(folder.path(), said.log())->step, 150);
    for (const std::int64_t step : {300, 400}) {
      EXPECT_NO_THROW(
          verified_checkpoint(formatted("{}/{}", previous_of(folder.path()), step_folder(step))));
    }
    expect_has(
        said.text(), "checkpoints.previous: " + step_folder(400) + ", " + step_folder(300));
    save_all(folder, {{180}, {190}}, {.keep = 2});
    EXPECT_EQ(steps_in(folder), (Steps{190, 180}));
  }
}

TEST(FailedSave, LeavesNothingAndTheOlderOnesAsTheyWere) {
  for (const std::string at : {"write", "publish"}) {
    const TempFolder folder;
    const int writer = at == "write" ? 1 : 0;  // worker 0 publishes
    const auto hook = [&](int rank, const char* moment, const std::string& place) {
      if (rank == writer && moment == at && place.ends_with(step_folder(8))) {
        throw Error(ErrorKind::Io, "the disk is full");
      }
    };
    SaidLog said(LogLevel::Warning);
    EXPECT_EQ(
        save_all(folder, {{4}, {8}, {12}}, {.leads = {0, 0}, .hook = hook, .log = &said.log()}),
        (std::vector<bool>{true, false, true}));
    EXPECT_EQ(names_in(folder / "checkpoints"), (Names{step_folder(4), step_folder(12)}));
    EXPECT_NO_THROW(verify(read_checkpoint(place_of(folder, 4))));
    expect_has(
        said.text(), at == "write" ? "step 8: no checkpoint was saved: worker 1 could not"
                                   : "step 8: no checkpoint was saved: the disk is full");
  }
}

// Errors of the file system, of memory and of LibTorch too.
TEST(FailedSave, WhateverIsThrownCostsOnlyThatCheckpoint) {
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[] { throw std::bad_alloc(); }, "out of memory"},
      {[] { throw std::runtime_error("strange"); }, "strange"},
      {[] { TORCH_CHECK(false, "no kernel image"); }, "no kernel image"},
      {[] {
         throw fs::filesystem_error("x", "/far", std::error_code(ESTALE, std::generic_category()));
       },
       "cannot use '/far': Stale file handle"}};
  for (const auto& [fail, says] : cases) {
    const TempFolder folder;
    const auto hook = [&](int rank, const char* moment, const std::string& place) {
      if (rank == 1 && std::string(moment) == "write" && place.ends_with(step_folder(8))) {
        fail();
      }
    };
    SaidLog said(LogLevel::Warning);
    EXPECT_EQ(
        save_all(folder, {{4}, {8}, {12}}, {.leads = {0, 0}, .hook = hook, .log = &said.log()}),
        (std::vector<bool>{true, false, true}));
    EXPECT_EQ(names_in(folder / "checkpoints"), (Names{step_folder(4), step_folder(12)}));
    expect_has(
        said.text(), "step 8: no checkpoint was saved: worker 1 could not write its part: " + says);
  }
}

TEST(FailedSave, IsOneWarningForWorkersThatFailAlike) {
  const TempFolder folder;
  const auto hook = [&](int rank, const char* moment, const std::string&) {
    if (std::string(moment) == "write" && rank > 0) {
      throw Error(
          ErrorKind::Io,
          rank == 2 ? "the disk is away" : formatted("cannot write 'worker-{}': it is full", rank));
    }
  };
  SaidLog said(LogLevel::Warning);
  save_all(folder, {{8}}, {.leads = {0, 0, 0, 0, 0}, .hook = hook, .log = &said.log()});
  EXPECT_EQ(
      said.text(),
      "warning: step 8: no checkpoint was saved: worker 1 could not write its part: cannot write "
      "'worker-1': it is full; worker 2 could not write its part: the disk is away; 2 other "
      "workers failed in the same way\n");
}

TEST(ReplaceFolder, PutsBackWhatItCannotReplace) {
  const TempFolder folder;
  folder.add("to/a", "old");
  folder.add("old/a", "older");
  expect_error(
      [&] { replace_folder(folder / "none", folder / "to", folder / "old"); }, ErrorKind::Io,
      {"cannot rename '" + folder / "none" + "'"});
  EXPECT_EQ(read_file(folder / "to/a"), "old");
  folder.add("from/a", "new");
  replace_folder(folder / "from", folder / "to", folder / "old");
  EXPECT_EQ(read_file(folder / "to/a"), "new");
  EXPECT_EQ(read_file(folder / "old/a"), "old");
  settle_replaced(folder / "to", folder / "old");
  EXPECT_EQ(names_in(folder.path()), Names{"to"});
  // Killed in between.
  fs::rename(folder / "to", folder / "old");
  settle_replaced(folder / "to", folder / "old");
  EXPECT_EQ(read_file(folder / "to/a"), "new");
}

TEST(CleanCheckpoints, RemovesWhatIsNeitherWholeNorNeeded) {
  const TempFolder folder;
  save_all(folder, {{3}, {4}});
  const std::string all = folder / "checkpoints/";
  fs::copy(place_of(folder, 3), all + ".unfinished-step-0000000009");
  fs::copy(place_of(folder, 3), all + ".obsolete-step-0000000003");
  clean_checkpoints(folder.path());
  EXPECT_EQ(names_in(all), (Names{step_folder(3), step_folder(4)}));
  EXPECT_EQ(names_in(folder.path()), Names{"checkpoints"});
}

// Killed between moving the old one away and putting the new one in its place.
TEST(CleanCheckpoints, PutsBackWhatASaveHadMovedAway) {
  const TempFolder folder;
  save_all(folder, {{3}, {4}});
  const std::string all = folder / "checkpoints/";
  fs::rename(place_of(folder, 3), all + ".obsolete-step-0000000003");
  fs::rename(place_of(folder, 4), all + ".obsolete-step-0000000004");
  fs::remove(all + ".obsolete-step-0000000004/config.yaml");  // half removed
  clean_checkpoints(folder.path());
  EXPECT_EQ(names_in(all), Names{step_folder(3)});
  EXPECT_NO_THROW(verify(read_checkpoint(place_of(folder, 3))));
}

}  // namespace
}  // namespace abtrain::run_folder
