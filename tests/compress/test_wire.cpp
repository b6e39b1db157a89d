#include <algorithm>

#include "base/named.h"
#include "compress/code_schemes.h"

namespace abtrain::compress {
namespace {

// A scale (bf16) per 128 elements, both ways; one record to each other member.
TEST(Wire, BytesAreThoseOfTheFormula) {
  constexpr std::int64_t kNumel = 4096 * 64;
  const auto slots = one_slot({kNumel});
  for (const int n : {2, 4, 8}) {
    for (const auto& [name, bits] : {std::pair{"int8", 8}, {"int4", 4}, {"int2", 2}}) {
      const double record = kNumel * (bits / 8.0 + 2.0 / ops::kWireChunk);
      EXPECT_EQ(volume_of(scheme(name), slots, {n, 0}).bytes, 2.0 * (n - 1) / n * record) << name;
    }
    // Two levels per chunk of 4096; 14 bits for each of 128 of them.
    EXPECT_EQ(
        volume_of(scheme("sparseloco", {{"density", "0.03125"}}), slots, {n, 0}).bytes,
        (n - 1) * 64 * (2 * 2 + 128 * 14 / 8));
  }
}

// One coding of normal numbers leaves .1188 of their energy with four levels
// (Max 1960); coding the mean leaves as much of it again.
TEST(Wire, ErrorIsThatOfTheQuantizer) {
  const auto error = [](const char* name) {
    return vnmse(scheme(name), one_slot({1 << 16}), 4, normal_gradients(1 << 16));
  };
  EXPECT_NEAR(error("int2"), 2 * 0.1188, 0.03);
  EXPECT_LT(error("int4"), 0.03);
  EXPECT_LT(error("int8"), 1e-3);
}

TEST(Wire, OfFullDensityTwoBitsAreTheOnlyError) {
  const ReducerOptions options = scheme("sparseloco", {{"density", "1"}});
  EXPECT_NEAR(vnmse(options, one_slot({1 << 14}), 4, normal_gradients(1 << 14)), 0.1188, 0.02);
}

// What is not sent in a step fades by error_decay.
TEST(Wire, AnErrorDecays) {
  for (const std::string& name : kWires) {
    at::Tensor server;
    run_steps(
        scheme(name, {{"error_decay", "0.25"}}), one_slot({200}), 2, 2,
        [](int, std::int64_t step) {
          return step == 0 ? normal_gradients(200)(0, 0) : at::zeros({200});
        },
        [&](std::int64_t t, const Step& step) {
          if (t == 0) {
            server = step.server;
            return;
          }
          // All of 0.25 of it was coded again, and less than that is left.
          at::Tensor sent = at::zeros({200}, at::kDouble);
          for (std::size_t i = 0; i < 2; ++i) {
            sent.add_(step.before[i], 0.25 / 2).sub_(step.residuals[i], 0.5);
            EXPECT_LT(
                step.residuals[i].norm().item<double>(),
                0.25 * step.before[i].norm().item<double>())
                << name;
          }
          EXPECT_EQ(server.defined(), name != "sparseloco");
          if (server.defined()) {
            sent.add_(server, 0.25).sub_(step.server);
          }
          EXPECT_GT(step.residuals[0].norm().item<double>(), 0) << name;
          EXPECT_TRUE(step.estimates[0].to(at::kDouble).allclose(sent, 0, 1e-6)) << name;
        });
  }
}

TEST(Wire, OthersHaveNoSuchRecord) {
  for (const std::string& name : names_in(schemes())) {
    const bool is_wire = std::ranges::find(kWires, name) != kWires.end();
    EXPECT_EQ(wire_format(scheme(name)).has_value(), is_wire) << name;
  }
}

}  // namespace
}  // namespace abtrain::compress
