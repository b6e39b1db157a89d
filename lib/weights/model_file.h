// Models on disk, as safetensors (state/safetensors.h).
//
// A dense parameter has its PyTorch name and shape: timm's, or torchvision's if
// asked for. A factored weight NAME is stored as NAME.A (m x r) and NAME.B (r x
// n), with "shape:NAME" (its dense shape, "O,I" or "O,I,kh,kw") in the
// metadata: A @ B is the O x (I*kh*kw) matrix, or its transpose if O < I*kh*kw.
//
// A gpt's tensors have the names and layout of Hugging Face's GPT-2: the weights of its blocks are
// I x O there ("I,O" in the metadata; A @ B is that matrix or its transpose). The weights of
// queries, keys and values are one matrix, unless one of them is factored.
//
// In a sparse file, a weight NAME that is mostly zeros is stored as NAME.indices (int32: positions
// of the nonzero values in the dense tensor, row by row, ascending) and NAME.values, with
// "shape:NAME" in the metadata.
//
// The file of a run lacks the parts of the model that were frozen. If there were any, the metadata
// entry "base" is the hash of the base, the model that the run began with. If there is an entry
// "beside:NAME", the weight NAME is the base's weight plus NAME.A @ NAME.B.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/example_shape.h"
#include "nn/model.h"

namespace abtrain::weights {

inline constexpr const char* kBaseEntry = "base";
inline constexpr const char* kBesideEntry = "beside:";

// Further metadata entries that describe the model, such as "mean"
// (docs/weights.md).
using About = std::map<std::string, std::string>;
inline constexpr const char* kConfigEntry = "config";  // config::network_yaml()
// The shape of an example of arrays, as example_text() writes it.
inline constexpr const char* kExampleEntry = "example";
std::string example_text(const data::ExampleShape& shape);
// The shape in the metadata; nullopt without such an entry. Throws DamagedData, naming `path`.
std::optional<data::ExampleShape> example_in(const About& about, const std::string& path);
// The metadata of a model file, or of a program that `abtrain export` has written (.pt2), without
// entries about the format.
About about_of(const std::string& path);
// The names of the classes, a JSON list, or only their number; 0 if the entries have neither.
nlohmann::ordered_json classes_in(const About& about);

// How a model is written.
struct ModelForm {
  nn::TensorNames names = nn::TensorNames::Timm;
  bool merged = false;                // multiply factors out, so that all weights are dense
  bool sparse = false;                // store weights that are mostly zeros in sparse form
  at::ScalarType dtype = at::kFloat;  // kFloat, kHalf or kBFloat16
  About about = {};
};
// Returns the file's size in bytes. Throws Error(Io), and Error(Diverged), naming the tensor that
// the dtype cannot hold.
std::uint64_t save_model(
    const std::string& path, const nn::Model& model, const ModelForm& form = {});

// Names a model of a run.
struct RunModel {
  std::string folder = {};  // the run folder
  std::string file = {};    // its file in the folder, or a path; "": the run's final model
  std::string name = {};    // as the user gave it; "": the folder

  std::string path() const;
  const std::string& shown() const { return name.empty() ? folder : name; }  // for people
};

// Throws DamagedData, naming the tensor, if a parameter of the model is not finite, or a buffer is
// nan. `path`: the file that the model comes from.
void check_finite(const nn::Model& model, const std::string& path);

// Loads a file into a model of the same architecture. The model's weights become dense or factored,
// as in the file. If the file has a "base" entry, `model` must be that base, made by
// make_initial_model(); otherwise throws Config. The file may use timm's or torchvision's names.
// `fresh`: layers or tensors that keep the model's values, as names or globs of timm or
// torchvision. Throws MissingInput; DamagedData naming the tensor that is missing, unexpected, of
// another shape, cut off or not finite; Config if a pattern of `fresh` matches nothing.
void load_model(
    const std::string& path, nn::Model& model, const std::vector<std::string>& fresh = {});

}  // namespace abtrain::weights
