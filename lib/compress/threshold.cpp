// threshold: numbers above c times their tensor's mean size are sent, as the mean
// size of those; deterministic and biased. docs/methods/adagrad.md.
#include <ATen/ops/empty.h>

#include "base/error.h"
#include "compress/level_codes.h"
#include "compress/schemes.h"
#include "ops/threshold_codes.h"

namespace abtrain::compress {

namespace {

class Threshold : public LevelCodes {
 public:
  Threshold(const ReducerOptions& options, std::uint64_t seed)
      : LevelCodes(options, seed) {
    ABT_CHECK(
        options.c > 0,
        Config,
        "reducer.c: expected more than 0, got ",
        options.c);
  }

 protected:
  Levels levels_of(const at::Tensor& u, ops::LevelTable& table) override {
    const std::int64_t tensors = table.tensors();
    const at::Tensor sums = at::empty({2 * tensors}, u.options());
    ops::moments(u, table.blocks(), sums);
    const at::Tensor cuts = sums.view({tensors, 2})
                                .select(1, 1)
                                .mul(options_.c)
                                .div_(table.sizes_on(u.device()));
    const at::Tensor numbers = at::empty({2 * tensors}, u.options());
    ops::survivors(u, table, cuts, numbers);
    return {numbers, cuts};
  }
  at::Tensor level_of(const at::Tensor& numbers) const override {
    const at::Tensor each = numbers.view({-1, 2});
    return each.select(1, 0).div(each.select(1, 1).clamp_min(1));
  }
  comm::ReduceOp joined_by() const override {
    return comm::ReduceOp::Sum;
  }
  int numbers_a_tensor() const override {
    return 2;
  }
};

}  // namespace

std::unique_ptr<Reducer> make_threshold(
    const ReducerOptions& options, std::uint64_t seed) {
  return std::make_unique<Threshold>(options, seed);
}

}  // namespace abtrain::compress
