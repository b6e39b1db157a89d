#include "run/session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "comm/groups.h"
#include "comm/local.h"
#include "comm/run_workers.h"
#include "data/image_files.h"
#include "device/devices.h"
#include "device/memory.h"
#include "run/autocast.h"
#include "run/config.h"
#include "run/initial_model.h"
#include "run/model_file.h"
#include "run/plan.h"
#include "run/report.h"
#include "run/trainer.h"

namespace abtrain::run {

namespace {

int cores_per_worker(std::int64_t workers) {
  return std::max(1, device::cpu_cores() / static_cast<int>(workers));
}

// Cores that a worker's own operators use. Set before the workers start: each
// thread takes it over at its first parallel operator.
int threads_per_worker(const RunOptions& options, std::int64_t workers) {
  return options.train.threads > 0 ? static_cast<int>(options.train.threads)
                                   : cores_per_worker(workers);
}

// The options with `auto` decode threads replaced by the cores, shared out.
RunOptions with_decode_threads(RunOptions options, std::int64_t workers) {
  if (options.data.decode_threads == "auto") {
    options.data.decode_threads = std::to_string(cores_per_worker(workers));
  }
  return options;
}

// Damaged files of the set; nothing where there are none.
nlohmann::ordered_json damaged_images(const data::Dataset& dataset) {
  std::int64_t count = 0;
  std::vector<std::string> paths;
  for (const data::Images* images : {&dataset.train, &dataset.test}) {
    if (images->files) {
      count += images->files->damaged();
      for (std::string& path : images->files->damaged_paths()) {
        paths.push_back(std::move(path));
      }
    }
  }
  std::ranges::sort(paths);
  return {{"count", count}, {"files", paths}};
}

}  // namespace

SessionResult train(const RunOptions& configured, Log& log) {
  device::keep_freed_memory();
  const RunOptions options =
      with_decode_threads(configured, configured.workers);
  const at::Device device = device::pick_device(options.device);
  data::Dataset dataset =
      data::load_dataset(options.data, &log);
  const data::Images validation =
      data::hold_out(dataset.train, options.data.validation, options.seed);
  log.info(
      options.name,
      ": ",
      options.data.name,
      " from ",
      dataset.found_in,
      ", ",
      with_commas(dataset.train.size()),
      " training and ",
      with_commas(dataset.test.size()),
      " test images");

  // Whatever is wrong shows before the folder of an earlier run is touched.
  const nn::InputShape shape = input_shape(dataset);
  const RunLength length = check_run(options, shape, dataset.train.size());
  check_memory(options, shape);
  at::set_num_threads(threads_per_worker(options, 1));
  InitialModel initial(options, shape, static_cast<int>(options.workers));

  const std::string folder =
      (std::filesystem::path(options.output) / options.name).string();
  make_folders(folder);
  atomic_write(folder + "/config.yaml", to_yaml(configured));
  std::error_code ignored;
  for (const char* result : {"/summary.json", "/model.safetensors"}) {
    std::filesystem::remove(folder + result, ignored);
  }
  RunLog run_log(folder, log);
  const int threads = threads_per_worker(options, options.workers);
  at::set_num_threads(threads);
  log.info(
      options.workers,
      options.workers == 1 ? " worker" : " workers",
      " on ",
      device.str(),
      ", ",
      threads,
      threads == 1 ? " core each, " : " cores each, ",
      length.steps,
      " steps of ",
      options.data.batch_size * options.train.accumulate,
      " images a worker");

  TrainResult result;
  comm::run_workers(
      static_cast<int>(options.workers),
      options.train.timeout,
      [&](comm::Communicator& world) {
        const bool first = world.rank() == 0;
        TrainResult own = train_worker(
            world,
            {options,
             dataset,
             validation,
             device,
             first ? &run_log : nullptr,
             [&](nn::Model& model) { initial.copy_into(model); },
             {}});
        if (first) {
          result = std::move(own);
        }
      });
  log.live("");

  save_model(
      folder + "/model.safetensors", *result.model, options.model.names);
  nlohmann::ordered_json summary = summarise(options, result);
  summary["damaged_images"] = damaged_images(dataset);
  const std::string text = summary.dump(2) + "\n";
  atomic_write(folder + "/summary.json", text);
  return {folder, report_table(options, summary, folder), text};
}

std::string evaluate_run(
    const RunOptions& configured, const std::string& folder, Log& log) {
  device::keep_freed_memory();
  const RunOptions options = with_decode_threads(configured, 1);
  const at::Device device = device::pick_device(options.device);
  const data::Dataset dataset =
      data::load_dataset(options.data, &log);
  std::unique_ptr<nn::Model> model =
      nn::make_model(options.model, input_shape(dataset));
  load_model(folder + "/model.safetensors", *model);
  model->to(device);
  log.info("evaluating ", folder, "/model.safetensors on ", dataset.found_in);
  const data::Augment augment(options.data, dataset, options.seed);
  at::set_num_threads(threads_per_worker(options, 1));
  Score score;
  comm::run_workers(
      1, options.train.timeout, [&](comm::Communicator& world) {
        const Autocast autocast(options.train.precision, device.type());
        score = evaluate(
                    *model,
                    dataset.test,
                    augment,
                    options.evaluate.batch_size,
                    1,
                    device,
                    world)
                    .all;
      });
  const nlohmann::ordered_json damaged = damaged_images(dataset);
  const nlohmann::ordered_json result = {
      {"accuracy", score.accuracy},
      {"loss", score.loss},
      {"images", dataset.test.size() - damaged["count"].get<std::int64_t>()},
      {"damaged_images", damaged},
      {"compression_ratio",
       static_cast<double>(model->dense_parameters()) /
           static_cast<double>(model->stored_parameters())},
      {"model", folder + "/model.safetensors"}};
  return result.dump(2) + "\n";
}

}  // namespace abtrain::run
