#include "weights/export.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/output.h"
#include "base/scalars.h"
#include "config/run_length.h"
#include "data/dataset.h"
#include "nn/recording.h"
#include "weights/adapter.h"
#include "weights/initial_model.h"
#include "weights/model_file.h"
#include "weights/weight_files.h"

namespace abtrain::weights {

namespace {

// First dimension of a weight, dense or factored; 0 if the file lacks the weight.
std::int64_t rows_of(const state::SafetensorsFile& file, const std::string& weight) {
  if (file.has(weight)) {
    const auto sizes = file.shape(weight);
    return sizes.empty() ? 0 : sizes[0];
  }
  std::int64_t rows = 0;
  std::string ignored;
  parse_integer(split_text(file.metadata("shape:" + weight), ',')[0], rows, ignored);
  return rows;
}

}  // namespace

data::ExampleShape shape_of_run(const config::RunOptions& options, const std::string& path) {
  if (data::is_text(options.data)) {
    return config::text_shape(options.data);
  }
  if (!data::has_files(options.data)) {
    const std::optional<data::ExampleShape> known =
        path == options.model.file ? std::nullopt : example_in(about_of(path), path);
    return known ? *known : data::dataset_shape(options.data);
  }
  const std::int64_t side = options.data.image_size;
  data::ExampleShape shape{3, side, side, 1};
  const auto classes = classes_in(about_of(path));
  std::int64_t count = std::ssize(classes);
  if ((classes.is_array() || read_json(classes, count)) && count > 0) {
    shape.classes = count;
    return shape;
  }
  const auto model = nn::make_model(options.model, shape);
  const std::string head = model->weights().back().name;
  const state::SafetensorsFile file(path);
  for (const std::string& name : {head, model->torchvision_name(head).name}) {
    shape.classes = std::max(shape.classes, rows_of(file, name));
  }
  return shape;
}

std::string model_file_hash(const config::RunOptions& options) {
  return options.model.file && is_there(*options.model.file)
             ? hash_text(hash_of(InputFile(*options.model.file)))
             : "";
}

std::string change_of_model_file(const std::string& before, const config::RunOptions& options) {
  const std::string now = before.empty() ? "" : model_file_hash(options);
  return now.empty() || now == before ? ""
                                      : formatted(
                                            "model.file: {} is no longer the file that the run "
                                            "began with; put that one back",
                                            *options.model.file);
}

std::unique_ptr<nn::Model> model_of_run(
    const config::RunOptions& options, const data::ExampleShape& shape, const std::string& path) {
  if (path == options.model.file) {  // a program, which brings its own weights
    return make_initial_model(options, shape);
  }
  const About about = about_of(path);
  const auto hash = about.find("model_file");
  const std::string change = hash == about.end() ? "" : change_of_model_file(hash->second, options);
  ABT_CHECK(change.empty(), Config, "{}: {}", path, change);
  std::unique_ptr<nn::Model> model = about.contains(kBaseEntry)
                                         ? make_initial_model(options, shape)
                                         : nn::make_model(options.model, shape);
  load_model(path, *model);
  return model;
}

std::string export_run(const config::RunOptions& configured, const ExportOptions& options) {
  const std::string path = options.model.path();
  const bool is_adapter = options.form == ExportForm::Adapter;
  if (is_adapter) {
    ABT_CHECK(
        !options.names && options.dtype == "fp32", Usage,
        "--form adapter: PEFT's names and fp32 are the only ones; leave out --names and --dtype");
    check_adapter_output(options.output, options.force);
  } else {
    check_output(options.output, {path}, options.force);
  }
  const auto model = model_of_run(configured, shape_of_run(configured, path), path);
  const std::string& name = options.model.name.empty() ? path : options.model.name;
  if (is_adapter) {
    const std::string base =
        configured.model.weights.value_or(configured.model.file.value_or(configured.model.name));
    const std::uint64_t bytes = save_adapter(options.output, *model, base);
    return formatted(
        "{} -> {}\n  an adapter of {} for PEFT, {} parameters, {}\n", name, options.output, base,
        with_commas(model->stored_parameters()), human_bytes(static_cast<double>(bytes)));
  }
  const ModelForm form{
      .names = options.names.value_or(configured.model.names),
      .merged = options.form == ExportForm::Merged,
      .dtype = state::float_type(state::stored_dtype(options.dtype)).value(),
      .about = about_of(path)};
  const std::uint64_t bytes = save_model(options.output, *model, form);
  const std::int64_t dense = model->dense_parameters();
  const std::int64_t stored = form.merged ? dense : model->stored_parameters();
  return formatted(
      "{} -> {}\n  {}, {}'s names, {}, {} of {} parameters, {}\n", name, options.output,
      form.merged             ? "merged"
      : model->base().empty() ? "factored"
                              : "an adapter, without its base",
      model->file_form().library.empty() ? nn::name_of(form.names) : model->file_form().library,
      options.dtype, with_commas(stored), with_commas(dense),
      human_bytes(static_cast<double>(bytes)));
}

void record_run(
    const config::RunOptions& configured, const ExportOptions& options, const std::string& folder) {
  const std::string path = options.model.path();
  ABT_CHECK(
      options.form != ExportForm::Adapter && !options.names && options.dtype == "fp32", Usage,
      "-o {}: a program has the names of the run's own model and computes in fp32; leave out "
      "--names, --dtype and --form adapter",
      options.output);
  const auto matches = [](const std::string&) { return false; };
  check_replaceable(options.output, {"-o", "an empty file", matches}, options.force);
  const data::ExampleShape shape = shape_of_run(configured, path);
  const auto model = model_of_run(configured, shape, path);
  const std::int64_t dense = model->dense_parameters();
  if (options.form == ExportForm::Merged) {
    for (const nn::NamedWeight& w : model->weights()) {
      w.weight->set_dense(w.weight->merged());
    }
  }
  nn::Recording recording = nn::record(*model, shape);
  About about = about_of(path);
  about.erase(kBaseEntry);  // the program contains the base
  recording.graph["about"] = about;
  recording.graph["name"] = options.model.name.empty() ? path : options.model.name;
  recording.graph["parameters"] = dense;
  atomic_write(folder + "/graph.json", recording.graph.dump());
  std::vector<state::NamedTensor> tensors;
  for (const auto& [name, tensor] : recording.tensors) {
    tensors.push_back({name, tensor.contiguous()});
  }
  state::write_safetensors(folder + "/tensors.safetensors", tensors, {});
}

}  // namespace abtrain::weights
