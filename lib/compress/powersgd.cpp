// powersgd: sends the gradient as a product P Q^T of rank r, from one power iteration per training
// step (Vogels et al., "PowerSGD", NeurIPS 2019, algorithm 1).
//
// A tensor counts as an n x m matrix M, where n is its number of rows. All matrices of a bucket are
// sent together. P and Q are kept transposed, r x n and r x m, so that their columns are rows in
// memory.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "base/text.h"
#include "compress/compressed_reducer.h"
#include "ops/gram_schmidt.h"
#include "ops/low_rank.h"
#include "ops/scale_cast.h"
#include "ops/thin_products.h"

namespace abtrain::compress {

namespace {

// The tensors in u (n x m), and their factors in the flat P (r x n) and Q (r x m).
struct Matrices {
  std::vector<ops::RowSet> whole, p, q;
  std::int64_t p_numel = 0;
  std::int64_t q_numel = 0;
};

at::Tensor part(const at::Tensor& flat, const ops::RowSet& place) {
  return flat.narrow(0, place.offset, place.rows * place.length).view({place.rows, place.length});
}

class PowerSgd : public CompressedReducer {
 public:
  using CompressedReducer::CompressedReducer;

 protected:
  bool compresses(const Slot& slot) const override {
    if (slot.sizes.size() < 2 || !CompressedReducer::compresses(slot)) {
      return false;
    }
    const std::int64_t n = slot.rows();
    const std::int64_t m = slot.numel() / n;
    return (n + m) * rank_of(n, m) * 2 < n * m;
  }

  Rounds exchange(Task task) override {
    const Matrices matrices = matrices_of(*task.packed);
    const std::size_t count = matrices.whole.size();
    at::Tensor& q = warm(*task.packed, matrices, task.u.device());
    // Orthonormal columns of Q keep the span of M Q, but give all columns of M Q the magnitude of
    // the gradient, so that no small column is lost in 16 bits or in the rounding errors of the
    // other columns.
    ops::gram_schmidt(q, matrices.q);
    at::Tensor p = at::empty({matrices.p_numel}, task.u.options());
    for (std::size_t i = 0; i < count; ++i) {
      ops::thin_product(
          part(task.u, matrices.whole[i]), part(q, matrices.q[i]), part(p, matrices.p[i]).t());
    }
    at::Tensor sent = on_wire(p, task.group->size());
    co_yield task.group->all_reduce(sent, op(), task.purpose);
    ops::scale_cast(sent, 1.0f, p);
    ops::gram_schmidt(p, matrices.p);

    q.zero_();
    for (std::size_t i = 0; i < count; ++i) {
      ops::add_thin_sums(
          part(p, matrices.p[i]).t(), part(task.u, matrices.whole[i]), part(q, matrices.q[i]));
    }
    sent = on_wire(q, task.group->size());
    comm::Pending pending = task.group->all_reduce(sent, op(), task.purpose);
    // While the sum is in flight, subtract from this worker's gradient the product that the worker
    // itself sent, not the mean over all workers.
    for (std::size_t i = 0; i < count; ++i) {
      ops::subtract_low_rank_product(
          part(p, matrices.p[i]), part(q, matrices.q[i]), part(task.u, matrices.whole[i]));
    }
    co_yield std::move(pending);
    ops::scale_cast(sent, 1.0f, q);
    for (std::size_t i = 0; i < count; ++i) {
      ops::low_rank_product(
          part(p, matrices.p[i]), part(q, matrices.q[i]), part(task.estimate, matrices.whole[i]));
    }
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    const Matrices matrices = matrices_of(packed);
    const auto size = static_cast<std::int64_t>(c10::elementSize(plain_dtype_));
    return member.all_reduce(matrices.p_numel, size) + member.all_reduce(matrices.q_numel, size);
  }
  // Saves or loads "q.<bucket>".
  void archive_more(
      state::Archive& archive, const std::string& prefix, const Packed& packed) override {
    archive.tensor(
        formatted("{}q.{}", prefix, packed.bucket), warm_[packed.bucket], state::Owner::Worker,
        matrices_of(packed).q_numel);
  }

 private:
  std::int64_t rank_of(std::int64_t n, std::int64_t m) const {
    return std::min({options_.rank, n, m});
  }

  Matrices matrices_of(const Packed& packed) const {
    Matrices result;
    for (const Slot& slot : packed.slots) {
      const std::int64_t n = slot.rows();
      const std::int64_t m = slot.numel() / n;
      const std::int64_t rank = rank_of(n, m);
      result.whole.push_back({slot.offset, n, m});
      result.p.push_back({result.p_numel, rank, n});
      result.q.push_back({result.q_numel, rank, m});
      result.p_numel += n * rank;
      result.q_numel += m * rank;
    }
    return result;
  }

  // Returns Q of the last step; in the first step, a random Q, the same on all workers.
  at::Tensor& warm(const Packed& packed, const Matrices& matrices, at::Device device) {
    at::Tensor& q = warm_[packed.bucket];
    if (!q.defined()) {
      q = at::empty({matrices.q_numel}, at::kFloat);
      Random random(seed_, RandomPurpose::Sketch, static_cast<std::uint32_t>(packed.bucket));
      auto* numbers = q.mutable_data_ptr<float>();
      std::generate_n(numbers, matrices.q_numel, [&] { return 2 * random.uniform() - 1; });
    }
    q = q.to(device);  // a Q from a checkpoint is on the CPU
    return q;
  }

  // The all-reduce averages fp32 values, but sums 16-bit values, which on_wire() has divided.
  comm::ReduceOp op() const {
    return plain_dtype_ == at::kFloat ? comm::ReduceOp::Mean : comm::ReduceOp::Sum;
  }
  // Returns a copy of `numbers` in the wire dtype. A copy in 16 bits is divided by `members`, and
  // then `numbers` is also rounded to the values sent.
  at::Tensor on_wire(const at::Tensor& numbers, int members) const {
    if (plain_dtype_ == at::kFloat) {
      return numbers.clone();
    }
    const at::Tensor wire = at::empty({numbers.numel()}, numbers.options().dtype(plain_dtype_));
    const auto n = static_cast<float>(members);
    ops::scale_cast(numbers, 1 / n, wire);
    ops::scale_cast(wire, n, numbers);
    return wire;
  }

  std::map<std::size_t, at::Tensor> warm_;  // Q, by bucket
};

}  // namespace

extern const Scheme kPowerSgd = {
    .name = "powersgd",
    .make = make<PowerSgd>,
    .dtype = at::kFloat,
};

}  // namespace abtrain::compress
