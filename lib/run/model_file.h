// Models on disk, as safetensors (github.com/huggingface/safetensors): an
// 8-byte little-endian header length, a JSON header, raw tensors.
//
// A dense parameter has its PyTorch name and shape. A factored weight NAME is
// stored as NAME.A (m x r) and NAME.B (r x n), with "shape:NAME" (its dense
// shape, "O,I" or "O,I,kh,kw") in the metadata: A @ B is the O x (I*kh*kw) matrix, or
// its transpose where O < I*kh*kw.
#pragma once

#include <string>

#include "nn/model.h"

namespace abtrain::run {

// Written beside its place and renamed. Throws Error(Io).
void save_model(const std::string& path, const nn::Model& model);

// Into a model of the same architecture, dense or factored as the file is.
// Throws MissingInput, or DamagedData naming the tensor that is missing, has
// another shape or is cut off.
void load_model(const std::string& path, nn::Model& model);

}  // namespace abtrain::run
