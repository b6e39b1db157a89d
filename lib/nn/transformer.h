// What the transformers vit and gpt have in common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/layer.h"

namespace abtrain::nn {

// Turns the pairs (i, i + d/2) of a head's d features by the angle position *
// 10000^(-2i/d) (Su et al. 2021). In fp32 where `x` has fewer bits.
class Rotary {
 public:
  // `x`: B x heads x tokens x d.
  at::Tensor turned(const at::Tensor& x);

 private:
  void prepare(std::int64_t tokens, std::int64_t half, const at::TensorOptions& like);
  at::Tensor cos_, sin_;  // tokens x d/2
};

// Multi-head self-attention. If `causal`, each token attends to itself and to
// those before it; otherwise, to all. If `rotary`, queries and keys are turned.
class Attention : public Layer {
 public:
  Attention(std::int64_t heads, bool causal, bool rotary)
      : heads_(heads), causal_(causal), rotary_(rotary) {}
  // Add the layer of queries, keys and values, or one for each of them; then
  // the output's.
  void add(std::string name, std::unique_ptr<Layer> layer) {
    parts_.push_back({std::move(name), std::move(layer)});
  }
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;
  void visit(const std::string& prefix, Visitor& visitor) override;

 private:
  struct Part {
    std::string name;
    std::unique_ptr<Layer> layer;
  };
  std::int64_t heads_;
  bool causal_, rotary_;
  std::vector<Part> parts_;
  Rotary turns_;
};

// Adds x + drop(layer(norm(x))) to a block.
struct BranchForm {
  const char* norm;
  const char* layer;
  std::int64_t features;
  double eps;  // of the norm
};
void add_branch(
    Sequential& block, const BranchForm& form, std::unique_ptr<Layer> layer,
    std::unique_ptr<Layer> drop);

}  // namespace abtrain::nn
