// What every scheme must do, whatever it sends.
#include <algorithm>

#include "base/text.h"
#include "compress/code_schemes.h"
#include "error_of.h"

namespace abtrain::compress {
namespace {

struct SchemeCase {
  std::string name;  // of the test
  ReducerOptions options;
  std::vector<std::vector<std::int64_t>> kept = {};  // sizes of tensors of which nothing gets lost
  double tolerance = 2e-5;                           // except by rounding
  std::vector<Slot> slots = three_slots();
  std::int64_t steps = 6;
};

// Convolutions, linear layers, an embedding of three sizes, a small weight and
// biases, in the order of a model.
std::vector<Slot> mixed_slots() {
  std::vector<Slot> slots = {{"conv1", 0, {16, 3, 3, 3}},  {"bias1", 0, {16}},
                             {"conv2", 0, {40, 16, 3, 3}}, {"position", 0, {1, 31, 20}},
                             {"fc1", 0, {100, 51}},        {"bias2", 0, {100}},
                             {"fc2", 0, {10, 100}},        {"small", 0, {3, 3}}};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].position = static_cast<int>(i);
  }
  line_up(slots);
  return slots;
}

std::vector<SchemeCase> scheme_cases() {
  using Sizes = std::vector<std::vector<std::int64_t>>;
  const Sizes coded = {{1}, {33}, {4097}, {40001}};
  const Sizes sparse = {{1}, {63}, {1001}, {20000}};
  // Of 16-bit values: what the collective rounds in a sum belongs to no worker; a
  // worker's own rounding stays with it.
  std::vector<SchemeCase> all = {
      {"twobit", scheme("twobit", {{"threshold", "0.5"}}), coded},
      {"topk", scheme("topk"), sparse, 1e-6},
      {"topk_few", scheme("topk", {{"bits", "0.5"}}), sparse, 1e-6},
      {"chunked", scheme("topk-chunked"), sparse, 1.0 / 2048},
      {"chunked_few", scheme("topk-chunked", {{"bits", "0.5"}}), sparse, 1.0 / 2048},
      {"powersgd_1", scheme("powersgd", {{"rank", "1"}}), {{301, 97}}},
      {"powersgd_2", scheme("powersgd", {{"rank", "2"}}), {{40, 31}}},
      {"powersgd_4", scheme("powersgd", {{"rank", "4"}}), {{16, 3, 3, 24}}},
      {"powersgd_fp16", scheme("powersgd", {{"rank", "2"}, {"dtype", "fp16"}}), {{40, 31}}, 1e-3},
      {"powersgd_bf16", scheme("powersgd", {{"rank", "2"}, {"dtype", "bf16"}}), {{40, 31}}, 8e-3},
      {"thc_saturated", scheme("thc-saturated")}};
  for (const std::string rotation : {"block", "full", "none"}) {
    all.push_back(
        {"thc_" + rotation,
         scheme("thc", {{"rotation", rotation}}),
         {{1}, {1023}, {1025}, {70001}}});
  }
  for (const std::string transport : {"auto", "gather", "int8"}) {
    const Words words = {{"transport", transport}};
    all.push_back({"threshold_" + transport, scheme("threshold", words)});
    all.push_back({"ternary_" + transport, scheme("ternary", words)});
    all.push_back({"feedback_" + transport, scheme("threshold", words), coded});
    all.back().options.error_feedback = true;
  }
  all.push_back(
      {"hylo_kernels",
       scheme("hylo"),
       {{1, 7, 3, 3}, {33, 7, 3, 3}, {64, 7, 3, 3}},
       5e-4,
       mixed_slots()});
  for (const std::string transport : {"int8", "a2a", "gather"}) {
    all.push_back(
        {"hylo_" + transport,
         scheme("hylo", {{"transport", transport}}),
         {{1, 41}, {33, 41}, {257, 41}},
         2e-5,
         mixed_slots()});
  }
  for (const std::string& name : kWires) {
    all.push_back({name, scheme(name), {{1}, {33}, {300}, {4097}, {40001}}});
  }
  return all;
}

TEST(SchemeCases, LeaveNoSchemeOut) {
  const std::vector<SchemeCase> cases = scheme_cases();
  for (const Scheme* each : schemes()) {
    const auto is_of = [&](const SchemeCase& c) { return c.options.name == each->name; };
    EXPECT_EQ(std::ranges::any_of(cases, is_of), each->compresses) << each->name;
  }
}

class EveryScheme : public ::testing::TestWithParam<SchemeCase> {};
INSTANTIATE_TEST_SUITE_P(
    Schemes, EveryScheme, ::testing::ValuesIn(scheme_cases()),
    [](const auto& test) { return test.param.name; });

TEST_P(EveryScheme, KeepsWhatItDoesNotSend) {
  const SchemeCase& c = GetParam();
  for (const int n : {1, 2, 3, 4, 8}) {
    for (const std::vector<std::int64_t>& sizes : c.kept) {
      SCOPED_TRACE(formatted("{} workers, {} rows", n, sizes[0]));
      check_conservation(c.options, one_slot(sizes), n, c.tolerance);
    }
  }
}

TEST_P(EveryScheme, SendsTheBytesThatItSays) {
  const SchemeCase& c = GetParam();
  for (const int n : {1, 2, 3, 4, 8, 9}) {
    for (const double mebibytes : {0.0, 0.01}) {
      for (const std::int64_t least : {1, 100}) {
        ReducerOptions options = c.options;
        options.bucket_mb = mebibytes;
        options.min_numel = least;
        options.dense_steps = 2;
        run_steps(options, c.slots, n, c.steps, normal_gradients(numel_of(c.slots)));
      }
    }
  }
}

TEST_P(EveryScheme, MakesZerosOfZeros) {
  const at::Tensor zeros = at::zeros({numel_of(GetParam().slots)});
  for (const int n : {1, 2, 3, 8}) {
    run_steps(
        GetParam().options, GetParam().slots, n, 3, [&](int, std::int64_t) { return zeros; },
        [](std::int64_t, const Step& step) {
          EXPECT_TRUE(step.estimates[0].eq(0).all().item<bool>());
        });
  }
}

// A NaN or an infinity in any layer, at its begin, in its middle or at its end,
// in one worker's gradient, shows to all.
TEST_P(EveryScheme, ShowsWhatIsNotFinite) {
  const SchemeCase& c = GetParam();
  for (const int n : {2, 3}) {
    std::vector<at::Tensor> gradients = gradients_of(n, numel_of(c.slots));
    const at::Tensor finite = gradients.back();
    for (const Slot& slot : c.slots) {
      for (const std::int64_t place : {std::int64_t{0}, slot.numel() / 2, slot.numel() - 1}) {
        for (const float bad : {NAN, INFINITY, -INFINITY}) {
          gradients.back() = finite.clone();
          gradients.back()[slot.offset + place].fill_(bad);
          for (const at::Tensor& estimate : estimates_of(c.options, c.slots, gradients)) {
            EXPECT_FALSE(estimate.isfinite().all().item<bool>())
                << bad << " at " << place << " of " << slot.name;
          }
        }
      }
    }
  }
}

// Half of the steps, a checkpoint, and the other half by another object: the
// estimates of an unbroken run, with all tensors in one bucket and with one in
// each.
TEST_P(EveryScheme, GoesOnFromACheckpoint) {
  const SchemeCase& c = GetParam();
  const GradientOf gradient = normal_gradients(numel_of(c.slots), 0.3);
  for (const double mebibytes : {0.0, 1e-6}) {
    ReducerOptions options = c.options;
    options.bucket_mb = mebibytes;
    comm::run_workers(3, 60, [&](comm::Communicator& world) {
      const at::Tensor whole = at::zeros({numel_of(c.slots)});
      const at::Tensor broken = whole.clone();
      GradientExchange unbroken(options, 5), first(options, 5), second(options, 5);
      unbroken.bind(c.slots, whole, world);
      first.bind(c.slots, broken, world);
      second.bind(c.slots, broken, world);
      for (std::int64_t t = 0; t < c.steps; ++t) {
        if (t == c.steps / 2) {
          state::State state = state_of(first);
          load_state(second, state);
          state.own["residual.0"] = at::zeros({1});
          first.bind(c.slots, broken, world);
          expect_error([&] { load_state(first, state); }, ErrorKind::DamagedData, {"'residual.0'"});
        }
        whole.copy_(gradient(world.rank(), t));
        unbroken.finish(t);
        broken.copy_(gradient(world.rank(), t));
        (t < c.steps / 2 ? first : second).finish(t);
        EXPECT_TRUE(broken.equal(whole)) << "step " << t;
      }
    });
  }
}

TEST(SchemesWithoutFeedback, ForgetTheLastStep) {
  for (const std::string name : {"topk", "topk-chunked", "int8", "int4", "int2"}) {
    at::Tensor first;
    run_steps(
        scheme(name, {{"error_feedback", "false"}}), one_slot({700}), 3, 4,
        [](int worker, std::int64_t) { return normal_gradients(700)(worker, 0); },
        [&](std::int64_t t, const Step& step) {
          first = t == 0 ? step.estimates[0] : first;
          EXPECT_TRUE(step.estimates[0].equal(first)) << name << " step " << t;
        });
  }
}

// Of which |u|_1 is far below sqrt(d) |u|_2: a sign alone is a bad estimate.
// They come again after `period` steps.
GradientOf heavy_tails(std::int64_t period) {
  return [=](int worker, std::int64_t step) {
    return normal_gradients(301)(worker, step % period).pow_(5).mul_(0.01);
  };
}

// A residual that loses the common estimate instead of a worker's own part
// grows with the steps where each worker's gradients lie around another mean.
TEST(Residuals, StopGrowing) {
  struct Row {
    ReducerOptions options;
    std::vector<std::int64_t> sizes;
    int n;
    GradientOf gradient;
    std::int64_t steps = 3000;
  };
  std::vector<Row> rows = {
      {scheme("hylo"), {12, 18}, 3, normal_gradients(216)},
      {scheme("hylo"), {12, 18}, 3, normal_gradients(216, 1.0)},
      {scheme("hylo"), {12, 2, 3, 3}, 3, normal_gradients(216, 1.0)},
      {scheme("threshold", {{"error_feedback", "true"}}), {600}, 3, normal_gradients(600)},
      {scheme("threshold", {{"error_feedback", "true"}}), {600}, 3, normal_gradients(600, 0.5)},
      {scheme("topk"), {640}, 2, normal_gradients(640, 0.5)},
      {scheme("topk-chunked"), {640}, 2, normal_gradients(640, 0.5)},
      {scheme("thc-saturated", {{"block", "128"}}), {300}, 2, normal_gradients(300, 0.5)}};
  for (const std::string rotation : {"block", "full", "none"}) {
    const Words words = {{"rotation", rotation}, {"block", "128"}};
    rows.push_back({scheme("thc", words), {300}, 2, normal_gradients(300, 0.5)});
  }
  for (const std::string& name : kWires) {
    rows.push_back({scheme(name), {301}, 3, normal_gradients(301), 1500});
    rows.push_back({scheme(name), {301}, 3, normal_gradients(301, 1.0), 1500});
    // The same extremes in each quarter.
    rows.push_back({scheme(name), {301}, 2, heavy_tails(125), 1500});
  }
  for (const Row& row : rows) {
    SCOPED_TRACE(*row.options.name);
    check_bounded(row.options, one_slot(row.sizes), row.n, row.gradient, row.steps);
  }
}

}  // namespace
}  // namespace abtrain::compress
