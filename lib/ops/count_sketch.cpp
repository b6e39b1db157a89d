#include "ops/count_sketch.h"

#include <ATen/ops/empty.h>

#include "kernels/orders/count_sketch.h"
#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void count_sketch(
    const at::Tensor& first, const at::Tensor& second, std::uint32_t seed,
    const at::Tensor& sketch) {
  const c10::Device device = first.device();
  const std::int64_t numel = first.numel();
  const std::int64_t buckets = sketch.numel();
  ABT_ASSERT(buckets >= 1, "count_sketch: expected at least one bucket");
  kernels::CountSketch job{
      flat<const float>(first, numel, device, "count_sketch: first"),
      flat_or_null<const float>(second, numel, device, "count_sketch: second"),
      numel,
      buckets,
      seed,
      nullptr,
      flat<float>(sketch, buckets, device, "count_sketch: sketch")};
  const at::Tensor parts = at::empty({kernels::sketch_parts(job) * buckets}, sketch.options());
  job.parts = parts.mutable_data_ptr<float>();
  dispatch("count_sketch", job, device, kernels::count_sketch);
}

}  // namespace abtrain::ops
