#include "ops/chunks.h"

#include <limits>

#include "base/error.h"
#include "ops/chunks_backends.h"

namespace abtrain::ops {

namespace {

bool is_flat(const at::Tensor& t, at::ScalarType type, const at::Tensor& like) {
  return t.dim() == 1 && t.is_contiguous() && t.scalar_type() == type &&
         t.device() == like.device();
}

void check_chunks(
    const char* name,
    const at::Tensor& numbers,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& wire) {
  ABT_ASSERT(
      chunk >= 1 && is_flat(numbers, at::kFloat, numbers) &&
          is_flat(indices, at::kInt, numbers) &&
          is_flat(wire, at::kHalf, numbers) &&
          wire.numel() == indices.numel() * chunk,
      name,
      ": ",
      indices.scalar_type(),
      indices.sizes(),
      " chunks of ",
      chunk,
      " of ",
      numbers.scalar_type(),
      numbers.sizes(),
      " do not make ",
      wire.scalar_type(),
      wire.sizes());
  ABT_ASSERT(
      wire.numel() <= std::numeric_limits<std::int32_t>::max() / 2 &&
          indices.numel() <= chunk_count(numbers.numel(), chunk),
      name,
      ": ",
      indices.numel(),
      " chunks of ",
      chunk,
      " are too many for ",
      numbers.sizes());
}

}  // namespace

void add_with_norms(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms) {
  ABT_ASSERT(
      chunk >= 1 && is_flat(u, at::kFloat, u) && is_flat(g, at::kFloat, u) &&
          is_flat(norms, at::kFloat, u) && u.numel() == g.numel() &&
          norms.numel() == chunk_count(u.numel(), chunk),
      "add_with_norms: ",
      u.sizes(),
      " and ",
      g.sizes(),
      " in chunks of ",
      chunk,
      " do not make ",
      norms.sizes(),
      " norms");
  if (u.numel() == 0) {
    return;
  }
  if (u.is_cuda()) {
    add_with_norms_cuda(u, g, add, chunk, norms);
  } else {
    add_with_norms_cpu(u, g, add, chunk, norms);
  }
}

void take_chunks(
    const at::Tensor& u,
    const at::Tensor& indices,
    std::int64_t chunk,
    int members,
    const at::Tensor& wire) {
  check_chunks("take_chunks", u, indices, chunk, wire);
  ABT_ASSERT(members >= 1, "take_chunks: ", members, " members");
  if (wire.numel() == 0) {
    return;
  }
  if (u.is_cuda()) {
    take_chunks_cuda(u, indices, chunk, members, wire);
  } else {
    take_chunks_cpu(u, indices, chunk, members, wire);
  }
}

void put_chunks(
    const at::Tensor& wire,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& out,
    Put how) {
  check_chunks("put_chunks", out, indices, chunk, wire);
  if (wire.numel() == 0) {
    return;
  }
  if (out.is_cuda()) {
    put_chunks_cuda(wire, indices, chunk, out, how);
  } else {
    put_chunks_cpu(wire, indices, chunk, out, how);
  }
}

}  // namespace abtrain::ops
