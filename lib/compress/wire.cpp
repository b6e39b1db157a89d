// int8, int4, int2: one scale per 128 neighboring elements, and a code of 8, 4 or 2 bits per
// element. Each member serves a shard of u: it receives the shard's codes from all members,
// averages them, and sends the mean back in the same form. Both steps have error feedback.
//
// sparseloco: the largest elements of each chunk, as indices and two-bit codes (Sarfi et al. 2025,
// arXiv 2508.15706). Every member gathers all members' codes, because encoding a mean of sparse
// vectors again would lose most of it.
//
// See docs/methods/wire.md.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.h"
#include "comm/traffic.h"
#include "compress/compressed_reducer.h"

namespace abtrain::compress {

namespace {

class Wire : public CompressedReducer {
 public:
  Wire(const ReducerOptions& options, std::uint64_t seed)
      : CompressedReducer(options, seed), format_(*wire_format(options)) {}

 protected:
  void accumulate(
      const Packed& packed, const at::Tensor& residual, const at::Tensor& gradients) override {
    if (options_.error_decay != 1) {
      residual.mul_(options_.error_decay);
    }
    CompressedReducer::accumulate(packed, residual, gradients);
  }

  Rounds exchange(Task task) override {
    comm::Communicator& group = *task.group;
    const int n = group.size();
    const at::TensorOptions bytes = task.u.options().dtype(at::kByte);
    const float share = 1.0f / static_cast<float>(n);
    if (gathers()) {
      const std::int64_t size = ops::wire_bytes(format_, task.u.numel());
      const at::Tensor own = at::empty({size}, bytes);
      ops::encode_wire(task.u, format_, own);
      const at::Tensor all = at::empty({n * size}, bytes);
      co_yield group.all_gather(all, own, task.purpose);
      for (int i = 0; i < n; ++i) {
        ops::decode_wire(all.narrow(0, i * size, size), format_, share, i > 0, task.estimate);
      }
      co_return;
    }

    const auto rank = static_cast<std::size_t>(group.rank());
    const std::vector<std::int64_t> shards = shards_of(task.u.numel(), n);
    const std::vector<std::int64_t> counts = records(task.u.numel(), n);
    const at::Tensor wire = at::empty({std::reduce(counts.begin(), counts.end())}, bytes);
    const std::vector<at::Tensor> on_wire = wire.split_with_sizes(counts);
    const std::vector<at::Tensor> parts = task.u.split_with_sizes(shards);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ops::encode_wire(parts[i], format_, on_wire[i]);
    }
    const std::int64_t own = counts[rank];
    const at::Tensor received = at::empty({n * own}, bytes);
    co_yield group.all_to_all(received, wire, counts, task.purpose);

    // The mean over this member's shard, plus what the codes of the last step's mean left out.
    at::Tensor& server = servers_[task.packed->bucket];
    if (!keeps_residual_ || !server.defined() || server.numel() != shards[rank]) {
      server = at::zeros({shards[rank]}, task.u.options());
    }
    server = server.to(task.u.device());  // a residual from a checkpoint is on the CPU
    if (options_.error_decay != 1) {
      server.mul_(options_.error_decay);
    }
    for (int i = 0; i < n; ++i) {
      ops::decode_wire(received.narrow(0, i * own, own), format_, share, true, server);
    }
    const at::Tensor answer = at::empty({own}, bytes);
    ops::encode_wire(server, format_, answer);
    co_yield group.all_gather(wire, answer, counts, task.purpose);

    const std::vector<at::Tensor> means = task.estimate.split_with_sizes(shards);
    for (std::size_t i = 0; i < means.size(); ++i) {
      ops::decode_wire(on_wire[i], format_, 1, false, means[i]);
    }
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    if (gathers()) {
      return member.all_gather(ops::wire_bytes(format_, packed.numel), 1);
    }
    const std::vector<std::int64_t> counts = records(packed.numel, member.members);
    return member.serve(
        std::reduce(counts.begin(), counts.end()), counts[static_cast<std::size_t>(member.rank)],
        1);
  }
  void archive_more(
      state::Archive& archive, const std::string& prefix, const Packed& packed) override {
    if (!gathers()) {
      archive.tensor(
          formatted("{}server.{}", prefix, packed.bucket), servers_[packed.bucket],
          state::Owner::Worker);
    }
  }

 private:
  bool gathers() const {
    return format_.code == ops::WireCode::Sparse;
  }
  // The element count of each member's shard of u: whole chunks, so that no scale is sent twice.
  static std::vector<std::int64_t> shards_of(std::int64_t numel, int members) {
    const std::int64_t chunks = (numel + ops::kWireChunk - 1) / ops::kWireChunk;
    const auto begin_of = [&](int i) {
      return std::min(numel, comm::chunk_begin(chunks, members, i) * ops::kWireChunk);
    };
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < members; ++i) {
      sizes.push_back(begin_of(i + 1) - begin_of(i));
    }
    return sizes;
  }
  // The size in bytes of each member's shard when encoded.
  std::vector<std::int64_t> records(std::int64_t numel, int members) const {
    std::vector<std::int64_t> sizes = shards_of(numel, members);
    for (std::int64_t& size : sizes) {
      size = ops::wire_bytes(format_, size);
    }
    return sizes;
  }
  const ops::WireFormat format_;
  // By bucket, for this member's shard: what the codes of the last step's mean left out.
  std::map<std::size_t, at::Tensor> servers_;
};

}  // namespace

// min_numel is 1, because neighboring tensors share chunks, so small tensors cost nothing extra.
extern const Scheme kInt8 = {
    .name = "int8",
    .make = make<Wire>,
    .dtype = at::kBFloat16,
    .min_numel = 1,
    .code = ops::WireCode::Int8};
extern const Scheme kInt4 = {
    .name = "int4",
    .make = make<Wire>,
    .dtype = at::kBFloat16,
    .min_numel = 1,
    .code = ops::WireCode::Int4};
extern const Scheme kInt2 = {
    .name = "int2",
    .make = make<Wire>,
    .dtype = at::kBFloat16,
    .min_numel = 1,
    .code = ops::WireCode::Int2};
extern const Scheme kSparseLoco = {
    .name = "sparseloco",
    .make = make<Wire>,
    .check = check_needs_feedback,
    .dtype = at::kBFloat16,
    .min_numel = 1,
    .code = ops::WireCode::Sparse};

}  // namespace abtrain::compress
