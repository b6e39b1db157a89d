// threshold: elements whose magnitude is above c times their tensor's mean
// magnitude are sent as the mean magnitude of those sent. This is deterministic
// and biased. See docs/methods/adagrad.md.
#include <ATen/ops/empty.h>

#include "base/error.h"
#include "compress/level_reducer.h"
#include "compress/schemes.h"
#include "ops/magnitudes.h"

namespace abtrain::compress {

namespace {

class Threshold : public LevelReducer {
 public:
  Threshold(const ReducerOptions& options, std::uint64_t seed)
      : LevelReducer(options, seed) {
    ABT_CHECK(
        options.c > 0,
        Config,
        "reducer.c: expected more than 0, got ",
        options.c);
  }

 protected:
  at::Tensor numbers_of(const Codes& out) override {
    const at::Tensor& u = out.task.u;
    const at::Tensor cuts = at::empty({out.table.tensors()}, u.options());
    ops::magnitudes(u, out.table.blocks(), ops::Statistic::Sum, cuts);
    cuts.mul_(options_.c).div_(out.table.numels_on(u.device()));
    const at::Tensor numbers =
        at::empty({2 * out.table.tensors()}, u.options());
    ops::encode_above(u, out.table, cuts, out.form, out.codes, numbers);
    return numbers;
  }
  at::Tensor level_of(const at::Tensor& numbers) const override {
    const at::Tensor each = numbers.view({-1, 2});
    return each.select(1, 0).div(each.select(1, 1).clamp_min(1));
  }
  comm::ReduceOp joined_by() const override {
    return comm::ReduceOp::Sum;
  }
  int numbers_per_tensor() const override {
    return 2;
  }
};

}  // namespace

std::unique_ptr<Reducer> make_threshold(
    const ReducerOptions& options,
    std::uint64_t seed) {
  return std::make_unique<Threshold>(options, seed);
}

}  // namespace abtrain::compress
