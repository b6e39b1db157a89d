#include "run_folder/recorder.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "error_of.h"
#include "said_log.h"
#include "temp_folder.h"

namespace abtrain::run_folder {
namespace {

using nlohmann::ordered_json;

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    options_.train.tensorboard = false;
  }
  // The only line of metrics.jsonl that this leaves, without its seconds.
  std::string line_of(const std::function<void(Recorder&)>& record) {
    RunLog run(options_, folder_.path(), said_.log());
    Recorder recorder(&run);
    record(recorder);
    run.flush();
    ordered_json event = ordered_json::parse(read_file(folder_ / "metrics.jsonl"));
    event.erase("seconds");
    return event.dump();
  }

  const TempFolder folder_;
  config::RunOptions options_;
  SaidLog said_;
};

methods::LayerRank layer(const std::string& name, std::int64_t rank) {
  methods::LayerRank out;
  out.name = name;
  out.m = 20;
  out.n = 10;
  out.rank = rank;
  out.energy = 0.75;
  out.first_energy = 0.5;
  return out;
}

TEST_F(RecorderTest, ADecompositionHasItsLayersAndSingularValues) {
  methods::LayerRank one = layer("fc1", 3);
  one.values = {{1, 10}, {123456.789, 0.125}};
  EXPECT_EQ(
      line_of([&](Recorder& recorder) {
        recorder.decomposed(7, {one, layer("fc2", 0)}, 0.25);
      }),
      R"({"event":"decompose","step":7,"duration":0.25,"layers":[)"
      R"({"name":"fc1","m":20,"n":10,"rank":3,"energy":0.75,)"
      R"("first_energy":0.5,)"
      R"("singular_values":{"index":[1,10],"value":[123457.0,0.125]}},)"
      R"({"name":"fc2","m":20,"n":10,"rank":0,"energy":0.75,)"
      R"("first_energy":0.5,)"
      R"("singular_values":{"index":[],"value":[]}}]})");
  EXPECT_EQ(said_.text(), "");
}

TEST_F(RecorderTest, ADecompositionThatFactorsNothingIsWarnedOf) {
  line_of([](Recorder& recorder) {
    recorder.decomposed(7, {layer("fc1", 0), layer("fc2", 0)}, 0.25);
  });
  expect_has(said_.text(), "step 7: no layer was factored");
}

TEST_F(RecorderTest, ASynchronizationHasItsMode) {
  EXPECT_EQ(
      line_of([](Recorder& recorder) { recorder.synchronized(9, "only-b", 0.5); }),
      R"({"event":"sync","step":9,"duration":0.5,"mode":"only-b"})");
}

compress::Evaluation evaluation(double vnmse) {
  compress::Evaluation out;
  out.vnmse = vnmse;
  out.residual_norm = 2;
  out.payload_bits = 4;
  out.sent_bits = 6;
  out.costs.encode = 0.5;
  out.costs.collective = 0.25;
  out.costs.decode = 0.125;
  return out;
}

TEST_F(RecorderTest, AnEvaluationOfAReducerIsInMilliseconds) {
  EXPECT_EQ(
      line_of([](Recorder& recorder) { recorder.compressed(3, evaluation(0.5)); }),
      R"({"event":"compression","step":3,"vnmse":0.5,"residual_norm":2.0,)"
      R"("payload_bits":4.0,"sent_bits":6.0,"encode_ms":500.0,)"
      R"("collective_ms":250.0,"decode_ms":125.0})");
}

TEST(Recorder, AddsUpWithoutALogToo) {
  Recorder recorder(nullptr);
  recorder.decomposed(1, {layer("fc1", 0)}, 1);
  recorder.synchronized(1, "full", 1);
  recorder.compressed(1, evaluation(0.5));
  recorder.compressed(2, evaluation(0.25));
  recorder.add_svd_seconds(2);
  recorder.add_svd_seconds(0.5);
  EXPECT_EQ(recorder.sums().vnmse, 0.75);
  EXPECT_EQ(recorder.sums().vnmse_count, 2);
  EXPECT_EQ(recorder.sums().svd, 2.5);
}

}  // namespace
}  // namespace abtrain::run_folder
