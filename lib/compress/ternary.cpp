// ternary (TernGrad: Wen et al., NeurIPS 2017): an element is sent as its
// tensor's largest magnitude with its own sign, with the probability that
// preserves the mean. See docs/methods/adagrad.md.
#include <ATen/ops/empty.h>

#include "compress/level_reducer.h"
#include "compress/schemes.h"
#include "ops/magnitudes.h"

namespace abtrain::compress {

namespace {

class Ternary : public LevelReducer {
 public:
  using LevelReducer::LevelReducer;

 protected:
  at::Tensor numbers_of(const Codes& out) override {
    const at::Tensor most =
        at::empty({out.table.tensors()}, out.task.u.options());
    ops::magnitudes(
        out.task.u, out.table.blocks(), ops::Statistic::Largest, most);
    return most;
  }
  void write_codes(const Codes& out, const at::Tensor& levels) override {
    const ops::Chance chance{
        seed_,
        static_cast<std::uint32_t>(out.task.step),
        rounding_stream(*out.task.group, out.task.packed->bucket)};
    ops::encode_by_chance(
        out.task.u, out.table, levels, chance, out.form, out.codes);
  }
  at::Tensor level_of(const at::Tensor& numbers) const override {
    return numbers;
  }
  comm::ReduceOp joined_by() const override {
    return comm::ReduceOp::Max;
  }
  int numbers_per_tensor() const override {
    return 1;
  }
};

}  // namespace

std::unique_ptr<Reducer> make_ternary(
    const ReducerOptions& options,
    std::uint64_t seed) {
  return std::make_unique<Ternary>(options, seed);
}

}  // namespace abtrain::compress
