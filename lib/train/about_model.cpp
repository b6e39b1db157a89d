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
  if (data::is_arrays(options.data)) {
    about[weights::kExampleEntry] = weights::example_text(dataset);
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

void check_classes(
    const std::string& path, const std::vector<std::string>& names, const data::Dataset& dataset) {
  if (names.empty() || dataset.class_names.empty() || names == dataset.class_names) {
    return;
  }
  const std::size_t shared = std::min(names.size(), dataset.class_names.size());
  std::size_t i = 0;
  while (i < shared && names[i] == dataset.class_names[i]) {
    ++i;
  }
  const auto name_in = [&](const std::vector<std::string>& all) {
    return i < all.size() ? "'" + printable(all[i]) + "'" : "missing";
  };
  throw Error(
      ErrorKind::DamagedData,
      formatted(
          "{} has learned {} classes, of which number {} is {}, but of the {} classes in {} it is "
          "{}; expected the same classes",
          path, names.size(), i, name_in(names), dataset.class_names.size(), dataset.found_in,
          name_in(dataset.class_names)));
}

}  // namespace abtrain::train
