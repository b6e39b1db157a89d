#include "base/options.h"
#include "data/data_options.h"

namespace abtrain::data {

Fields fields_of(DataOptions& o) {
  Fields f;
  f.choice("name", o.name, {"fashion-mnist", "cifar10"}, "data set");
  f.text("root", o.root, "folder of its files; auto: the usual places");
  f.integer(
      "batch_size", o.batch_size, between(1, 1e6), "images a worker and step");
  f.choice(
      "augment",
      o.augment,
      {"none", "flip", "crop", "crop-flip"},
      "random changes of the training images");
  f.integer(
      "pad", o.pad, between(0, 64), "border that the random crop adds, pixels");
  f.number(
      "erase", o.erase, between(0, 1), "probability of erasing a rectangle");
  f.integer(
      "validation",
      o.validation,
      at_least(0),
      "training images held out, scored at each evaluation");
  f.integer("prefetch", o.prefetch, between(1, 1024), "batches prepared ahead");
  return f;
}

Fields fields_of(OrderOptions& o) {
  Fields f;
  f.choice("name", o.name, {"shuffle", "sequential"}, "order of the examples");
  return f;
}

}  // namespace abtrain::data
