// Averages a flat fp32 tensor over a group, optionally in a 16-bit type on the
// wire: gradients every step, parameters at a sync (`method.sync_dtype`).
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "comm/communicator.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

// Parses fp32 | fp16 | bf16. Throws Error(Config), naming `key`, for any other.
at::ScalarType wire_dtype(std::string_view name, std::string_view key);
// The wire type of what a reducer sends uncompressed (its `dtype`).
at::ScalarType plain_dtype(const ReducerOptions& options);

// Keeps its wire buffer from call to call.
class Average {
 public:
  explicit Average(at::ScalarType wire) : wire_(wire) {}

  // Averages in place a 1-D contiguous fp32 tensor. The mean has the same bits
  // on every member. A group of one sends nothing, so nothing is rounded.
  void operator()(
      const at::Tensor& flat,
      comm::Communicator& communicator,
      comm::Purpose purpose);

  at::ScalarType wire() const {
    return wire_;
  }

 private:
  at::ScalarType wire_;
  at::Tensor room_;
};

}  // namespace abtrain::compress
