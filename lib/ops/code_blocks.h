// The table of blocks, of at most 4,096 elements each, in which the tensors of
// a flat fp32 buffer are coded (kernels/code_blocks.h). The tensors follow one
// another in the table, and no block crosses a tensor's end. Work is divided
// among workers by block, not by tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/code_blocks.h"
#include "ops/device_table.h"

namespace abtrain::ops {

class CodeBlocks {
 public:
  struct Tensor {
    std::int64_t begin = 0;  // in the buffer
    std::int64_t numel = 0;
  };
  // Blocks begin .. end - 1 of the table.
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  CodeBlocks() = default;
  // Tensors must be in ascending order and must not overlap.
  explicit CodeBlocks(const std::vector<Tensor>& tensors);

  std::int64_t size() const {
    return std::ssize(blocks_.host);
  }
  std::int64_t tensors() const {
    return std::ssize(firsts_.host) - (firsts_.host.empty() ? 0 : 1);
  }
  // One past the last element of the last block.
  std::int64_t end() const {
    return size() == 0 ? 0 : blocks_.host.back().begin + blocks_.host.back().count;
  }
  Range all() const {
    return {0, size()};
  }
  // The part that falls to worker `i` if n workers divide the blocks evenly.
  Range share(int n, int i) const {
    return {size() * i / n, size() * (i + 1) / n};
  }
  // Number of groups of 32 elements before block b; b is 0 .. size().
  std::int64_t groups_before(std::int64_t b) const {
    return b < size() ? blocks_.host[static_cast<std::size_t>(b)].group : groups_;
  }
  std::int64_t groups(Range part) const {
    return groups_before(part.end) - groups_before(part.begin);
  }
  std::int64_t groups() const {
    return groups_;
  }
  // Distance from the part's first element to one past its last.
  std::int64_t span(Range part) const;

  const kernels::CodeBlock* host() const {
    return blocks_.host.data();
  }
  // First block of each tensor, followed by size().
  const std::vector<std::int64_t>& firsts() const {
    return firsts_.host;
  }
  // The contents of host() and firsts() in memory that the device can read.
  const kernels::CodeBlock* on(c10::Device device) {
    return blocks_.on(device);
  }
  const std::int64_t* firsts_on(c10::Device device) {
    return firsts_.on(device);
  }

 private:
  DeviceTable<kernels::CodeBlock> blocks_;
  DeviceTable<std::int64_t> firsts_;
  std::int64_t groups_ = 0;
};

}  // namespace abtrain::ops
