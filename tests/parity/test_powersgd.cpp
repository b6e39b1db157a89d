// The estimates of `reducer: powersgd` beside those of PyTorch's powerSGD_hook,
// on the same gradients, from the same Q.
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "comm/run_workers.h"
#include "compress/gradient_exchange.h"
#include "python.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

constexpr int kWorkers = 3;
constexpr int kSteps = 3;
constexpr std::int64_t kRank = 4;

at::Tensor normal(std::int64_t numel, std::uint64_t seed) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

at::Tensor gradient_of(std::int64_t numel, int worker, std::int64_t step) {
  return normal(numel, 100 * worker + step);
}

TEST(PowerSgdParity, EstimatesEqualThoseOfPyTorchsHook) {
  const std::vector<compress::Slot> slots = {
      {"a", 0, {64, 30}, 0},
      {"bias", 1920, {64}, 1},
      {"b", 1984, {24, 5, 3, 3}, 2},
      {"c", 3064, {20, 90}, 3}};
  constexpr std::int64_t kNumel = 4864;
  const at::Tensor q = normal(kRank * (30 + 45 + 90), 7);
  const TempFolder folder;
  folder.add("q.f32", testing::bytes_of(q));
  for (int w = 0; w < kWorkers; ++w) {
    for (int t = 0; t < kSteps; ++t) {
      folder.add(
          formatted("gradient_{}_{}.f32", w, t), testing::bytes_of(gradient_of(kNumel, w, t)));
    }
  }
  testing::python(
      "powersgd.py", {folder.path(), std::to_string(kWorkers), std::to_string(kSteps),
                      std::to_string(kRank), "64x30", "64", "24x5x3x3", "20x90"});

  compress::ReducerOptions options;
  options.name = std::string("powersgd");
  options.rank = kRank;
  options.min_numel = 1;
  options.error_feedback = false;
  comm::run_workers(kWorkers, 20, [&](comm::Communicator& world) {
    const at::Tensor flat = at::empty({kNumel});
    compress::GradientExchange exchange(options, 1);
    exchange.bind(slots, flat, world);
    state::State state;
    state.own.emplace("residual.0", at::empty({0}));
    state.own.emplace("q.0", q.clone());
    auto archive = state::Archive::loading(state);
    exchange.archive(archive, "");
    for (int t = 0; t < kSteps; ++t) {
      flat.copy_(gradient_of(kNumel, world.rank(), t));
      exchange.finish(t);
      if (world.rank() == 0) {
        const at::Tensor wanted =
            testing::read_numbers(folder / formatted("estimate_{}.f32", t), kNumel);
        for (const compress::Slot& slot : slots) {
          const at::Tensor a = flat.narrow(0, slot.offset, slot.numel());
          const at::Tensor b = wanted.narrow(0, slot.offset, slot.numel());
          EXPECT_LT(a.sub(b).norm().item<double>(), 1e-5 * b.norm().item<double>())
              << slot.name << " in step " << t;
        }
      }
    }
  });
}

}  // namespace
}  // namespace abtrain
