// threshold: elements whose magnitude is above c times their tensor's mean
// magnitude are sent as the mean magnitude of those sent. This is deterministic
// and biased. See docs/methods/adagrad.md.
#include <ATen/ops/empty.h>

#include "compress/level_reducer.h"
#include "ops/magnitudes.h"

namespace abtrain::compress {

namespace {

class Threshold : public LevelReducer {
 public:
  Threshold(const ReducerOptions& options, std::uint64_t seed)
      : LevelReducer(options, seed, comm::ReduceOp::Sum, 2) {}

 protected:
  at::Tensor numbers_of(const Codes& out) override {
    const at::Tensor& u = out.task.u;
    const at::Tensor cuts = at::empty({out.table.tensors()}, u.options());
    ops::magnitudes(u, out.table.blocks(), ops::Statistic::Sum, cuts);
    cuts.mul_(options_.c).div_(out.table.numels_on(u.device()));
    const at::Tensor numbers = at::empty({2 * out.table.tensors()}, u.options());
    ops::encode_above(u, out.table, cuts, out.form, out.codes, numbers);
    return numbers;
  }
  at::Tensor level_of(const at::Tensor& numbers) const override {
    const at::Tensor each = numbers.view({-1, 2});
    return each.select(1, 0).div(each.select(1, 1).clamp_min(1));
  }
};

}  // namespace

extern const Scheme kThreshold = {
    .name = "threshold",
    .make = make<Threshold>,
    .check = LevelReducer::check,
    .error_feedback = false,
    .min_numel = 1,
};

}  // namespace abtrain::compress
