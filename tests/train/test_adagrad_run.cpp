// Whole runs with QCMD and QRDA Adagrad and their quantizers.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "config/config.h"
#include "data/dataset.h"
#include "error_of.h"
#include "lacks.h"
#include "temp_folder.h"
#include "train/evaluate_run.h"
#include "train/session.h"

namespace abtrain::train {
namespace {

using nlohmann::json;

// Each test on Fashion-MNIST, in a folder of its own.
class AdagradRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (data::find_dataset("fashion-mnist").found_in.empty()) {
      ABT_LACKS("fashion-mnist");
    }
  }
  config::RunOptions configured(const std::string& config, std::vector<std::string> sets) const {
    sets.insert(
        sets.end(),
        {"device=cpu", "train.threads=1", "output=" + folder_.path(), "evaluate.every=0"});
    return config::read_config(
        std::string(ABTRAIN_SOURCE_DIR) + "/configs/" + config + ".yaml", sets);
  }
  static json summary_of(const config::RunOptions& options, LogLevel level = LogLevel::Quiet) {
    Log log(level);
    train(options, {}, log);
    return json::parse(read_file(options.output + "/" + options.name + "/summary.json"));
  }

  const TempFolder folder_;
};

// Gate 2 of the specification: softmax regression, 4 workers of 16, 2 epochs,
// QRDA, eta 0.1, lambda 1e-3.
TEST_F(AdagradRun, SoftmaxIsSparseWithASmallGradientError) {
  const auto run = [&](const std::string& quantizer) {
    return summary_of(configured(
        "fashion_mnist_softmax_qrda", {"name=" + quantizer, "reducer.name=" + quantizer}));
  };
  const json plain = run("plain");
  const json threshold = run("threshold");
  const json ternary = run("ternary");
  EXPECT_LE(threshold["reducer"]["vnmse"], 0.35);
  EXPECT_GE(ternary["reducer"]["vnmse"], 1.0);
  EXPECT_LT(plain["reducer"]["vnmse"], 1e-10);
  EXPECT_GE(threshold["sparsity"]["zeros"], 0.7);
  EXPECT_NEAR(threshold["accuracy"].get<double>(), plain["accuracy"].get<double>(), 0.01);
  // (P - 1) (ceil(d / 4) + 4 tensors) a step: 784 x 10 and 10.
  EXPECT_EQ(
      threshold["traffic"]["bytes_per_worker"],
      threshold["steps"].get<int>() * 3 * ((7850 + 3) / 4 + 4 * 2));
  for (const json& s : {plain, threshold, ternary}) {
    RecordProperty(
        s["name"].get<std::string>(),
        formatted(
            "{} {} {}", s["accuracy"].dump(), s["sparsity"]["zeros"].dump(),
            s["reducer"]["vnmse"].dump()));
  }
}

// x, s and z are the same on all workers (check_replicas looks), and only the
// l1 term makes zeros.
TEST_F(AdagradRun, ReplicasAgreeAndOnlyL1MakesZeros) {
  for (const std::string optimizer : {"qcmd-adagrad", "qrda-adagrad"}) {
    for (const std::string quantizer : {"threshold", "ternary"}) {
      for (const std::string l1 : {"0", "3e-3"}) {
        const json s = summary_of(configured(
            "fashion_mnist_mlp_qcmd",
            {"name=" + optimizer + quantizer + l1, "model.hidden=[24,20]", "data.batch_size=8",
             "train.steps=60", "train.check_replicas=1", "optimizer.name=" + optimizer,
             "optimizer.l1=" + l1, "reducer.name=" + quantizer,
             quantizer == "ternary" ? "reducer.error_feedback=auto" : "reducer.error_feedback=true",
             "schedule.name=constant"}));
        EXPECT_EQ(s.contains("sparsity"), l1 != "0");
        if (l1 != "0") {
          EXPECT_GT(s["sparsity"]["zeros"], 0.05) << optimizer << quantizer;
          EXPECT_EQ(s["sparsity"]["layers"].size(), 3U);
        }
      }
    }
  }
}

// Centered at 0 a network dies where one with its first weights learns; the run
// says so.
TEST_F(AdagradRun, WarnsWhereHiddenLayersWouldDie) {
  for (const std::string center : {"zero", "init"}) {
    ::testing::internal::CaptureStderr();
    const config::RunOptions options = configured(
        "fashion_mnist_mlp_qcmd",
        {"name=" + center, "model.hidden=[24]", "data.batch_size=8", "train.steps=60",
         "optimizer.name=qrda-adagrad", "optimizer.lr=0.02", "optimizer.l1=1e-2",
         "optimizer.center=" + center, "schedule.name=constant"});
    const json s = summary_of(options, LogLevel::Info);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("optimizer.center: zero pulls") != std::string::npos, center == "zero")
        << said;
    EXPECT_EQ(s["accuracy"].get<double>() < 0.3, center == "zero");
  }
}

TEST_F(AdagradRun, TheSparseModelIsTheDenseOne) {
  const config::RunOptions options =
      configured("fashion_mnist_softmax_qrda", {"name=s", "train.steps=150", "optimizer.l1=5e-3"});
  const json s = summary_of(options);
  EXPECT_LT(s["sparsity"]["sparse_bytes"], s["sparsity"]["dense_bytes"]);
  const std::string run = folder_ / "s";
  Log log(LogLevel::Quiet);
  const json dense = evaluate_run(options, {run}, log);
  const json sparse = evaluate_run(options, {run, "model.sparse.safetensors"}, log);
  EXPECT_EQ(dense["accuracy"], s["accuracy"]);
  EXPECT_EQ(dense["accuracy"], sparse["accuracy"]);
  EXPECT_EQ(dense["loss"], sparse["loss"]);
  EXPECT_NE(dense["model"], sparse["model"]);

  // Places that are not ascending are a damaged file.
  const std::string path = run + "/model.sparse.safetensors";
  std::string content = read_file(path);
  const json header =
      json::parse(content.substr(8, *reinterpret_cast<const std::uint64_t*>(content.data())));
  const auto begin = static_cast<std::size_t>(
      8 + *reinterpret_cast<const std::uint64_t*>(content.data()) +
      header["fc.weight.indices"]["data_offsets"][0].get<std::uint64_t>());
  content[begin + 4] = content[begin];
  content[begin + 5] = content[begin + 1];
  atomic_write(path, content);
  expect_error(
      [&] {
        evaluate_run(options, {run, "model.sparse.safetensors"}, log);
      },
      ErrorKind::DamagedData, {"fc.weight.indices"});
}

}  // namespace
}  // namespace abtrain::train
