// Two-bit codes with a fixed threshold and a residual: MXNet's 2-bit gradient
// compression. See docs/methods/twobit.md.
#include <ATen/ops/full.h>

#include <map>

#include "compress/code_sums.h"
#include "compress/compressed_reducer.h"

namespace abtrain::compress {

namespace {

class TwoBit : public CompressedReducer {
 public:
  using CompressedReducer::CompressedReducer;

 protected:
  Rounds exchange(Task task) override {
    ops::CodeBlocks& blocks = blocks_[task.packed->bucket];
    if (blocks.size() == 0) {
      blocks = blocks_of(task.packed->slots);
    }
    return average_by_codes(
        {&blocks,
         task.u,
         at::full({blocks.tensors()}, options_.threshold, task.u.options()),
         task.estimate,
         task.group,
         task.purpose,
         cheaper_transport(task.group->size())});
  }
  std::int64_t exchange_bytes(const Packed& packed, int members, int rank)
      const override {
    return code_sums_bytes(
        blocks_of(packed.slots), cheaper_transport(members), members, rank);
  }
  std::int64_t exchange_bits(const Packed& packed, int members) const override {
    return code_sums_bits(
        blocks_of(packed.slots), cheaper_transport(members), members);
  }
  void forget() override {
    blocks_.clear();
  }

 private:
  std::map<std::size_t, ops::CodeBlocks> blocks_;  // by bucket
};

}  // namespace

extern const Scheme kTwoBit = {
    .name = "twobit",
    .make = make<TwoBit>,
    .check = check_needs_feedback,
};

}  // namespace abtrain::compress
