#include "ops/code_blocks.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace abtrain::ops {

using kernels::CodeBlock;

constexpr std::int64_t kLongs = sizeof(CodeBlock) / sizeof(std::int64_t);

CodeBlocks::CodeBlocks(const std::vector<Tensor>& tensors, bool in_windows) {
  for (const Tensor& tensor : tensors) {
    ABT_ASSERT(
        tensor.begin >= end() && tensor.numel >= 0,
        "code blocks: expected tensors in ascending order, got {} elements at "
        "offset {} after a tensor that ends at {}",
        tensor.numel, tensor.begin, end());
    firsts_.push_back(size());
    const auto slot = static_cast<std::int64_t>(firsts_.size()) - 1;
    std::int64_t begin = tensor.begin;
    const std::int64_t stop = begin + tensor.numel;
    while (begin < stop) {
      const std::int64_t longest = kernels::kBlock - (in_windows ? begin % kernels::kBlock : 0);
      const std::int64_t count = std::min(longest, stop - begin);
      blocks_.push_back({begin, groups_, count, slot});
      groups_ += (count + kernels::kGroup - 1) / kernels::kGroup;
      begin += count;
    }
  }
  firsts_.push_back(size());
}

std::int64_t CodeBlocks::span(Range part) const {
  if (part.begin == part.end) {
    return 0;
  }
  const CodeBlock& last = blocks_[static_cast<std::size_t>(part.end - 1)];
  return last.begin + last.count - blocks_[static_cast<std::size_t>(part.begin)].begin;
}

const CodeBlock* CodeBlocks::on(c10::Device device) {
  if (device.is_cpu()) {
    return host();
  }
  if (!copy_.defined() || copy_.device() != device) {
    const auto firsts = static_cast<std::int64_t>(firsts_.size());
    const at::Tensor both = at::empty({kLongs * size() + firsts}, at::kLong);
    auto* to = both.mutable_data_ptr<std::int64_t>();
    if (size() > 0) {
      std::memcpy(to, blocks_.data(), blocks_.size() * sizeof(CodeBlock));
    }
    std::copy(firsts_.begin(), firsts_.end(), to + kLongs * size());
    copy_ = both.to(device);
  }
  return reinterpret_cast<const CodeBlock*>(copy_.const_data_ptr<std::int64_t>());
}

const std::int64_t* CodeBlocks::firsts_on(c10::Device device) {
  return device.is_cpu() ? firsts_.data()
                         : reinterpret_cast<const std::int64_t*>(on(device) + size());
}

}  // namespace abtrain::ops
