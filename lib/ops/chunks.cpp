#include "ops/chunks.h"

#include <limits>

#include "kernels/chunks.h"
#include "ops/cpu/chunks.h"
#include "ops/flat_check.h"
#include "ops/launch.h"

namespace abtrain::ops {

namespace {

kernels::Chunks chunks_of(
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& numbers) {
  return {
      indices.const_data_ptr<std::int32_t>(),
      indices.numel(),
      chunk,
      numbers.numel()};
}

void check_chunks(
    const char* name,
    const at::Tensor& numbers,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& wire) {
  const c10::Device device = numbers.device();
  check_flat(numbers, at::kFloat, 0, device, name);
  check_flat(indices, at::kInt, 0, device, name);
  check_flat(wire, at::kHalf, 0, device, name);
  ABT_ASSERT(
      chunk >= 1 && wire.numel() == indices.numel() * chunk &&
          wire.numel() <= std::numeric_limits<std::int32_t>::max() / 2 &&
          indices.numel() <= chunk_count(numbers.numel(), chunk),
      "{}: {} chunks of {} of {} elements do not fill a wire of {}",
      name,
      indices.numel(),
      chunk,
      numbers.numel(),
      wire.numel());
}

}  // namespace

void add_with_norms(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms) {
  check_flat(u, at::kFloat, 0, u.device(), "add_with_norms: u");
  check_flat(g, at::kFloat, 0, u.device(), "add_with_norms: g");
  check_flat(norms, at::kFloat, 0, u.device(), "add_with_norms: norms");
  ABT_ASSERT(
      chunk >= 1 && u.numel() == g.numel() &&
          norms.numel() == chunk_count(u.numel(), chunk),
      "add_with_norms: {} and {} elements in chunks of {} do not make {} norms",
      u.numel(),
      g.numel(),
      chunk,
      norms.numel());
  if (u.numel() == 0) {
    return;
  }
  if (u.is_cuda()) {
    launch("add_with_norms", u.device(), [&](void* stream) {
      return kernels::add_with_norms(
          u.mutable_data_ptr<float>(),
          g.const_data_ptr<float>(),
          add,
          u.numel(),
          chunk,
          norms.mutable_data_ptr<float>(),
          stream);
    });
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
  ABT_ASSERT(members >= 1, "take_chunks: {} members", members);
  if (wire.numel() == 0) {
    return;
  }
  if (u.is_cuda()) {
    launch("take_chunks", u.device(), [&](void* stream) {
      return kernels::take_chunks(
          chunks_of(indices, chunk, u),
          u.mutable_data_ptr<float>(),
          members,
          wire.mutable_data_ptr(),
          stream);
    });
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
    launch("put_chunks", out.device(), [&](void* stream) {
      return kernels::put_chunks(
          chunks_of(indices, chunk, out),
          wire.const_data_ptr(),
          out.mutable_data_ptr<float>(),
          how == Put::Add,
          stream);
    });
  } else {
    put_chunks_cpu(wire, indices, chunk, out, how);
  }
}

}  // namespace abtrain::ops
