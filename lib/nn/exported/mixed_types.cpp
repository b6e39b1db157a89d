#include "nn/exported/mixed_types.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <set>
#include <string>

namespace abtrain::nn {

namespace {

// Found by calling the operators with PyTorch's own samples (torch.testing's op_db), some or all of
// whose tensors were bf16, forward and backward.
const std::set<std::string>& needing_one_type() {
  static const std::set<std::string> names = {
      "addbmm",
      "addmm",
      "addmv",
      "addr",
      "baddbmm",
      "bilinear",
      "chain_matmul",
      "cross",
      "cartesian_prod",
      "dot",
      "embedding_bag",
      "heaviside",
      "index_add",
      "index_copy",
      "index_put",
      "index_reduce",
      "inner",
      "isclose",
      "lerp",
      "linalg_cross",
      "linalg_multi_dot",
      "masked_scatter",
      "meshgrid",
      "mv",
      "put",
      "scatter",
      "scatter_add",
      "scatter_reduce",
      "tensordot",
      "vdot"};
  return names;
}
const std::set<std::string>& without_bf16() {
  static const std::set<std::string> names = {
      "_upsample_bilinear2d_aa",
      "complex",
      "cumprod",
      "det",
      "linalg_det",
      "linalg_matrix_norm",
      "linalg_pinv",
      "linalg_slogdet",
      "linalg_solve_triangular",
      "logdet",
      "matrix_exp",
      "nuclear_norm",
      "polar",
      "slogdet",
      "special_erfcx",
      "special_log_ndtr",
      "special_ndtri",
      "view_as_complex"};
  return names;
}

bool is_low(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

// True for a floating-point tensor that takes part in type promotion. Python numbers that PyTorch
// has wrapped in a tensor do not.
bool counts(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() &&
         !tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Replaces each tensor that counts, from place `first` on, by change(tensor).
void change_each(torch::jit::Stack& arguments, std::size_t first, const auto& change) {
  for (std::size_t i = first; i < arguments.size(); ++i) {
    c10::IValue& value = arguments[i];
    if (value.isTensor() && counts(value.toTensor())) {
      value = change(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> items;
      for (const at::Tensor& item : value.toTensorVector()) {
        items.push_back(counts(item) ? change(item) : item);
      }
      value = items;
    }
  }
}

}  // namespace

MixedTypes mixed_types(const GraphNode& node) {
  std::string name = node.target.substr(node.target.find("::") + 2);
  const bool writes = !node.arguments.empty() && node.writes(0);
  if (writes && name.ends_with('_')) {
    name.pop_back();
  }
  if (without_bf16().contains(name)) {
    return writes ? MixedTypes::Taken : MixedTypes::Exact;
  }
  return !needing_one_type().contains(name) ? MixedTypes::Taken
         : writes                           ? MixedTypes::Written
                                            : MixedTypes::Promoted;
}

void cast_mixed(torch::jit::Stack& arguments, MixedTypes how) {
  if (how == MixedTypes::Taken) {
    return;
  }
  if (how == MixedTypes::Written) {
    const at::ScalarType type = arguments.at(0).toTensor().scalar_type();
    change_each(arguments, 1, [&](const at::Tensor& tensor) {
      const bool differs = is_low(type) ? tensor.scalar_type() == at::kFloat
                                        : type == at::kFloat && is_low(tensor.scalar_type());
      return differs ? tensor.to(type) : tensor;
    });
    return;
  }
  bool casts = how == MixedTypes::Exact;
  change_each(arguments, 0, [&](const at::Tensor& tensor) {
    casts |= tensor.scalar_type() == at::kFloat;
    return tensor;
  });
  if (casts) {
    change_each(arguments, 0, [](const at::Tensor& tensor) {
      return is_low(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
    });
  }
}

}  // namespace abtrain::nn
