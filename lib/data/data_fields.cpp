#include "base/options.h"
#include "data/data_options.h"
#include "data/dataset.h"

namespace abtrain::data {

Fields fields_of(DataOptions& o) {
  Fields f;
  const std::vector<std::string> held = {"fashion-mnist", "cifar10", "cifar100", "arrays"};
  std::vector<std::string> images = held;
  images.emplace_back("image-folder");
  f.choice("name", o.name, dataset_names(), "the data set to train on");
  f.path_or(
       "root", "auto", o.root,
       "folder that holds its files; auto: search the usual places; for text a "
       "file or a folder of files, plain or gzipped; for arrays the folder of "
       "train.safetensors or train_x.npy")
      .free();
  f.integer(
       "batch_size", o.batch_size, between(1, 1e6),
       "examples (images, windows of a text) per worker and step; with balance, on average")
      .free(MayChange::WithWorkers);
  f.choice(
       "augment", o.augment,
       {{"none", AugmentName::None},
        {"flip", AugmentName::Flip},
        {"crop", AugmentName::Crop},
        {"crop-flip", AugmentName::CropFlip}},
       "random changes to the training images; crop: a window of the padded "
       "image, or for image-folder a part of random size and aspect ratio")
      .of(images);
  f.number("erase", o.erase, between(0, 1), "probability of erasing a rectangle").of(images);
  f.integer(
       "subset", o.subset, between(0, 1e8),
       "use only this many training images, the first ones in file order; "
       "0: all")
      .of(held);
  f.integer(
       "pool", o.pool, between(0, 4096),
       "shrink images to this side by means over equal blocks, not rounded "
       "to bytes, before data.augment; it must divide height and width; 0: "
       "do not shrink")
      .of(held);
  f.flag(
       "standardize", o.standardize,
       "normalize each pixel of each channel by itself: subtract its mean "
       "over the training images (those of data.subset, including held-out "
       "ones), divide by its standard deviation + 1e-3; a pixel that never varies "
       "becomes 0")
      .of(held);
  f.integer(
      "validation", o.validation, between(0, 1e8),
      "number of training examples (images, windows of a text) held out and "
      "scored at each evaluation; 0: none, or those of the folder val if image-folder also has "
      "test");
  f.choice<Shards>(
      "shards", o.shards, {{"even", Shards::Even}, {"by-class", Shards::ByClass}},
      "how the training examples are divided among the workers; even: each takes an equal share of "
      "all of them; by-class: each has other classes, or another part of a text, as if data could "
      "not leave their site");
  f.auto_or_flag(
       "on_device", o.on_device,
       "whether the images lie in the GPU's memory as bytes and batches are "
       "made there, identical to the host's; auto: on a GPU, if they take "
       "at most a tenth of its memory; never for pooled or standardized images, nor for arrays "
       "other than uint8")
      .free()
      .of(held);
  f.numbers(
       "mean", o.mean, between(-kLargest, kLargest),
       "mean per channel, of pixel / 255, or of the numbers of arrays; empty: the "
       "data set's own, 0 for arrays",
       0)
      .of(images);
  f.numbers(
       "std", o.std, above_to(0, kLargest),
       "standard deviation per channel, of pixel / 255, or of the numbers of "
       "arrays; empty: the data set's own, 1 for arrays",
       0)
      .of(images);
  f.integer(
       "image_size", o.image_size, between(8, 4096),
       "side of the images that the network gets, in pixels")
      .of({"image-folder"});
  f.integer(
       "resize", o.resize, between(8, 4096),
       "without a random crop, an image's shorter side is "
       "resized to this length and the center is cut out; at least "
       "image_size")
      .of({"image-folder"});
  f.numbers(
       "crop_scale", o.crop_scale, above_to(0, 1),
       "smallest and largest share of the area that the "
       "random crop takes")
      .of({"image-folder"});
  f.auto_or_integer(
       "decode_threads", o.decode_threads, between(1, 1024),
       "decoding threads per worker; auto: cores / workers")
      .free()
      .of({"image-folder"});
  f.number(
       "max_damaged", o.max_damaged, between(0, 1),
       "share of train's or val's images that may be damaged "
       "before the run fails; if above 0, one damaged image is always "
       "tolerated")
      .free()
      .of({"image-folder"});
  f.integer("context", o.context, between(1, 1e6), "tokens per window; each predicts the next one")
      .of({"gcide", "text"});
  f.choice(
       "tokens", o.tokens,
       {{"bytes", TokenType::Bytes}, {"uint16", TokenType::Uint16}, {"uint32", TokenType::Uint32}},
       "how its files store tokens; bytes: each byte is one; uint16 and uint32: token IDs of "
       "another program, as nanoGPT and llm.c write them into .bin files")
      .of({"gcide", "text"});
  f.auto_or_integer(
       "vocabulary", o.vocabulary, between(2, 1e8),
       "vocabulary size; auto: for text 256 with bytes, else the 50,257 of GPT-2; for arrays the "
       "largest token + 1")
      .of({"gcide", "text", "arrays"});
  f.number(
       "bytes_per_token", o.bytes_per_token, above_to(0, 1000),
       "bytes that a token stands for on average, from which bits per "
       "byte are computed")
      .of({"gcide", "text"});
  f.path_or(
       "test", "none", o.test,
       "file or folder of the test text; none: the tail of the training "
       "text")
      .free()
      .of({"gcide", "text"});
  f.number(
       "test_share", o.test_share, above_to(0, 0.5),
       "share of the data that becomes the test set if there is none: the tail of a text; random "
       "examples of arrays and of each class of image-folder, the same in every run")
      .of({"gcide", "text", "arrays", "image-folder"});
  f.choice(
       "task", o.task,
       {{"auto", Task::Auto}, {"classes", Task::Classes}, {"regression", Task::Regression}},
       "what y is; auto: integers are classes, floating-point numbers are targets of a "
       "regression, and what may be either is refused; classes: whole numbers of any type, or "
       "one-hot rows; regression: numbers of any type")
      .of({"arrays"});
  return f;
}

}  // namespace abtrain::data
