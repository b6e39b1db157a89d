// The model families, by name. A new one is a function that builds its layers
// (here or in a file of its own) and a row of the table in families.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/layer.h"
#include "nn/model_options.h"

namespace abtrain::nn {

// Input: B x channels x height x width.
struct InputShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
};

// What torchvision calls a tensor.
struct TorchvisionName {
  std::string name;
  bool flat = false;  // its weight is a matrix there, O x (I*kh*kw)
};

// What a family hands over.
struct Architecture {
  std::unique_ptr<Layer> layers;
  // Layers that it keeps dense by default, names or globs.
  std::vector<std::string> keep_dense;
  // From timm's name, which the layers have; null: they are the same.
  TorchvisionName (*torchvision_name)(const std::string& name) = nullptr;
};

std::vector<std::string> model_names();
// Throws Error(Config) for an unknown name or a shape that the family cannot
// take.
Architecture build(const ModelOptions& options, const InputShape& shape);

// Adds dropout where there is any (model.drop_rate).
void add_dropout(Sequential& layers, const ModelOptions& options);

// A channel count of a conv net times `model.width`.
std::int64_t scaled(std::int64_t channels, const ModelOptions& options);

// Images as small as CIFAR's, for which `auto` takes a small stem or patch.
bool is_small(const InputShape& shape);

// A beginning of names, here and in torchvision.
struct Renaming {
  const char* ours;
  const char* theirs;
};
// The name with the first beginning that it has renamed; itself without one.
std::string renamed(
    std::span<const Renaming> renamings, const std::string& name);

// vgg11, vgg13, vgg16, vgg19 (Simonyan and Zisserman 2014) as in timm: no batch
// norm, a head of two convolutions (7x7 and 1x1, 4096 channels) and a classifier.
Architecture vgg(
    int depth, const ModelOptions& options, const InputShape& shape);
// The usual form for CIFAR: with batch norm, and one linear head.
Architecture vgg_small(
    int depth, const ModelOptions& options, const InputShape& shape);
// resnet18, resnet34, resnet50 (He et al. 2015; the stride of a bottleneck in
// its 3x3 convolution, as torchvision and timm).
Architecture resnet(
    int depth, const ModelOptions& options, const InputShape& shape);
// vit-tiny, vit-small, vit-base (Dosovitskiy et al. 2020, Touvron et al. 2021)
// as in timm: a class token, 12 blocks of `features` in heads of 64.
Architecture vit(
    std::int64_t features,
    const ModelOptions& options,
    const InputShape& shape);

}  // namespace abtrain::nn
