// ternary (TernGrad: Wen et al., NeurIPS 2017): an element is sent as its
// tensor's largest magnitude with its own sign, with the probability that
// preserves the mean. See docs/methods/adagrad.md.
#include <ATen/ops/empty.h>

#include "compress/level_reducer.h"
#include "ops/magnitudes.h"

namespace abtrain::compress {

namespace {

class Ternary : public LevelReducer {
 public:
  Ternary(const ReducerOptions& options, std::uint64_t seed)
      : LevelReducer(options, seed, comm::ReduceOp::Max, 1) {}

 protected:
  at::Tensor numbers_of(const Codes& out) override {
    const at::Tensor most = at::empty({out.table.tensors()}, out.task.u.options());
    ops::magnitudes(out.task.u, out.table.blocks(), ops::Statistic::Largest, most);
    return most;
  }
  void write_codes(const Codes& out, const at::Tensor& levels) override {
    const ops::Chance chance{
        seed_, static_cast<std::uint32_t>(out.task.step),
        rounding_stream(*out.task.group, out.task.packed->bucket)};
    ops::encode_by_chance(out.task.u, out.table, levels, chance, out.form, out.codes);
  }
  at::Tensor level_of(const at::Tensor& numbers) const override {
    return numbers;
  }
};

void check_ternary(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out) {
  conflict_if(
      has_error_feedback(options), out, {section + ".error_feedback", section + ".name"},
      "ternary's random error is larger than the values it encodes, so "
      "residuals would grow without bound; expected auto or false");
  LevelReducer::check(options, section, members, out);
}

}  // namespace

extern const Scheme kTernary = {
    .name = "ternary",
    .make = make<Ternary>,
    .check = check_ternary,
    .error_feedback = false,
    .min_numel = 1,
};

}  // namespace abtrain::compress
