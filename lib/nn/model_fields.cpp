#include "base/options.h"
#include "nn/model_options.h"

namespace abtrain::nn {

Fields fields_of(ModelOptions& o) {
  Fields f;
  f.choice(
      "name", o.name, {"softmax", "mlp", "lenet5", "vgg16-small"}, "family");
  f.integers(
      "hidden", o.hidden, between(1, 1e6), "mlp: widths of the hidden layers");
  f.number(
      "width", o.width, above(0), "conv nets: factor on the channel counts");
  f.choice(
      "init", o.init, {"kaiming", "orthogonal"}, "how weights are initialised");
  return f;
}

}  // namespace abtrain::nn
