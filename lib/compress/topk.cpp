// topk: sends each worker's k elements of largest magnitude with their indices (Aji and Heafield,
// "Sparse communication for distributed gradient descent", EMNLP 2017; with error feedback Stich et
// al., NeurIPS 2018). The indices differ between workers, so each worker sends its list to all
// others.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "compress/compressed_reducer.h"
#include "ops/chunks.h"
#include "ops/select_largest.h"

namespace abtrain::compress {

namespace {

// A worker's list on the wire: k indices (int32), then k values (fp16), padded to a multiple of 4
// bytes.
class Topk : public CompressedReducer {
 public:
  using CompressedReducer::CompressedReducer;

 protected:
  Rounds exchange(Task task) override {
    const std::int64_t k = kept(task.packed->numel);
    const int members = task.group->size();
    const auto wire_options = task.u.options().dtype(at::kByte);
    const at::Tensor own = at::empty({list_bytes(k)}, wire_options);
    places(own, k).copy_(ops::select_largest(task.u, k));
    ops::take_chunks(task.u, places(own, k), 1, members, values(own, k));

    const at::Tensor all = at::empty({members * list_bytes(k)}, wire_options);
    co_yield task.group->all_gather(all, own, task.purpose);

    // In rank order, so that the sums are bit-identical on all members.
    task.estimate.zero_();
    for (int r = 0; r < members; ++r) {
      const at::Tensor list = all.narrow(0, r * list_bytes(k), list_bytes(k));
      ops::put_chunks(values(list, k), places(list, k), 1, task.estimate, ops::Put::Add);
    }
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    return member.all_gather(list_bytes(kept(packed.numel)), 1);
  }

 private:
  // The number of elements sent out of d.
  std::int64_t kept(std::int64_t d) const {
    const double k = std::floor(options_.bits * static_cast<double>(d) / 48);
    return static_cast<std::int64_t>(std::clamp(k, 1.0, static_cast<double>(d)));
  }
  static std::int64_t list_bytes(std::int64_t k) {
    return (6 * k + 3) / 4 * 4;
  }
  static at::Tensor places(const at::Tensor& list, std::int64_t k) {
    return list.narrow(0, 0, 4 * k).view(at::kInt);
  }
  static at::Tensor values(const at::Tensor& list, std::int64_t k) {
    return list.narrow(0, 4 * k, 2 * k).view(at::kHalf);
  }
};

void check_topk_bits(
    const ReducerOptions& options, const std::string& section, std::int64_t /*members*/,
    Conflicts& out) {
  conflict_if(
      options.bits > 48, out, {section + ".bits", section + ".name"},
      "expected at most 48, at which topk sends everything (a 16-bit value and a 32-bit index per "
      "element); got {}",
      options.bits);
}

}  // namespace

extern const Scheme kTopk = {
    .name = "topk",
    .make = make<Topk>,
    .check = check_topk_bits,
};

}  // namespace abtrain::compress
