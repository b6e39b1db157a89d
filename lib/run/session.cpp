#include "run/session.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "comm/groups.h"
#include "comm/local.h"
#include "comm/run_workers.h"
#include "device/devices.h"
#include "run/autocast.h"
#include "run/config.h"
#include "run/initial_model.h"
#include "run/model_file.h"
#include "run/plan.h"
#include "run/report.h"
#include "run/trainer.h"

namespace abtrain::run {

namespace {

// Cores that a worker's own operators use. Set before the workers start: each
// thread takes it over at its first parallel operator.
int threads_per_worker(const RunOptions& options, std::int64_t workers) {
  if (options.train.threads > 0) {
    return static_cast<int>(options.train.threads);
  }
  return std::max(
      1, device::cpu_cores() / static_cast<int>(workers));
}

}  // namespace

SessionResult train(const RunOptions& options, Log& log) {
  const at::Device device = device::pick_device(options.device);
  data::Dataset dataset =
      data::load_dataset(options.data.name, options.data.root);
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
  const RunLength length = check_run(
      options, input_shape(dataset), dataset.train.size());
  check_memory(options, input_shape(dataset));
  at::set_num_threads(threads_per_worker(options, 1));
  InitialModel initial(
      options, input_shape(dataset), static_cast<int>(options.workers));

  const std::string folder =
      (std::filesystem::path(options.output) / options.name).string();
  make_folders(folder);
  atomic_write(folder + "/config.yaml", to_yaml(options));
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
  const nlohmann::ordered_json summary = summarise(options, result);
  const std::string text = summary.dump(2) + "\n";
  atomic_write(folder + "/summary.json", text);
  return {folder, report_table(options, summary, folder), text};
}

std::string evaluate_run(
    const RunOptions& options, const std::string& folder, Log& log) {
  const at::Device device = device::pick_device(options.device);
  const data::Dataset dataset =
      data::load_dataset(options.data.name, options.data.root);
  std::unique_ptr<nn::Model> model =
      nn::make_model(options.model, input_shape(dataset));
  load_model(folder + "/model.safetensors", *model);
  model->to(device);
  log.info("evaluating ", folder, "/model.safetensors on ", dataset.found_in);
  const data::Augment augment(options.data, dataset, options.seed);
  check_memory(options, input_shape(dataset));
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
  const nlohmann::ordered_json result = {
      {"accuracy", score.accuracy},
      {"loss", score.loss},
      {"images", dataset.test.size()},
      {"compression_ratio",
       static_cast<double>(model->dense_parameters()) /
           static_cast<double>(model->stored_parameters())},
      {"model", folder + "/model.safetensors"}};
  return result.dump(2) + "\n";
}

}  // namespace abtrain::run
