// Models on disk, as safetensors (weights/safetensors.h).
//
// A dense parameter has its PyTorch name and shape: timm's, or torchvision's
// where that is asked for. A factored weight NAME is stored as NAME.A (m x r)
// and NAME.B (r x n), with "shape:NAME" (its dense shape, "O,I" or "O,I,kh,kw")
// in the metadata: A @ B is the O x (I*kh*kw) matrix, or its transpose where
// O < I*kh*kw.
//
// In a sparse file a weight NAME that takes less room so is stored as
// NAME.indices (int32: places of what is not 0 in the dense tensor, row by row,
// ascending) and NAME.values, with "shape:NAME" in the metadata.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/model.h"

namespace abtrain::weights {

// names: timm | torchvision. Throws Error(Io).
void save_model(
    const std::string& path,
    const nn::Model& model,
    const std::string& names = "timm");

// The same with the weights that are mostly zeros stored as such.
void save_sparse_model(
    const std::string& path,
    const nn::Model& model,
    const std::string& names = "timm");

// How a model is written for others.
struct ModelForm {
  std::string names = "timm";
  bool merged = false;  // factors multiplied out, so that all weights are dense
  at::ScalarType dtype = at::kFloat;  // kFloat, kHalf or kBFloat16
};
// Returns the bytes of the file. Throws Error(Diverged) naming the tensor that
// the dtype cannot hold.
std::uint64_t save_model_as(
    const std::string& path,
    const nn::Model& model,
    const ModelForm& form);

// The model of a run: a file of its folder, or any other; "": its own.
std::string model_path(const std::string& folder, const std::string& file);

// Into a model of the same architecture, dense or factored as the file is, from
// timm's names or torchvision's. `fresh`: names or globs of layers (or tensors
// of none), of either library, that stay as they are. Throws MissingInput;
// DamagedData naming the tensor that is missing, unexpected, of another shape
// or cut off; Config where a pattern of `fresh` matches nothing.
void load_model(
    const std::string& path,
    nn::Model& model,
    const std::vector<std::string>& fresh = {});

}  // namespace abtrain::weights
