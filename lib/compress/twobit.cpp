// twobit: two-bit codes with a fixed threshold and error feedback, as in MXNet's 2-bit gradient
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
    ops::TernaryTable& table = tables_[task.packed->bucket];
    if (table.blocks().size() == 0) {
      table = ops::TernaryTable(blocks_of(task.packed->slots));
    }
    return average_by_codes(
        table, task.u, at::full({table.blocks().tensors()}, options_.threshold, task.u.options()),
        task.estimate, *task.group, task.purpose, cheaper_transport(task.group->size()));
  }
  Volume exchanged(const Packed& packed, Member member) const override {
    return code_sums_volume(blocks_of(packed.slots), cheaper_transport(member.members), member);
  }

 private:
  std::map<std::size_t, ops::TernaryTable> tables_;  // by bucket
};

}  // namespace

extern const Scheme kTwoBit = {
    .name = "twobit",
    .make = make<TwoBit>,
    .check = check_needs_feedback,
    .max_members = ops::kMaxCodeWorkers,
};

}  // namespace abtrain::compress
