// The parts that the transformers vit and gpt share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/families.h"
#include "nn/layer.h"

namespace abtrain::nn {

// Multi-head self-attention. If `causal` is set, each token attends to itself and to the tokens
// before it; otherwise to all tokens. If `rotary` is set, queries and keys are rotated. First add()
// one layer for queries, keys and values together, or one for each; then the output layer.
class Attention : public Sequential {
 public:
  Attention(std::int64_t heads, bool causal, bool rotary)
      : heads_(heads), causal_(causal), rotary_(rotary) {}
  at::Tensor forward(const at::Tensor& input, const Pass& pass) override;

 private:
  // Rotates the pairs (i, i + d/2) of a head's d features by the angle position * 10000^(-2i/d) (Su
  // et al. 2021). `x`: B x heads x tokens x d; rotated in fp32 if it has fewer bits. `anew`: does
  // not reuse the angles of an earlier call.
  at::Tensor turned(const at::Tensor& x, bool anew);

  std::int64_t heads_;
  bool causal_, rotary_;
  at::Tensor cos_, sin_;  // of the angles in the last call, tokens x d/2
};

// A linear layer whose initial weights have this standard deviation.
inline constexpr double kDeviation = 0.02;
std::unique_ptr<Layer> normal_linear(
    std::int64_t in, std::int64_t out, bool bias = true, double deviation = kDeviation);

// The number of features inside a block's attention (all heads together) and inside its MLP.
struct InnerWidths {
  std::int64_t attention, mlp;
};
// Returns the widths in model.widths, by default `own`. `blocks`: a glob of the blocks' names;
// `divisor`: the attention's width must be a multiple of it.
InnerWidths inner_widths(
    Widths& widths, const std::string& blocks, const InnerWidths& own, std::int64_t divisor);

// A block computes y = x + drop(attn(norm(x))), then y + drop(mlp(norm(y))).
struct BlockForm {
  const char* attention_norm;
  const char* mlp_norm;
  std::int64_t features;
  double eps;           // of the norms
  double drop_rate;     // at the end of each branch
  bool whole_examples;  // see dropout()
};
std::unique_ptr<Layer> transformer_block(
    const BlockForm& form, std::unique_ptr<Layer> attention, std::unique_ptr<Layer> mlp);

}  // namespace abtrain::nn
