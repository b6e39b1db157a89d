#include "ops/gram_schmidt.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "device/tensor_text.h"
#include "kernels/blocks/gram_schmidt_rows.h"
#include "ops/cpu/code_blocks.h"
#include "ops/launch.h"

namespace abtrain::ops {

namespace {

// The Team of orthonormal_rows() on the host: all lanes in one thread.
class LaneTeam {
 public:
  explicit LaneTeam(std::int64_t length) : length_(length) {}

  ABT_INLINE double dot(const float* a, const float* b) const {
    return dot_in_lanes<kernels::kGramLanes, double>(a, b, length_);
  }
  ABT_INLINE void add(float* a, double factor, const float* b) const {
    for (std::int64_t i = 0; i < length_; ++i) {
      a[i] = static_cast<float>(__builtin_fma(factor, b[i], a[i]));
    }
  }
  ABT_INLINE void scale(float* a, double factor) const {
    for (std::int64_t i = 0; i < length_; ++i) {
      a[i] = static_cast<float>(factor * a[i]);
    }
  }
  ABT_INLINE void set_unit(float* a, const float* rows, int k) const {
    double least = 0;
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < length_; ++i) {
      double weight = 0;
      for (int j = 0; j < k; ++j) {
        const double x = rows[j * length_ + i];
        weight = __builtin_fma(x, x, weight);
      }
      if (i == 0 || weight < least) {
        least = weight;
        place = i;
      }
    }
    std::fill_n(a, length_, 0.0f);
    a[place] = 1;
  }

 private:
  std::int64_t length_;
};

void gram_schmidt_on_host(const at::Tensor& flat, const std::vector<RowSet>& sets) {
  auto* numbers = flat.mutable_data_ptr<float>();
  for (const RowSet& set : sets) {
    vectorized([&]() ABT_INLINED {
      LaneTeam team(set.length);
      kernels::orthonormal_rows(
          team, numbers + set.offset, static_cast<int>(set.done), static_cast<int>(set.rows),
          set.length);
    });
  }
}

void gram_schmidt_on_gpu(const at::Tensor& flat, const std::vector<RowSet>& sets) {
  kernels::RowSetList list;
  const auto queue = [&] {
    launch("gram_schmidt", flat.device(), [&](void* stream) {
      return kernels::gram_schmidt(flat.mutable_data_ptr<float>(), list, stream);
    });
    list.count = 0;
  };
  for (const RowSet& set : sets) {
    if (list.count == kernels::kMaxRowSets) {
      queue();
    }
    list.sets[list.count++] = set;
  }
  queue();
}

// Subtracts from each row after the first set.done rows its projection on those. A row of which
// only rounding errors are left becomes zero.
void project(const at::Tensor& flat, const RowSet& set) {
  const at::Tensor rows =
      flat.narrow(0, set.offset, set.rows * set.length).view({set.rows, set.length});
  const at::Tensor done = rows.narrow(0, 0, set.done);
  at::Tensor left = rows.narrow(0, set.done, set.rows - set.done);
  const auto lengths = [&] { return at::linalg_vector_norm(left, 2, {1}, true, at::kDouble); };
  const at::Tensor least = lengths().mul_(std::sqrt(kernels::kDependent));
  left.addmm_(at::mm(left, done.t()), done, 1, -1);
  left.masked_fill_(lengths().gt(least).logical_not_(), 0);  // NaN included
}

void orthonormalize(const at::Tensor& flat, const std::vector<RowSet>& sets) {
  if (takes_kernels(flat.device())) {
    gram_schmidt_on_gpu(flat, sets);
  } else {
    gram_schmidt_on_host(flat, sets);
  }
}

}  // namespace

void gram_schmidt(const at::Tensor& flat, const std::vector<RowSet>& sets) {
  ABT_ASSERT(
      flat.dim() == 1 && flat.is_contiguous() && flat.scalar_type() == at::kFloat,
      "gram_schmidt: expected a flat fp32 tensor, got {}{}", flat.scalar_type(), flat.sizes());
  for (const RowSet& set : sets) {
    ABT_ASSERT(
        set.rows >= 0 && set.rows <= set.length && set.offset >= 0 &&
            set.offset + set.rows * set.length <= flat.numel(),
        "gram_schmidt: expected rows <= length within the tensor, got {} rows "
        "of {} from offset {} in a tensor of {}",
        set.rows, set.length, set.offset, flat.sizes());
  }
  const auto is_large = [](const RowSet& set) { return set.rows > kGramPanel; };
  if (takes_kernels(flat.device()) && std::ranges::any_of(sets, is_large)) {
    gram_schmidt_in_panels(flat, sets);
  } else {
    orthonormalize(flat, sets);
  }
}

void gram_schmidt_in_panels(const at::Tensor& flat, const std::vector<RowSet>& sets) {
  const at::NoGradGuard no_grad;
  for (std::int64_t done = 0;; done += kGramPanel) {
    std::vector<RowSet> panels;
    for (const RowSet& set : sets) {
      if (set.rows > done) {
        panels.push_back({set.offset, std::min(set.rows, done + kGramPanel), set.length, done});
      }
    }
    if (panels.empty()) {
      return;
    }
    // The second pass removes the rounding errors of the first.
    for (int time = 0; time < (done == 0 ? 1 : 2); ++time) {
      for (const RowSet& panel : panels) {
        if (done > 0) {
          project(flat, panel);
        }
      }
      orthonormalize(flat, panels);
    }
  }
}

}  // namespace abtrain::ops
