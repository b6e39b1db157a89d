// The model families, such as vgg or gpt. To add one, write a function that builds its layers (here
// or in a file of its own) and add a row to the table in families.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/example_shape.h"
#include "nn/layer.h"
#include "nn/model_options.h"

namespace abtrain::nn {

// A tensor's name in torchvision.
struct TorchvisionName {
  std::string name;
  bool flat = false;  // torchvision stores it as O x (I*kh*kw)
};

// A tensor that files may store as part number `part` of a larger tensor `whole`, which has `parts`
// equal parts along its outputs.
struct PartOf {
  std::string whole;
  int part = 0;
  int parts = 1;
};

// How files of another library store a model of the family, apart from tensor names.
struct FileForm {
  std::string library = {};                  // "": timm and torchvision
  std::string prefix = {};                   // names may begin with this
  std::vector<std::string> transposed = {};  // globs of weights stored as I x O
  std::vector<std::string> ignored = {};     // globs of tensors that a model does not need
  // Tensors that a file may hold twice: the copy's name, the model's own name.
  std::vector<std::pair<std::string, std::string>> copies = {};
  // Tensors that never change. Whole models are stored with these, and merged ones also with all
  // copies, so that load_state_dict(strict=True) works.
  struct Constant {
    std::string name;
    at::Tensor tensor;
    bool is_frozen = false;  // a parameter that is not trained
    bool is_read = false;    // a buffer that the model computes with
  };
  std::vector<Constant> constants = {};
  // Null: no tensor is a part of another.
  PartOf (*part_of)(const std::string& name) = nullptr;

  bool is_transposed(const std::string& name) const;
  PartOf part(const std::string& name) const {
    return part_of == nullptr ? PartOf{name} : part_of(name);
  }
};

// A number of channels or features that a configuration can choose separately.
struct FreeWidth {
  std::int64_t count = 0;           // in the model as built
  std::vector<std::string> layers;  // names or globs of the layers that it resizes
  std::int64_t divisor = 1;
  // True if the layers lie between this width and one that is not free, so that their parameters
  // grow linearly with it; false if they lie between two free widths.
  bool is_inner = false;
};

// A model as a family's function builds it.
struct Architecture {
  std::unique_ptr<Layer> layers;
  // Layers kept dense by default: names or globs.
  std::vector<std::string> keep_dense;
  // Maps timm's name, which the layers use, to torchvision's. Null: both use the same names.
  TorchvisionName (*torchvision_name)(const std::string& name) = nullptr;
  FileForm file = {};
  // Why the model should not be trained as it is; empty if it can be.
  std::string untrainable = {};
  // Returns a tensor's initial values, in the file's layout (FileForm). Null: values are drawn.
  std::function<at::Tensor(const std::string& name)> initial = nullptr;
  // Bytes of the largest result of any operator, for a batch of this many examples. Null: unknown.
  // May be called as long as `layers` exists.
  std::function<double(std::int64_t examples)> largest_result = nullptr;
  std::vector<FreeWidth> widths = {};  // in the order of model.widths
};

std::vector<std::string> model_names();
// False if `model.width` changes nothing, because the model has only a classifier.
bool can_scale(const ModelOptions& options);
// Adds a dropout layer if model.drop_rate is above 0.
void add_dropout(Sequential& layers, const ModelOptions& options);

// A count of channels or features times `model.width`, rounded to a multiple of `divisor` (such as
// the number of heads), but at least `divisor`.
std::int64_t scaled(std::int64_t count, const ModelOptions& options, std::int64_t divisor = 1);

// Hands out a model's free widths in the order of `model.widths`.
class Widths {
 public:
  explicit Widths(const ModelOptions& options) : options_(options) {}
  // Returns the next number in `model.widths`, scaled by `model.width`, or `own.count` if the key
  // is auto. Throws Error(Config) unless it is a multiple of `own.divisor`.
  std::int64_t next(FreeWidth own);
  std::int64_t last() const {
    return widths_.back().count;
  }
  // All widths. Throws Error(Config) if `model.widths` has a different number of items.
  std::vector<FreeWidth> all() const;

 private:
  const ModelOptions& options_;
  std::vector<FreeWidth> widths_;
};

// Sets the model's free widths to these counts and `model.width` to 1. Returns overrides with the
// same effect: "model.widths=[6, 16, 120, 84]".
std::vector<std::string> set_widths(ModelOptions& options, const std::vector<std::int64_t>& counts);

// True for images up to 64 pixels high; `auto` then chooses a small stem or patch.
inline bool is_small(const data::ExampleShape& shape) {
  return shape.height <= 64;
}

// A prefix of tensor names, here and in torchvision.
struct Renaming {
  const char* ours;
  const char* theirs;
};
// Replaces the first prefix that matches; returns the name unchanged if none matches.
std::string renamed(std::span<const Renaming> renamings, const std::string& name);

// The numbers in which the models of a family differ; each function says which.
using Sizes = std::array<std::int64_t, 5>;

// vgg11, vgg13, vgg16, vgg19 (Simonyan and Zisserman 2014) as in timm: no batch
// norm; a head of two convolutions (7x7 and 1x1, 4096 channels) and a
// classifier. Sizes: the convolutions of each of the five stages.
Architecture vgg(const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes);
// The usual variant for CIFAR: with batch norm and a single linear head.
Architecture vgg_small(
    const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes);
// resnet18, resnet34 and resnet50 (He et al. 2015). Sizes: the number of blocks in each of the four
// stages, then 1 for bottleneck blocks (1x1, 3x3 and 1x1 convolutions, the last with four times the
// channels). As in torchvision and timm, their 3x3 convolution has the stride.
Architecture resnet(
    const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes);
// vit-tiny, vit-small, vit-base (Dosovitskiy et al. 2020, Touvron et al. 2021) as in timm: a class
// token and 12 blocks, with one attention head per 64 features; `model.width` makes the heads wider
// or narrower. Sizes: the features.
Architecture vit(const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes);
// GPT-2 (Radford et al. 2019), with Hugging Face's names and layout. Sizes: layers, heads and
// features, each of which a key can replace.
Architecture gpt(const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes);
// The model in the file `model.file` (nn/exported). Throws Error: MissingInput, DamagedData, or
// Config for a model that cannot run here or does not fit the shape.
Architecture exported(
    const ModelOptions& options, const data::ExampleShape& shape, const Sizes& sizes);

}  // namespace abtrain::nn
