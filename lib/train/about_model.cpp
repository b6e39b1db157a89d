#include "train/about_model.h"

#include <algorithm>

#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/text.h"
#include "config/config.h"
#include "data/dataset.h"
#include "train/build_info.h"

namespace abtrain::train {

namespace {

std::string list_of(const auto& values) {
  return join(mapped(values, [](auto value) { return formatted("{}", value); }), ",");
}

}  // namespace

weights::About about_model(
    const config::RunOptions& options, const data::Dataset& dataset,
    const std::string& model_file) {
  weights::About about = {
      {"version", "abtrain " + version_line()},
      {"model", options.model.name},
      {"data", options.data.name}};
  about[weights::kConfigEntry] = config::network_yaml(options);
  if (!model_file.empty()) {
    about["model_file"] = model_file;
  }
  if (dataset.context == 0 || dataset.vocabulary > 0) {
    about["classes"] = trim(json_text(
        dataset.class_names.empty() ? nlohmann::ordered_json(dataset.classes)
                                    : nlohmann::ordered_json(dataset.class_names),
        -1));
  }
  if (dataset.context > 0) {
    about["vocabulary"] = formatted("{}", std::max(dataset.classes, dataset.vocabulary));
    about["context"] = formatted("{}", dataset.context);
    return about;
  }
  about["input"] = list_of(std::vector{dataset.channels, dataset.height, dataset.width});
  if (options.data.standardize) {
    about["normalization"] = "of each pixel by itself";
  } else {
    about["mean"] = list_of(dataset.mean);
    about["std"] = list_of(dataset.std);
    if (std::holds_alternative<data::FloatImages>(dataset.test)) {
      about["normalization"] = "of numbers, not of pixels";
    }
  }
  return about;
}

}  // namespace abtrain::train
