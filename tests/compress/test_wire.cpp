#include <algorithm>

#include "base/named.h"
#include "base/text.h"
#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

const std::vector<std::string> kNames = {"int8", "int4", "int2", "sparseloco"};

TEST(Wire, KeepsWhatItDoesNotSend) {
  for (const std::string& name : kNames) {
    for (const int n : {1, 2, 3, 4, 8}) {
      for (const std::int64_t numel : {1, 33, 300, 4097, 40001}) {
        SCOPED_TRACE(formatted("{}, {} workers, {}", name, n, numel));
        check_conservation(scheme(name), one_slot({numel}), n);
      }
    }
  }
}

TEST(Wire, SendsTheBytesThatItSays) {
  for (const std::string& name : kNames) {
    for (const int n : {1, 2, 3, 4, 8}) {
      for (const double mebibytes : {0.0, 0.01}) {
        ReducerOptions options = scheme(name);
        options.bucket_mb = mebibytes;
        options.min_numel = 100;
        options.dense_steps = 2;
        run_steps(options, three_slots(), n, 4, normal_gradients(9714));
      }
    }
  }
}

// A scale (bf16) per 128 elements, both ways; one record to each other member.
TEST(Wire, BytesAreThoseOfTheFormula) {
  constexpr std::int64_t kNumel = 4096 * 64;
  const auto slots = one_slot({kNumel});
  for (const int n : {2, 4, 8}) {
    for (const auto& [name, bits] : {std::pair{"int8", 8}, {"int4", 4}, {"int2", 2}}) {
      const ExchangePlan plan(scheme(name), slots, {n, 0});
      const double record = kNumel * (bits / 8.0 + 2.0 / ops::kWireChunk);
      EXPECT_EQ(plan.usual_bytes(), 2.0 * (n - 1) / n * record) << name;
    }
    ReducerOptions options = scheme("sparseloco");
    options.density = 1.0 / 32;
    const ExchangePlan plan(options, slots, {n, 0});
    // Two levels per chunk of 4096; 14 bits for each of 128 of them.
    const double record = 64 * (2 * 2 + 128 * 14 / 8);
    EXPECT_EQ(plan.usual_bytes(), (n - 1) * record);
  }
}

TEST(Wire, ResidualsAreBounded) {
  for (const std::string& name : kNames) {
    for (const double shift : {0.0, 1.0}) {
      SCOPED_TRACE(formatted("{} {}", name, shift));
      check_bounded(scheme(name), one_slot({301}), 3, normal_gradients(301, shift), 1500);
    }
    // Heavy tails, with the same extremes in each quarter.
    check_bounded(
        scheme(name), one_slot({301}), 2,
        [](int worker, std::int64_t step) {
          return normal_gradients(301)(worker, step % 125).pow_(5).mul_(0.01);
        },
        1500);
  }
}

TEST(Wire, ZerosGiveZero) {
  for (const std::string& name : kNames) {
    for (const int n : {1, 2, 3, 8}) {
      check_zero(scheme(name), three_slots(), n);
    }
  }
}

// One coding of normal numbers leaves .1188 of their energy with four levels
// (Max 1960); coding the mean leaves as much of it again.
TEST(Wire, ErrorIsThatOfTheQuantizer) {
  const auto error = [](const char* name) {
    return vnmse(scheme(name), one_slot({1 << 16}), 4, normal_gradients(1 << 16));
  };
  const double two_bits = error("int2");
  EXPECT_NEAR(two_bits, 2 * 0.1188, 0.03);
  EXPECT_LT(error("int4"), 0.03);
  EXPECT_LT(error("int8"), 1e-3);
}

TEST(Wire, OfFullDensityTwoBitsAreTheOnlyError) {
  ReducerOptions options = scheme("sparseloco");
  options.density = 1;
  EXPECT_NEAR(vnmse(options, one_slot({1 << 14}), 4, normal_gradients(1 << 14)), 0.1188, 0.02);
}

// What is not sent in a step fades by error_decay.
TEST(Wire, AnErrorDecays) {
  for (const std::string& name : kNames) {
    ReducerOptions options = scheme(name);
    options.error_decay = 0.25;
    at::Tensor server;
    run_steps(
        options, one_slot({200}), 2, 2,
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

TEST(Wire, WithoutFeedbackAStepForgetsTheLast) {
  for (const char* name : {"int8", "int4", "int2"}) {
    ReducerOptions options = scheme(name);
    options.error_feedback = false;
    at::Tensor first;
    run_steps(
        options, one_slot({700}), 3, 3,
        [](int worker, std::int64_t) { return normal_gradients(700)(worker, 0); },
        [&](std::int64_t t, const Step& step) {
          first = t == 0 ? step.estimates[0].clone() : first;
          EXPECT_TRUE(step.estimates[0].equal(first)) << name << " step " << t;
        });
  }
}

TEST(Wire, OthersHaveNoSuchRecord) {
  for (const std::string& name : names_in(schemes())) {
    const bool is_wire = std::ranges::find(kNames, name) != kNames.end();
    EXPECT_EQ(wire_format(scheme(name)).has_value(), is_wire) << name;
  }
}

TEST(Wire, SparsityNeedsErrorFeedback) {
  Conflicts found;
  ReducerOptions options = scheme("int8");
  options.error_feedback = false;
  check(options, "reducer", 4, found);
  EXPECT_TRUE(found.empty());
  options = scheme("sparseloco");
  options.error_feedback = false;
  check(options, "reducer", 4, found);
  EXPECT_EQ(found.size(), 1u);
}

}  // namespace
}  // namespace abtrain::compress
