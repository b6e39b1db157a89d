#include "ops/chunks.h"

#include <limits>

#include "kernels/blocks/chunks.h"
#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

namespace {

// `numbers`: the tensor that the chunks are cut from.
kernels::Chunks chunks_of(
    const char* name, const at::Tensor& numbers, const at::Tensor& indices, std::int64_t chunk,
    const at::Tensor& wire) {
  ABT_ASSERT(
      chunk >= 1 && wire.numel() == indices.numel() * chunk &&
          wire.numel() <= std::numeric_limits<std::int32_t>::max() / 2 &&
          indices.numel() <= chunk_count(numbers.numel(), chunk),
      "{}: {} chunks of {} of {} elements do not fill a wire of {}", name, indices.numel(), chunk,
      numbers.numel(), wire.numel());
  return {
      flat<const std::int32_t>(indices, 0, numbers.device(), name), indices.numel(), chunk,
      numbers.numel()};
}

}  // namespace

void add_with_norms(
    const at::Tensor& u, const at::Tensor& g, bool add, std::int64_t chunk,
    const at::Tensor& norms) {
  ABT_ASSERT(
      chunk >= 1 && u.numel() == g.numel() && norms.numel() == chunk_count(u.numel(), chunk),
      "add_with_norms: {} and {} elements in chunks of {} do not make {} norms", u.numel(),
      g.numel(), chunk, norms.numel());
  const c10::Device device = u.device();
  const kernels::AddWithNorms job{
      flat<float>(u, 0, device, "add_with_norms: u"),
      flat<const float>(g, 0, device, "add_with_norms: g"),
      add,
      u.numel(),
      chunk,
      flat<float>(norms, 0, device, "add_with_norms: norms")};
  dispatch("add_with_norms", job, device, kernels::add_with_norms);
}

void take_chunks(
    const at::Tensor& u, const at::Tensor& indices, std::int64_t chunk, int members,
    const at::Tensor& wire) {
  ABT_ASSERT(members >= 1, "take_chunks: {} members", members);
  const c10::Device device = u.device();
  const kernels::TakeChunks job{
      chunks_of("take_chunks", u, indices, chunk, wire),
      flat<float>(u, 0, device, "take_chunks: u"), members,
      flat<c10::Half>(wire, 0, device, "take_chunks: wire")};
  dispatch("take_chunks", job, device, kernels::take_chunks);
}

void put_chunks(
    const at::Tensor& wire, const at::Tensor& indices, std::int64_t chunk, const at::Tensor& out,
    Put how) {
  const c10::Device device = out.device();
  const kernels::PutChunks job{
      chunks_of("put_chunks", out, indices, chunk, wire),
      flat<const c10::Half>(wire, 0, device, "put_chunks: wire"),
      flat<float>(out, 0, device, "put_chunks: out"), how == Put::Add};
  dispatch("put_chunks", job, device, kernels::put_chunks);
}

}  // namespace abtrain::ops
