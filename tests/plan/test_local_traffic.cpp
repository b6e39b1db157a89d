// The formulas of methods with local steps against the meter, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compress/schemes.h"
#include "plan/traffic_meter.h"
#include "reducer_words.h"
#include "toy_data.h"

namespace abtrain::plan {
namespace {

using methods::Averaged;
using testing::expect_plan_is_meter;

struct LocalCase {
  const char* name;
  const char* method;
  int workers;
  int warmup, interval, fragments, delay, steps;
  const char* dtype;
  Averaged average = Averaged::Params;
  const char* optimizer = "adamw";
  const char* model = "mlp";
  const char* reducer = "plain";
};

std::vector<LocalCase> reducer_cases() {
  std::vector<LocalCase> cases;
  for (const compress::Scheme* scheme : compress::schemes()) {
    if (scheme->compresses) {
      LocalCase c{scheme->name, "diloco", 3, 2, 4, 2, 1, 21, "auto"};
      c.reducer = scheme->name;
      cases.push_back(c);
    }
  }
  return cases;
}

class LocalTraffic : public ::testing::TestWithParam<LocalCase> {};

TEST_P(LocalTraffic, PlanEqualsMeter) {
  const LocalCase c = GetParam();
  config::RunOptions o = testing::metered_run(c.workers);
  o.model.name = c.model;
  o.model.width = 0.1;
  o.method.name = c.method;
  o.method.warmup_steps = Duration::steps(c.warmup);
  o.method.sync_every = Duration::steps(c.interval);
  o.method.fragments = c.fragments;
  o.method.delay = c.delay;
  o.method.average = c.average;
  o.optimizer.name = c.optimizer;
  o.reducer.name = c.reducer;
  set_option(o.reducer, "dtype", c.dtype);
  o.reducer.bucket_mb = 0.002;
  o.reducer.min_numel = 64;
  o.reducer.block = 64;
  o.reducer.bits = 4;
  o.reducer.dense_steps = 6;
  o.train.steps = c.steps;
  const bool image = std::string(c.model) != "mlp";
  expect_plan_is_meter(o, image ? testing::toy_dataset(64, 1, 16) : testing::toy_dataset(256));
}

std::string case_name(const ::testing::TestParamInfo<LocalCase>& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, LocalTraffic,
    ::testing::Values(
        LocalCase{"average", "local-sgd", 3, 0, 4, 1, 0, 13, "fp32"},
        LocalCase{"ends_with_a_meeting", "local-sgd", 4, 0, 4, 1, 0, 12, "fp32"},
        LocalCase{"warm_up_fp16", "local-sgd", 4, 5, 3, 1, 0, 16, "fp16"},
        LocalCase{"no_meeting", "local-sgd", 2, 3, 50, 1, 0, 9, "bf16"},
        LocalCase{"moments", "local-sgd", 4, 2, 3, 1, 0, 11, "fp32", Averaged::ParamsAndMoments},
        LocalCase{
            "moments_fp16", "local-sgd", 3, 0, 5,
            7,  // not its key
            0, 11, "fp16", Averaged::ParamsAndMoments},
        LocalCase{
            "moment_bf16", "local-sgd", 2, 0, 2, 1, 0, 7, "bf16", Averaged::ParamsAndMoments,
            "sgd"},
        LocalCase{"alone", "diloco", 1, 2, 3, 2, 1, 9, "fp32"},
        LocalCase{"outer", "diloco", 4, 3, 4, 1, 0, 17, "bf16"},
        LocalCase{"delayed", "diloco", 3, 0, 5, 1, 4, 16, "fp32"},
        LocalCase{"fragments", "diloco", 4, 1, 7, 3, 0, 23, "fp32"},
        LocalCase{"streaming", "diloco", 4, 2, 9, 4, 2, 31, "fp16"},
        LocalCase{
            "statistics", "diloco", 2, 1, 4, 2, 1, 8, "fp32", Averaged::Params, "sgd", "resnet18"},
        LocalCase{
            "statistics_moments", "local-sgd", 2, 1, 3, 1, 0, 6, "bf16", Averaged::ParamsAndMoments,
            "sgd", "resnet18"}),
    case_name);

INSTANTIATE_TEST_SUITE_P(Reducers, LocalTraffic, ::testing::ValuesIn(reducer_cases()), case_name);

}  // namespace
}  // namespace abtrain::plan
