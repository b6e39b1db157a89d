#include "weights/sparsity.h"

#include <ATen/ops/count_nonzero.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace abtrain::weights {

namespace {

std::int64_t nonzero_count(const at::Tensor& tensor) {
  return at::count_nonzero(tensor.detach()).item<std::int64_t>();
}

std::int64_t file_bytes(const std::string& path) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(path, missing);
  return missing ? 0 : static_cast<std::int64_t>(size);
}

}  // namespace

nlohmann::ordered_json sparsity_json(const nn::Model& model, const std::string& folder) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  std::int64_t weights = 0;
  std::int64_t weights_left = 0;
  for (const nn::NamedWeight& named : model.weights()) {
    const nn::Weight& w = *named.weight;
    const std::int64_t numel =
        w.is_factored() ? w.pair().a.numel() + w.pair().b.numel() : w.dense.numel();
    const std::int64_t left = w.is_factored()
                                  ? nonzero_count(w.pair().a) + nonzero_count(w.pair().b)
                                  : nonzero_count(w.dense);
    layers.push_back(
        {{"name", named.name},
         {"numel", numel},
         {"nonzero", left},
         {"zeros", 1 - static_cast<double>(left) / static_cast<double>(numel)}});
    weights += numel;
    weights_left += left;
  }
  std::int64_t left = weights_left;
  for (const nn::NamedParameter& p : model.parameters()) {
    left += nonzero_count(*p.tensor);
  }
  return {
      {"zeros",
       weights == 0 ? 0.0 : 1 - static_cast<double>(weights_left) / static_cast<double>(weights)},
      {"nonzero_parameters", left},
      {"dense_bytes", file_bytes(folder + "/model.safetensors")},
      {"sparse_bytes", file_bytes(folder + "/model.sparse.safetensors")},
      {"layers", layers}};
}

}  // namespace abtrain::weights
