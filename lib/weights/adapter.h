// Adapters in the format of Hugging Face's PEFT: a folder with adapter_config.json and
// adapter_model.safetensors, which peft.PeftModel.from_pretrained() loads.
//
// The factors of an adapted layer L are stored as base_model.model.L.lora_A.weight (Weight::inner,
// r x I) and base_model.model.L.lora_B.weight (Weight::outer, O x r); for a convolution, they are
// r x I x kh x kw and O x r x 1 x 1. Layers with other trained parameters are modules_to_save: the
// file has all their tensors.
#pragma once

#include <string>

#include "nn/model.h"

namespace abtrain::weights {

// Throws Usage if `folder` is a file, standard output or, unless `force`, a folder that holds
// anything but an adapter. Call it before long work.
void check_adapter_output(const std::string& folder, bool force);

// Writes the adapter of a model. The adapted weights must have factors and a frozen remainder
// (Weight::rest), as after load_model(). `base`: the adapted model's name, for information only.
// Returns the size of the tensors' file in bytes. Throws Error(Config) for what the format cannot
// hold: factors in a grid, parts of another layer's weight (model.split_qkv), and trained
// parameters of a layer that is adapted, such as its bias; Io.
std::uint64_t save_adapter(
    const std::string& folder, const nn::Model& model, const std::string& base);

// Loads the adapter in the folder: adds its factors to the model's weights, and replaces the
// tensors of modules_to_save. Throws MissingInput; DamagedData naming the tensor; Config for other
// kinds of adapters than LoRA, and for tensors that the model does not have.
void load_adapter(const std::string& folder, nn::Model& model);

// The hash of the adapter's two files. Throws MissingInput.
std::uint64_t hash_of_adapter(const std::string& folder);

}  // namespace abtrain::weights
