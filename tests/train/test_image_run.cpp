// Whole runs on a folder of JPEG files, some of them damaged.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "config/config.h"
#include "data/image_folder_files.h"
#include "error_of.h"
#include "plan/plan.h"
#include "run_folder/checkpoint.h"
#include "train/checkpoint_model.h"
#include "train/evaluate_run.h"
#include "train/predict.h"
#include "train/session.h"
#include "weights/model_file.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ImageRun : public ::testing::Test {
 protected:
  ImageRun() {
    for (int c = 0; c < 2; ++c) {
      for (int i = 0; i < 12; ++i) {
        data::add_jpeg(
            root_ / formatted("{}/c{}/{}.jpg", i < 8 ? "train" : "val", c, i),
            data::smooth(40 + i, 30 + 3 * i, 2 * c + 0.01 * i));
      }
    }
    options_.name = "images";
    options_.output = root_ / "runs";
    options_.workers = 2;
    options_.device = device::DeviceChoice::Cpu;
    options_.data.name = "image-folder";
    options_.data.root = root_.path();
    options_.data.image_size = 16;
    options_.data.resize = 18;
    options_.data.batch_size = 3;
    options_.data.augment = data::AugmentName::CropFlip;
    options_.data.validation = 2;
    options_.model.hidden = {8};
    options_.method.name = "ddp";
    options_.train.epochs = 4;
    options_.evaluate.batch_size = 3;
    options_.optimizer.lr = 1e-2;
  }
  void cut(const std::string& name) const {
    const std::string path = root_ / name;
    fs::resize_file(path, fs::file_size(path) / 2);
  }
  // Returns the report.
  std::string trained() const {
    Log log(LogLevel::Quiet);
    return train(options_, {}, log);
  }
  std::string folder() const {
    return options_.output + "/" + options_.name;
  }
  json evaluated(const weights::RunModel& model) const {
    Log log(LogLevel::Quiet);
    return evaluate_run(options_, model, log);
  }
  json summary() const {
    return json::parse(read_file(folder() + "/summary.json"));
  }
  const TempFolder root_;
  config::RunOptions options_;
};

TEST_F(ImageRun, TrainsAndEvaluatesToTheSameFigure) {
  const std::string report = trained();
  const json summary = this->summary();
  EXPECT_EQ(summary["steps"], 8);  // 14 images, 2 workers x 3
  EXPECT_EQ(summary["damaged_images"]["count"], 0);
  EXPECT_EQ(report.find("damaged"), std::string::npos);
  EXPECT_GT(summary["accuracy"], 0.5);  // two quite different pictures
  const json again = evaluated({folder()});
  EXPECT_EQ(again["accuracy"], summary["accuracy"]);
  EXPECT_EQ(again["images"], 8);
  const json& confusion = again["confusion"];
  const auto at = [&](int i, int j) { return confusion[i][j].get<std::int64_t>(); };
  EXPECT_EQ(at(0, 0) + at(0, 1), 4);
  EXPECT_EQ(at(1, 0) + at(1, 1), 4);
  EXPECT_EQ(static_cast<double>(at(0, 0) + at(1, 1)) / 8, again["accuracy"].get<double>());
  EXPECT_EQ(again["per_class"][1]["name"], "c1");
  EXPECT_EQ(weights::about_of(folder() + "/model.safetensors")["classes"], "[\"c0\",\"c1\"]");
  expect_has(plan::plan_text(options_), "14 training and 8 test images of 3x16x16");
}

// Three workers share 6,170 gradients, so that they send different amounts.
TEST_F(ImageRun, EvaluationsGiveTheMeanOfTheBytesThatWorkersSend) {
  options_.workers = 3;
  options_.train.steps = 2;
  trained();
  json last;
  std::istringstream events(read_file(folder() + "/metrics.jsonl"));
  for (std::string line; std::getline(events, line);) {
    const json event = json::parse(line);
    last = event["event"] == "evaluate" ? event : last;
  }
  const json traffic = summary()["traffic"];
  EXPECT_EQ(last["bytes_per_worker"], traffic["bytes_per_worker"]);
  EXPECT_LT(last["bytes_per_worker"], traffic["bytes_max"]);
}

// The same model whatever the number of threads that decode.
TEST_F(ImageRun, DecodeThreadsDoNotChangeTheResult) {
  const auto model = [&](std::int64_t threads) {
    options_.data.decode_threads = threads;
    options_.name = formatted("threads{}", threads);
    trained();
    return read_file(folder() + "/model.safetensors");
  };
  const std::string one = model(1);
  EXPECT_TRUE(model(4) == one);
}

TEST_F(ImageRun, PredictsWhatItEvaluates) {
  cut("val/c0/9.jpg");
  trained();
  const json evaluation = evaluated({folder()});
  Log log(LogLevel::Quiet);
  std::vector<std::vector<int>> counts(2, std::vector<int>(2));
  std::int64_t damaged = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    const Predictions found =
        predict(options_, {{folder()}, {root_ / formatted("val/c{}", c)}, 1}, log);
    EXPECT_EQ(found.class_names, (std::vector<std::string>{"c0", "c1"}));
    damaged += found.damaged;
    for (const Prediction& of : found.of_files) {
      ++counts[c][static_cast<std::size_t>(of.classes.front())];
    }
  }
  EXPECT_EQ(evaluation["confusion"], json(counts));
  EXPECT_EQ(damaged, 1);
}

TEST_F(ImageRun, SurvivesAFewDamagedFiles) {
  cut("train/c1/2.jpg");
  cut("val/c0/10.jpg");
  const std::string report = trained();
  const json summary = this->summary();
  EXPECT_EQ(summary["damaged_images"]["count"], 2);
  EXPECT_EQ(
      summary["damaged_images"]["files"],
      (json{root_ / "train/c1/2.jpg", root_ / "val/c0/10.jpg"}));
  expect_has(report, "damaged images    2 left out: ");
  // Of seven images, not eight.
  const double correct = summary["accuracy"].get<double>() * 7;
  EXPECT_NEAR(correct, std::round(correct), 1e-9);
  const json again = evaluated({folder()});
  EXPECT_EQ(again["images"], 7);
  EXPECT_EQ(again["accuracy"], summary["accuracy"]);
}

// The model of a checkpoint is the one that was evaluated when it was saved,
// whatever the workers hold apart.
TEST_F(ImageRun, ACheckpointHasTheModelThatWasEvaluated) {
  options_.train.steps = 16;
  options_.method.warmup_steps = Duration::steps(3);
  options_.method.sync_every = Duration::steps(6);
  options_.method.full_rank_steps = Duration::steps(3);
  options_.method.group_size = 1;
  options_.method.rank.rule = linalg::RankRuleName::Fixed;
  options_.method.rank.rank = 2;
  options_.evaluate.every = options_.checkpoint.every = Duration::steps(5);
  options_.evaluate.norm_batches = 1;
  options_.checkpoint.keep = 20;
  for (const char* method : {"ddp", "ab", "diloco"}) {
    SCOPED_TRACE(method);
    options_.method.name = method;
    const bool has_norms = options_.method.name == "ab";
    options_.model.name = has_norms ? "resnet18" : "mlp";
    options_.model.width = has_norms ? 0.0625 : 1;
    trained();
    const std::string folder = this->folder();
    fs::remove(folder + "/model.safetensors");  // it is not used
    std::ifstream metrics(folder + "/metrics.jsonl");
    int seen = 0;
    for (std::string line; std::getline(metrics, line);) {
      const json event = json::parse(line);
      if (event["event"] != "evaluate" || event["final"] == true) {
        continue;
      }
      Log log(LogLevel::Quiet);
      const auto checkpoint = run_folder::named_checkpoint(
          folder, formatted("step-{}", event["step"].get<std::int64_t>()));
      const std::string file = root_ / "model.safetensors";
      save_model_of(checkpoint, config::read_config(checkpoint.folder + "/config.yaml"), file, log);
      const json again = evaluated({folder, file, "its name"});
      EXPECT_EQ(again["accuracy"], event["accuracy"]) << line;
      EXPECT_NEAR(again["loss"].get<double>(), event["loss"].get<double>(), 1e-6) << line;
      EXPECT_EQ(again["model"], "its name");
      ++seen;
    }
    EXPECT_EQ(seen, 3);
    fs::remove_all(folder);
  }
}

TEST_F(ImageRun, TooManyDamagedFilesEndIt) {
  cut("train/c0/1.jpg");
  cut("train/c1/2.jpg");
  cut("train/c1/5.jpg");
  const std::string message = expect_error(
      [&] { trained(); }, ErrorKind::DamagedData,
      {"data.max_damaged", "allows 1 of the 16 training images", ".jpg: "});
  const json failure = json::parse(read_file(folder() + "/failure.json"));
  EXPECT_EQ(failure["exit_code"], 65);
  EXPECT_EQ(failure["message"], message);
  EXPECT_FALSE(fs::exists(folder() + "/summary.json"));
}

TEST_F(ImageRun, TooManyDamagedTestImagesEndItToo) {
  for (const char* name : {"val/c0/8.jpg", "val/c1/9.jpg"}) {
    cut(name);
  }
  expect_error([&] { trained(); }, ErrorKind::DamagedData, {"images in val"});
}

}  // namespace
}  // namespace abtrain::train
