// Weights files that are decomposed, and the weights that the results stand
// for; small models.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "factored_model.h"
#include "temp_folder.h"
#include "weight_file.h"
#include "weights/decompose_file.h"

namespace abtrain::weights {

using linalg::RankRule;
using linalg::RankRuleName;

inline RankRule fixed_rank(std::int64_t rank) {
  return {.rule = RankRuleName::Fixed, .rank = rank};
}

inline std::unique_ptr<nn::Model> small_vgg() {
  nn::ModelOptions options;
  options.name = "vgg16-small";
  options.width = 0.125;
  return nn::make_model(options, {3, 32, 32, 10});
}

// Every other layer that can be factored gets factors of rank 3, or as many in each block of a
// grid.
inline void factor_every_other(const nn::Model& model, std::int64_t grid = 1) {
  int i = 0;
  for (const nn::NamedWeight& named : nn::factorable_weights(model, {"default"})) {
    if (i++ % 2 == 0) {
      testing::factor_weight(named, std::min<std::int64_t>(3, named.weight->n() / grid), grid);
    }
  }
}

inline at::Tensor low_rank(std::int64_t m, std::int64_t n, std::int64_t rank) {
  return at::matmul(normal({m, rank}, 7), normal({rank, n}, 8));
}

// The weights that a written file stands for, by name.
inline std::map<std::string, at::Tensor> merged(const std::string& path) {
  const state::SafetensorsFile file(path);
  std::map<std::string, at::Tensor> all;
  for (const state::StoredTensor& tensor : file.tensors()) {
    if (state::float_type(tensor.dtype)) {
      all[tensor.name] = file.load(tensor);
    }
  }
  for (const auto& [key, shape] : file.metadata()) {
    if (!key.starts_with("shape:")) {
      continue;
    }
    const std::string name = key.substr(6);
    std::vector<std::int64_t> sizes;
    for (const std::string& size : split_text(shape, ',')) {
      sizes.push_back(std::stoll(size));
    }
    const at::Tensor a = all.at(name + ".A").to(at::kDouble);
    const at::Tensor b = all.at(name + ".B").to(at::kDouble);
    // In a grid: A_bc, c by c in the columns of A[b], and B_bc, b by b in the rows of B[c].
    std::vector<at::Tensor> rows;
    for (std::int64_t i = 0, k = a.size(0); a.dim() == 3 && i < k; ++i) {
      std::vector<at::Tensor> blocks;
      for (std::int64_t j = 0; j < k; ++j) {
        blocks.push_back(at::matmul(a[i].chunk(k, 1)[j], b[j].chunk(k, 0)[i]));
      }
      rows.push_back(at::cat(blocks, 1));
    }
    const at::Tensor w = rows.empty() ? at::matmul(a, b) : at::cat(rows, 0);
    all[name] = (w.size(0) == sizes[0] ? w : w.t().contiguous()).reshape(sizes);
    all.erase(name + ".A");
    all.erase(name + ".B");
  }
  return all;
}

class DecomposeFile : public ::testing::Test {
 protected:
  DecomposeReport run(const RankRule& rule) {
    options_.rule = rule;
    return run();
  }
  DecomposeReport run() {
    options_.input = folder_.file("in");
    options_.output = folder_.file("out");
    return decompose_file(options_, log_);
  }
  void input(const std::vector<state::NamedTensor>& tensors) const {
    write_weights(folder_.file("in"), tensors, {{"format", "pt"}, {"by", "me"}});
  }
  static const DecomposedTensor& row(const DecomposeReport& report, const std::string& name) {
    return *std::ranges::find(report.tensors, name, &DecomposedTensor::name);
  }
  TempFolder folder_;
  DecomposeOptions options_;
  Log log_{LogLevel::Quiet};
};

}  // namespace abtrain::weights
