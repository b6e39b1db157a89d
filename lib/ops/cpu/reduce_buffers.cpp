#include <algorithm>

#include "base/error.h"
#include "device/tensor_text.h"
#include "ops/cpu/convert.h"
#include "ops/cpu/reduce_buffers.h"

namespace abtrain::ops {

namespace {

// A tile of sums and a tile of input fit the first-level cache.
constexpr std::int64_t kTile = 2048;

template <class T>
constexpr bool kSixteenBit = std::is_same_v<T, c10::Half> || std::is_same_v<T, c10::BFloat16>;

using kernels::larger;
using kernels::plus;
using kernels::Wide;

// Converts the tile to the type in which it is accumulated; returns `in` itself if that is T.
template <class T>
const Wide<T>* widen(const T* in, Wide<T>* scratch, std::int64_t count) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    return in;
  } else if constexpr (kSixteenBit<T>) {
    to_float(in, scratch, count);
    return scratch;
  } else {
    std::copy(in, in + count, scratch);
    return scratch;
  }
}

template <class T>
void narrow(const Wide<T>* in, T* out, std::int64_t count) {
  if constexpr (kSixteenBit<T>) {
    from_float(in, out, count);
  } else {
    std::transform(in, in + count, out, [](Wide<T> x) { return static_cast<T>(x); });
  }
}

template <class T>
void reduce_tile(
    at::ArrayRef<T*> in, std::int64_t begin, std::int64_t count, at::ArrayRef<T*> out,
    std::int64_t out_begin, ReduceOp op) {
  Wide<T> sum[kTile];
  Wide<T> scratch[kTile];
  const Wide<T>* first = widen<T>(in[0] + begin, scratch, count);
  std::copy(first, first + count, sum);
  for (std::size_t b = 1; b < in.size(); ++b) {
    const Wide<T>* next = widen<T>(in[b] + begin, scratch, count);
    if (op == ReduceOp::Max) {
      for (std::int64_t i = 0; i < count; ++i) {
        sum[i] = larger(sum[i], next[i]);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        sum[i] = plus(sum[i], next[i]);
      }
    }
  }
  if (op == ReduceOp::Mean) {
    const auto n = static_cast<Wide<T>>(in.size());
    for (std::int64_t i = 0; i < count; ++i) {
      sum[i] = static_cast<Wide<T>>(sum[i] / n);
    }
  }
  T* result = out[0] + out_begin;
  narrow<T>(sum, result, count);
  for (T* other : out.slice(1)) {
    std::copy(result, result + count, other + out_begin);
  }
}

template <class T>
void reduce(
    at::ArrayRef<at::Tensor> in, std::int64_t begin, std::int64_t count,
    at::ArrayRef<at::Tensor> out, std::int64_t out_begin, ReduceOp op) {
  const auto pointers = [](at::ArrayRef<at::Tensor> buffers) {
    std::vector<T*> data;
    data.reserve(buffers.size());
    for (const at::Tensor& buffer : buffers) {
      data.push_back(buffer.mutable_data_ptr<T>());
    }
    return data;
  };
  const std::vector<T*> from = pointers(in);
  const std::vector<T*> to = pointers(out);
  for (std::int64_t i = 0; i < count; i += kTile) {
    reduce_tile<T>(from, begin + i, std::min(kTile, count - i), to, out_begin + i, op);
  }
}

}  // namespace

void reduce_buffers_cpu(
    at::ArrayRef<at::Tensor> in, std::int64_t begin, std::int64_t count,
    at::ArrayRef<at::Tensor> out, std::int64_t out_begin, ReduceOp op) {
  if (out.empty()) {
    return;
  }
  const auto run = [&]<class T>() { reduce<T>(in, begin, count, out, out_begin, op); };
  switch (in.front().scalar_type()) {
    case at::kFloat:
      return run.operator()<float>();
    case at::kDouble:
      return run.operator()<double>();
    case at::kHalf:
      return run.operator()<c10::Half>();
    case at::kBFloat16:
      return run.operator()<c10::BFloat16>();
    case at::kInt:
      return run.operator()<int>();
    case at::kLong:
      return run.operator()<std::int64_t>();
    case at::kByte:
      return run.operator()<std::uint8_t>();
    default:
      ABT_ASSERT(false, "reduce_buffers: no form for {}", in.front().scalar_type());
  }
}

}  // namespace abtrain::ops
