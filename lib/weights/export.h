// Exports the trained model of a run for other programs to load.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/run_options.h"
#include "nn/families.h"
#include "weights/model_file.h"

namespace abtrain::weights {

// The XXH3 hash of model.file; "" if the key is none or the file does not exist.
std::string model_file_hash(const config::RunOptions& options);
// Returns an error message if model.file no longer has the hash `before`; "" if it has, or if
// either hash is unknown ("").
std::string change_of_model_file(const std::string& before, const config::RunOptions& options);

// factored: x.weight.A and .B; merged: dense weights; adapter: a folder (weights/adapter.h).
enum class ExportForm { Factored, Merged, Adapter };

struct ExportOptions {
  RunModel model = {};
  std::string output = {};
  bool force = false;                    // replaces the output whatever it is
  ExportForm form = ExportForm::Factored;
  std::optional<nn::TensorNames> names;  // nullopt: as model.names says
  std::string dtype = "fp32";            // fp32 | fp16 | bf16
};

// The example shape of a run's data. For an image folder, which may be on another machine, the
// number of classes comes from the model file `path`.
data::ExampleShape shape_of_run(const config::RunOptions& options, const std::string& path);

// The model of a run with the weights of the file `path`, or with the program's own weights if
// `path` is model.file. Throws as load_model() does, and Error(Config) if model.file is no longer
// the file that the run began with.
std::unique_ptr<nn::Model> model_of_run(
    const config::RunOptions& options, const data::ExampleShape& shape, const std::string& path);

// Loads the model of the run into its architecture, which checks every tensor, and writes it as
// `options` say. The run's data set need not be present, unless it consists of arrays. Returns a
// summary as text. Throws MissingInput; DamagedData naming the tensor; Diverged if a number is
// beyond the dtype; Usage if check_output() (weights/weight_files.h) refuses the output; Io.
std::string export_run(const config::RunOptions& configured, const ExportOptions& options);

// Writes graph.json and tensors.safetensors into the folder; the Python module makes a program for
// PyTorch or ONNX from them. graph.json is Recording::graph (nn/recording.h) with the further
// entries "about", "name" and "parameters" (the dense model's parameter count). Python writes
// options.output, which is only checked here.
void record_run(
    const config::RunOptions& configured, const ExportOptions& options, const std::string& folder);

}  // namespace abtrain::weights
