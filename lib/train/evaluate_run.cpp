#include "train/evaluate_run.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "comm/run_workers.h"
#include "data/images/image_files.h"
#include "device/devices.h"
#include "device/memory.h"
#include "train/about_model.h"
#include "train/class_scores.h"
#include "train/setup.h"
#include "train/trainer.h"

namespace abtrain::train {

nlohmann::ordered_json damaged_images(const data::Dataset& dataset) {
  std::int64_t count = 0;
  std::vector<std::string> paths;
  std::set<const data::ImageFiles*> seen;  // several parts may share the same files
  for (const data::Examples* part : {&dataset.train, &dataset.test, &dataset.validation}) {
    const auto* images = std::get_if<data::ListedImages>(part);
    if (images != nullptr && seen.insert(images->files.get()).second) {
      count += images->files->damaged();
      std::ranges::move(images->files->damaged_paths(), std::back_inserter(paths));
    }
  }
  std::ranges::sort(paths);
  return {{"count", count}, {"files", paths}};
}

nlohmann::ordered_json evaluate_run(
    const config::RunOptions& options, const weights::RunModel& run_model, Log& log) {
  device::keep_freed_memory();
  const std::string path = run_model.path();
  const std::string& shown = run_model.name.empty() ? path : run_model.name;
  const at::Device device = device::pick_device(options.device);
  const data::Dataset dataset = load_data(options.data, 1, log);
  const auto model = model_at_work(options, dataset, path, device);
  std::vector<std::string> names;  // the metadata may have only their number
  if (const auto classes = weights::classes_in(weights::about_of(path)); classes.is_array()) {
    read_json(classes, names);
  }
  check_classes(shown, names, dataset);
  log.info("evaluating {} on {}", shown, dataset.found_in);
  const data::Augment augment(options.data, dataset, options.seed);
  Score score;
  std::vector<at::Tensor> answers;
  comm::run_workers(1, options.train.timeout, [&](comm::Communicator& world) {
    score = evaluate(
        *model, OnHost{dataset.test}, augment, options.evaluate.batch_size, device, world,
        /*label_smoothing=*/0, dataset.context > 0 && dataset.token_labels ? nullptr : &answers);
  });
  const nlohmann::ordered_json damaged = damaged_images(dataset);
  ABT_CHECK(
      damaged["count"].get<std::int64_t>() < dataset.test.size(), DamagedData,
      "all {} test images are damaged", dataset.test.size());
  ABT_CHECK(
      std::isfinite(score.loss), Diverged, "{}: the loss over the test {} is {}", shown,
      data::examples_of(options.data),
      std::isnan(score.loss) ? "nan" : formatted("{}", score.loss));
  nlohmann::ordered_json result = score_json(score);
  result.update(nlohmann::ordered_json{
      {data::examples_of(options.data), dataset.test.size() - damaged["count"].get<std::int64_t>()},
      {"damaged_images", damaged},
      {"compression_ratio", static_cast<double>(model->dense_parameters()) /
                                static_cast<double>(model->stored_parameters())},
      {"model", shown}});
  if (!answers.empty()) {
    add_class_scores(result, at::cat(answers).cpu(), dataset.classes, dataset.class_names);
  }
  return result;
}

}  // namespace abtrain::train
