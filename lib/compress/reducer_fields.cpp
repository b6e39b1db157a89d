#include "base/options.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

Fields fields_of(ReducerOptions& o, const std::string& extra) {
  Fields f;
  std::vector<std::string> names = {"plain"};
  if (!extra.empty()) {
    names.insert(names.begin(), extra);
  }
  f.choice("name", o.name, names, "how gradients are averaged over a group");
  f.choice(
      "dtype", o.dtype, {"fp32", "fp16", "bf16"}, "plain: numbers on the wire");
  return f;
}

}  // namespace abtrain::compress
