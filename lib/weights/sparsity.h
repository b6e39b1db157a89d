// The exact zeros of a trained model.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "nn/model.h"

namespace abtrain::weights {

// {"zeros": the share of weights that are zero, "nonzero_parameters", "dense_bytes", "sparse_bytes"
// (sizes of the two model files in `folder`), "layers": [{"name", "numel", "nonzero", "zeros"},
// ...]}.
nlohmann::ordered_json sparsity_json(const nn::Model& model, const std::string& folder);

}  // namespace abtrain::weights
