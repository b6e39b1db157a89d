// What must be ready before workers start: threads, place, data, the folder.
#include "train/setup.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/files.h"
#include "config/config.h"
#include "data/batch.h"
#include "data/image_folder_files.h"
#include "device/devices.h"
#include "error_of.h"
#include "run_folder/checkpoint_files.h"
#include "state/safetensors.h"
#include "temp_folder.h"
#include "toy_run.h"
#include "train/workers/local_workers.h"
#include "with_variables.h"

namespace abtrain::train {
namespace {

namespace fs = std::filesystem;
using config::RunOptions;

TEST(ThreadsPerWorker, AreThoseAskedForElseAShareOfTheCores) {
  RunOptions options;
  const int cores = device::cpu_cores();
  {
    const testing::WithVariables none{{"OMP_NUM_THREADS", {}}};
    EXPECT_EQ(threads_per_worker(options, 1), cores);
    EXPECT_EQ(threads_per_worker(options, cores), 1);
    EXPECT_EQ(threads_per_worker(options, 10 * cores), 1);
    EXPECT_EQ(threads_per_worker(options, 2), std::max(1, cores / 2));
  }
  const testing::WithVariables three{{"OMP_NUM_THREADS", "3,2"}};
  EXPECT_EQ(threads_per_worker(options, 10 * cores), 3);
  options.train.threads = 5;
  EXPECT_EQ(threads_per_worker(options, 1), 5);
}

TEST(DecodeThreads, OnlyAutoIsReplaced) {
  RunOptions options;
  const int cores = device::cpu_cores();
  EXPECT_EQ(decode_threads(options.data, 1), cores);
  EXPECT_EQ(decode_threads(options.data, 100 * cores), 1);
  options.data.decode_threads = 7;
  EXPECT_EQ(decode_threads(options.data, 100), 7);
}

TEST(Place, OfThreadsOnTheCpu) {
  Log log(LogLevel::Quiet);
  RunOptions options;
  options.workers = 3;
  options.device = device::DeviceChoice::Cpu;
  LocalWorkers host(3);
  train::Setup setup;
  setup.back_end = BackEnd::Mpi;
  choose_place(setup, options, host, log);
  EXPECT_EQ(setup.device, at::Device(at::kCPU));
  EXPECT_EQ(setup.back_end, BackEnd::Local);
  const auto choose = [&] { choose_place(setup, options, host, log); };
  options.comm = BackEnd::Mpi;
  expect_error(choose, ErrorKind::Config);
  options.comm.reset();
  options.train.cuda_graphs = true;
  EXPECT_TRUE(expect_error(choose, ErrorKind::Config).starts_with("train.cuda_graphs: "));
}

class Prepared : public ::testing::Test {
 protected:
  Prepared() {
    data::add_image_folder(root_, 2, 8, 4);
    options_ = testing::toy_options(2, 1);
    options_.device = device::DeviceChoice::Cpu;
    options_.data.name = "image-folder";
    options_.data.root = root_.path();
    options_.data.image_size = 16;
    options_.data.resize = 18;
    options_.data.batch_size = 3;
    options_.data.validation = 4;
    options_.method.name = "ddp";
    options_.train.steps = 0;
    options_.train.epochs = 5;
  }
  ~Prepared() override {
    at::set_num_threads(threads_);
  }

  const int threads_ = at::get_num_threads();
  const TempFolder root_;
  RunOptions options_;
  const LocalWorkers host_{2};
  Log log_{LogLevel::Quiet};
};

TEST_F(Prepared, HasDataLengthAndTheSameWeightsForAll) {
  train::Setup setup;
  prepare(
      setup, options_, /*resumes=*/false, host_, [](const std::string&) {}, log_);
  // 12 of 16 images, 2 workers with 3 images per step.
  EXPECT_EQ(setup.dataset.train.size(), 12);
  EXPECT_EQ(setup.validation.size(), 4);
  EXPECT_EQ(setup.dataset.test.size(), 8);
  EXPECT_EQ(setup.length.steps_per_epoch, 2);
  EXPECT_EQ(setup.length.steps, 10);
  EXPECT_EQ(setup.device_copies, nullptr);
  EXPECT_EQ(at::get_num_threads(), 1);  // train.threads of the toy options
  const data::ExampleShape& shape = setup.dataset;
  std::array<std::unique_ptr<nn::Model>, 2> models;
  for (auto& model : models) {
    model = nn::make_model(options_.model, shape);
    model->copy_from(*setup.initial);
  }
  testing::expect_same_bits(*models[0], *models[1]);
  EXPECT_FALSE(testing::tensors_of(*models[0]).empty());
}

TEST_F(Prepared, SaysFirstWhatWasRead) {
  const TempFolder folder;
  root_.add("train/c0/notes.txt", "no image");
  const std::string file = folder.file("log");
  const int descriptor = ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  Log log(LogLevel::Info, descriptor);
  train::Setup setup;
  prepare(
      setup, options_, /*resumes=*/false, host_, [](const std::string&) {}, log);
  ::close(descriptor);
  const std::string text = read_file(file);
  for (const std::string& line :
       {formatted(
            "{}: image-folder from {}, 12 training and 8 test images; 2 classes: c0, c1\n",
            options_.name, root_.path()),
        root_.path() + "/train: 1 file was skipped",
        root_.path() + ": training images come from train, test images from val\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST_F(Prepared, RefusesWhatDoesNotFitTheData) {
  train::Setup setup;
  const auto prepare_now = [&] {
    prepare(
        setup, options_, /*resumes=*/false, host_, [](const std::string&) {}, log_);
  };
  options_.data.batch_size = 7;  // twice that is more than 12 images
  expect_error(prepare_now, ErrorKind::Config);
  options_.data.batch_size = 6;
  prepare_now();
  EXPECT_EQ(setup.length.steps_per_epoch, 1);
  options_.data.root = root_ / "nowhere";
  expect_error(prepare_now, ErrorKind::MissingInput);
}

// Of eight rows, the first four have labels.
TEST_F(Prepared, RefusesAPartWithoutLabels) {
  const TempFolder folder;
  const auto write = [&](const char* part, std::int64_t from, std::int64_t count) {
    const at::Tensor tokens = at::arange(80).view({8, 10}).remainder(7);
    at::Tensor labels = tokens.clone();
    labels.slice(0, 4).fill_(data::kIgnoredLabel);
    state::write_safetensors(
        folder.file(formatted("{}.safetensors", part)),
        {{"x", tokens.narrow(0, from, count).contiguous()},
         {"y", labels.narrow(0, from, count).contiguous()}},
        {});
  };
  options_.data = {};
  options_.data.name = "arrays";
  options_.data.root = folder.path();
  options_.data.batch_size = 1;
  options_.model.name = "gpt-nano";
  options_.model.layers = 1;
  const auto prepare_now = [&] {
    train::Setup setup;
    prepare(
        setup, options_, /*resumes=*/false, host_, [](const std::string&) {}, log_);
  };
  write("train", 0, 8);
  write("test", 3, 2);
  prepare_now();
  write("test", 4, 4);
  expect_error(prepare_now, ErrorKind::DamagedData);
  write("test", 0, 4);
  write("train", 3, 5);
  for (const std::int64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
    options_.data.validation = 2;
    options_.seed = static_cast<std::uint64_t>(seed);
    const auto [code, message] = error_of(prepare_now);
    EXPECT_EQ(code, 65);  // one of the parts lacks the only row that has labels
    EXPECT_NE(message.find("examples are -100 and do not count"), std::string::npos) << message;
  }
}

class OpenFolder : public ::testing::Test {
 protected:
  OpenFolder() {
    for (const char* file :
         {"summary.json", "model.safetensors", "model.sparse.safetensors", "failure.json",
          "metrics.jsonl", "checkpoints/step-0000000004/x"}) {
      folder_.add(formatted("run/{}", file), "of an earlier run");
    }
  }
  bool has(const std::string& file) const {
    return fs::exists(folder_ / ("run/" + file));
  }
  void expect_no_results() const {
    for (const char* file :
         {"summary.json", "model.safetensors", "model.sparse.safetensors", "failure.json"}) {
      EXPECT_FALSE(has(file)) << file;
    }
    EXPECT_TRUE(has("metrics.jsonl"));
  }

  const TempFolder folder_;
  RunOptions options_;
  const LocalWorkers host_{2};
  Log log_{LogLevel::Quiet};
};

TEST_F(OpenFolder, AFreshStartRemovesResultsAndPutsCheckpointsAside) {
  options_.seed = 123;
  options_.workers = 2;
  open_folder(options_, folder_ / "run", {}, log_);
  expect_no_results();
  EXPECT_FALSE(has("checkpoints"));
  EXPECT_TRUE(has("checkpoints.previous/step-0000000004/x"));
  EXPECT_EQ(config::read_config(folder_ / "run/config.yaml").seed, 123U);
  // One that is not there yet is made.
  open_folder(options_, folder_ / "new/run", {}, log_);
  EXPECT_EQ(read_file(folder_ / "new/run/config.yaml"), config::to_yaml(options_));
}

TEST_F(OpenFolder, ARunThatGoesOnKeepsItsCheckpoints) {
  ResumeChoice own;
  own.from.emplace();
  own.from->step = 4;
  own.is_own = true;
  open_folder(options_, folder_ / "run", own, log_);
  expect_no_results();
  EXPECT_TRUE(has("checkpoints/step-0000000004/x"));
  EXPECT_FALSE(has("checkpoints.previous"));
}

TEST_F(OpenFolder, ARunFromAnothersCheckpointIsAFreshOne) {
  ResumeChoice other;
  other.from.emplace();
  open_folder(options_, folder_ / "run", other, log_);
  EXPECT_TRUE(has("checkpoints.previous/step-0000000004/x"));
}

}  // namespace
}  // namespace abtrain::train
