// Options of a `reducer:` section: how gradients are averaged over a group.
#pragma once

#include <string>

namespace abtrain {
class Fields;
}

namespace abtrain::compress {

struct ReducerOptions {
  std::string name = "plain";  // plain
  std::string dtype = "fp32";  // on the wire: fp32 | fp16 | bf16
};

// The table of its keys, ranges and help (base/options.h). `extra`: a name that
// stands for another section's reducer, "" for none.
Fields fields_of(ReducerOptions& options, const std::string& extra = "");

}  // namespace abtrain::compress
