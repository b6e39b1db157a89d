#include "ops/select_largest.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/topk.h>

#include <bit>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "device/tensor_text.h"

namespace abtrain::ops {

namespace {

// The bits of |x|, 15 for bf16 and 31 for fp32: as integers, they have the order of the magnitudes.
std::uint32_t key_of(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF;
}
std::uint32_t key_of(c10::BFloat16 x) {
  return x.x & 0x7FFFu;
}

constexpr int kHighBits = 15;
template <class T>
constexpr int kLowBits = std::is_same_v<T, float> ? 16 : 0;

using Counts = std::vector<std::uint32_t>;

// Returns the bucket that holds the k-th largest key; k becomes the key's rank within that bucket.
std::uint32_t bucket_of(const Counts& counts, std::int64_t& k) {
  auto bucket = static_cast<std::uint32_t>(counts.size() - 1);
  while (counts[bucket] < k) {
    k -= counts[bucket];
    --bucket;
  }
  return bucket;
}

// Finds the k-th largest key by its high bits among all keys, then by its low
// bits among those with the same high bits.
template <class T>
at::Tensor select(const at::Tensor& values, std::int64_t k) {
  const auto* in = values.const_data_ptr<T>();
  const std::int64_t count = values.numel();
  const at::Tensor result = at::empty({k}, values.options().dtype(at::kInt));
  auto* out = result.template mutable_data_ptr<std::int32_t>();

  Counts counts(1 << kHighBits);
  for (std::int64_t i = 0; i < count; ++i) {
    ++counts[key_of(in[i]) >> kLowBits<T>];
  }
  std::int64_t left = k;
  const std::uint32_t high = bucket_of(counts, left);
  // The places of all keys in this bucket or above. The loop below is branchless, so it needs one
  // extra slot.
  const auto candidates = static_cast<std::size_t>(k - left + counts[high]);
  std::vector<std::int32_t> places(candidates + 1);
  std::size_t found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    places[found] = static_cast<std::int32_t>(i);
    found += key_of(in[i]) >> kLowBits<T> >= high;
  }
  places.resize(candidates);

  std::uint32_t key = high;
  if constexpr (std::is_same_v<T, float>) {
    constexpr std::uint32_t kMask = (1u << kLowBits<T>)-1;
    counts.assign(1 << kLowBits<T>, 0);
    for (const std::int32_t place : places) {
      const std::uint32_t own = key_of(in[place]);
      counts[own & kMask] += own >> kLowBits<T> == high;
    }
    key = high << kLowBits<T> | bucket_of(counts, left);
  }
  for (const std::int32_t place : places) {
    const std::uint32_t own = key_of(in[place]);
    if (own >= key && (own > key || left-- > 0)) {
      *out++ = place;
    }
  }
  return result;
}

}  // namespace

at::Tensor select_largest_by_operators(const at::Tensor& values, std::int64_t k) {
  if (k == 0) {
    return at::empty({0}, values.options().dtype(at::kInt));
  }
  const at::Tensor keys = values.scalar_type() == at::kFloat
                              ? values.view(at::kInt).bitwise_and(0x7FFFFFFF)
                              : values.view(at::kShort).bitwise_and(0x7FFF);
  // topk() does not specify which of equal keys it takes, but the k-th largest
  // key is well defined.
  const at::Tensor key =
      std::get<0>(at::topk(keys, k, 0, /*largest=*/true, /*sorted=*/false)).min();
  const at::Tensor above = keys.gt(key);
  const at::Tensor equal = keys.eq(key);
  const at::Tensor wanted = above.sum().neg().add(k);
  const at::Tensor taken =
      above.bitwise_or(equal.bitwise_and(at::cumsum(equal, 0, at::kInt).le(wanted)));
  // The j-th element taken is the first position with a running count of j.
  const at::Tensor places = at::arange(1, k + 1, values.options().dtype(at::kInt));
  return at::searchsorted(at::cumsum(taken, 0, at::kInt), places, /*out_int32=*/true);
}

at::Tensor select_largest(const at::Tensor& values, std::int64_t k) {
  ABT_ASSERT(
      values.dim() == 1 && values.is_contiguous() &&
          (values.scalar_type() == at::kFloat || values.scalar_type() == at::kBFloat16) &&
          values.numel() <= std::numeric_limits<std::int32_t>::max() && k >= 0 &&
          k <= values.numel(),
      "select_largest: {} of {}{}", k, values.scalar_type(), values.sizes());
  if (values.is_cuda()) {
    return select_largest_by_operators(values, k);
  }
  return values.scalar_type() == at::kFloat ? select<float>(values, k)
                                            : select<c10::BFloat16>(values, k);
}

}  // namespace abtrain::ops
