#include "ops/code_blocks.h"

#include <algorithm>

#include "base/error.h"

namespace abtrain::ops {

using kernels::CodeBlock;

CodeBlocks::CodeBlocks(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    ABT_ASSERT(
        tensor.begin >= end() && tensor.numel >= 0,
        "code blocks: expected tensors in ascending order, got {} elements at "
        "offset {} after a tensor that ends at {}",
        tensor.numel, tensor.begin, end());
    firsts_.host.push_back(size());
    const std::int64_t slot = std::ssize(firsts_.host) - 1;
    std::int64_t begin = tensor.begin;
    const std::int64_t stop = begin + tensor.numel;
    while (begin < stop) {
      const std::int64_t count = std::min<std::int64_t>(kernels::kBlock, stop - begin);
      blocks_.host.push_back({begin, groups_, count, slot});
      groups_ += (count + kernels::kGroup - 1) / kernels::kGroup;
      begin += count;
    }
  }
  firsts_.host.push_back(size());
}

std::int64_t CodeBlocks::span(Range part) const {
  if (part.begin == part.end) {
    return 0;
  }
  const CodeBlock& last = host()[part.end - 1];
  return last.begin + last.count - host()[part.begin].begin;
}

}  // namespace abtrain::ops
