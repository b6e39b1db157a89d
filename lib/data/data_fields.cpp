#include "base/options.h"
#include "data/data_options.h"
#include "data/dataset.h"

namespace abtrain::data {

Fields fields_of(DataOptions& o) {
  Fields f;
  f.choice("name", o.name, dataset_names(), "data set");
  f.text("root", o.root, "folder of its files; auto: the usual places");
  f.integer(
      "batch_size", o.batch_size, between(1, 1e6), "images a worker and step");
  f.choice(
      "augment",
      o.augment,
      {"none", "flip", "crop", "crop-flip"},
      "random changes of the training images; crop: a window of the image "
      "with a border, of image-folder a part of random size and shape");
  f.integer(
      "pad",
      o.pad,
      between(0, 64),
      "border that the random crop adds, pixels; not of image-folder");
  f.number(
      "erase", o.erase, between(0, 1), "probability of erasing a rectangle");
  f.integer(
      "subset",
      o.subset,
      between(0, 1e8),
      "only the first training images, in the order of the files; 0: all; not "
      "of image-folder");
  f.integer(
      "pool",
      o.pool,
      between(0, 4096),
      "means over equal blocks make images of this side, not rounded to bytes, "
      "before data.augment; it divides height and width; 0: as they are; not "
      "of "
      "image-folder");
  f.flag(
      "standardise",
      o.standardise,
      "each pixel of a channel by itself: less its mean over the training "
      "images (of data.subset, with the held-out ones), over its deviation + "
      "1e-3; one that never differs is 0; not of image-folder");
  f.integer(
      "validation",
      o.validation,
      between(0, 1e8),
      "training images held out, scored at each evaluation");
  f.integer(
      "prefetch",
      o.prefetch,
      between(1, 1024),
      "batches prepared ahead, where the host makes them");
  f.choice(
      "on_device",
      o.on_device,
      {"auto", "true", "false"},
      "whether the images lie in the GPU's memory as bytes and batches are "
      "made there, the same as on the host; auto: on a GPU, where they take at "
      "most a tenth of its memory; never of image-folder, nor of pooled or "
      "standardised images");
  f.numbers(
      "mean",
      o.mean,
      between(0, 1),
      "a channel, of pixel / 255; empty: the set's own",
      0);
  f.numbers(
      "std",
      o.std,
      above_to(0, 10),
      "a channel, of pixel / 255; empty: the set's own",
      0);
  f.integer(
      "image_size",
      o.image_size,
      between(8, 4096),
      "image-folder: side of the images that the network gets, pixels");
  f.integer(
      "resize",
      o.resize,
      between(8, 4096),
      "image-folder: without a random crop an image's shorter side gets this "
      "length, then the centre is cut out; at least image_size");
  f.numbers(
      "crop_scale",
      o.crop_scale,
      above_to(0, 1),
      "image-folder: least and largest share of the area that the random crop "
      "takes");
  f.auto_or_integer(
      "decode_threads",
      o.decode_threads,
      between(1, 1024),
      "image-folder: threads that decode, a worker; auto: cores / workers");
  f.number(
      "max_damaged",
      o.max_damaged,
      between(0, 1),
      "image-folder: damaged images that a run survives, a share of train or "
      "of val; above 0 one image is always survived");
  return f;
}

Fields fields_of(OrderOptions& o) {
  Fields f;
  f.choice(
      "name",
      o.name,
      {"shuffle", "sequential", "grab", "id-grab", "cd-grab"},
      "order of the examples; grab, id-grab and cd-grab: each epoch's by the "
      "gradients of the one before (docs/methods/orders.md)");
  f.choice(
      "unit",
      o.unit,
      {"microbatch", "example"},
      "what gradients put in order: a worker's images of a step, which then "
      "stay together, or each image by its own gradient");
  f.choice(
      "wire",
      o.wire,
      {"fp32", "int8", "sketch"},
      "how cd-grab sends differences of gradients");
  f.integer(
      "sketch",
      o.sketch,
      between(1, 1 << 24),
      "numbers that a difference has on the wire `sketch`");
  return f;
}

bool is_balanced(const OrderOptions& options) {
  return options.name == "grab" || options.name == "id-grab" ||
         options.name == "cd-grab";
}

}  // namespace abtrain::data
