// Adapters in the format of Hugging Face's PEFT: a folder with adapter_config.json and
// adapter_model.safetensors, which peft.PeftModel.from_pretrained() loads.
//
// An adapted weight of layer L is stored as base_model.model.L.lora_A.weight, its `inner`, and
// base_model.model.L.lora_B.weight, its `outer` (nn/weight.h); for a convolution, these are
// r x I x kh x kw and O x r x 1 x 1. Layers with other trained parameters are modules_to_save: the
// file has all their tensors.
#pragma once

#include <string>

#include "nn/model.h"

namespace abtrain::weights {

// Throws Usage if `folder` is a file, standard output or, unless `force`, a folder that holds
// anything but an adapter. Call it before long work.
void check_adapter_output(const std::string& folder, bool force);

// Writes the adapter of a model. Its weights must be factors beside a complete remainder, as
// load_model() leaves them. `base`: the name of the adapted model, for people to read. Returns the
// size of its tensors in bytes. Throws Error(Config) for what the format cannot hold: factors in a
// grid, parts of another layer's weight (model.split_qkv), and trained parameters of a layer that
// is adapted, such as its bias; Io.
std::uint64_t save_adapter(
    const std::string& folder, const nn::Model& model, const std::string& base);

// Gives the model's weights the factors of the folder's adapter, and takes over its
// modules_to_save. Throws MissingInput; DamagedData naming the tensor; Config for other kinds of
// adapters than LoRA, and for tensors that the model does not have.
void load_adapter(const std::string& folder, nn::Model& model);

// The hash of the adapter's two files. Throws MissingInput.
std::uint64_t hash_of_adapter(const std::string& folder);

}  // namespace abtrain::weights
