// Options of a `reducer:` section: how gradients are averaged over a group.
#pragma once

#include <string>

namespace abtrain::compress {

struct ReducerOptions {
  std::string name = "plain";  // plain
  std::string dtype = "fp32";  // on the wire: fp32 | fp16 | bf16
};

}  // namespace abtrain::compress
