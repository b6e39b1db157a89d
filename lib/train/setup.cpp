#include "train/setup.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "comm/nccl/world.h"
#include "config/check_run.h"
#include "config/config.h"
#include "config/planned_sizes.h"
#include "config/run_notes.h"
#include "data/batch.h"
#include "device/devices.h"
#include "device/tensor_text.h"
#include "optim/optimizer_kind.h"
#include "train/batches.h"
#include "train/resume.h"
#include "weights/export.h"
#include "weights/initial_model.h"
#include "weights/model_file.h"

namespace abtrain::train {

namespace {

// Without labels, a training set would teach nothing, and the other sets would score accuracy 0.
void check_labels(const data::Examples& examples, const char* part, const std::string& folder) {
  const at::Tensor counted = examples.counted_labels();
  ABT_CHECK(
      !counted.defined() || counted.numel() == 0 || counted.gt(0).any().item<bool>(), DamagedData,
      "{}: all labels of the {} {} examples are {} and do not count", folder,
      with_commas(counted.numel()), part, data::kIgnoredLabel);
}

int cores_per_worker(std::int64_t workers) {
  return std::max(1, device::cpu_cores() / static_cast<int>(workers));
}

}  // namespace

at::ScalarType precision_on(const config::TrainOptions& options, const at::Device& device) {
  if (options.precision) {
    return *options.precision;
  }
  return device::info_of(device).bf16.empty() ? at::kFloat : at::kBFloat16;
}

std::string precision_text(const config::TrainOptions& options, const at::Device& device) {
  if (options.precision != at::kBFloat16) {
    return "fp32";
  }
  const std::string instructions = device::info_of(device).bf16;
  return formatted("bf16 ({})", instructions.empty() ? "emulated" : instructions);
}

int threads_per_worker(const config::RunOptions& options, std::int64_t workers) {
  if (options.train.threads > 0) {
    return static_cast<int>(options.train.threads);
  }
  // As in PyTorch; launchers set it for processes that share a host.
  const auto wanted = first_env_integer("OMP_NUM_THREADS").value_or(0);
  return wanted > 0 ? static_cast<int>(std::min<std::int64_t>(wanted, 4096))
                    : cores_per_worker(workers);
}

std::int64_t decode_threads(const data::DataOptions& options, std::int64_t workers) {
  return options.decode_threads.value_or(cores_per_worker(workers));
}

data::Dataset load_data(const data::DataOptions& options, std::int64_t workers, Log& log) {
  data::Dataset set = data::load_dataset(options, &log);
  set.decode_threads = decode_threads(options, workers);
  return set;
}

std::unique_ptr<nn::Model> model_at_work(
    const config::RunOptions& options, const data::ExampleShape& shape, const std::string& path,
    const at::Device& device) {
  std::unique_ptr<nn::Model> model = weights::model_of_run(options, shape, path);
  model->to(device);
  model->compute_in({precision_on(options.train, device)});
  at::set_num_threads(threads_per_worker(options, 1));
  return model;
}

void choose_place(Setup& s, const config::RunOptions& options, WorkerHost& host, Log& log) {
  WorkerPlace place{
      .workers = static_cast<int>(options.workers),
      .has_nccl = comm::nccl_version() > 0,
      .nccl_shares_gpus = comm::nccl_shares_gpus()};
  s.device = host.find_device(options.device, place);
  host.all_or_none([&] {
    const BackEndChoice choice = choose_back_end(options.comm, place);
    s.back_end = choice.back_end;
    if (!choice.note.empty()) {
      log.warning("{}", choice.note);
    }
    ABT_CHECK(
        options.train.cuda_graphs != true || place.on_gpu, Config,
        "train.cuda_graphs: on needs a GPU, but this run computes on {}; auto "
        "uses graphs if there is one",
        s.device);
  });
}

void prepare(
    Setup& s, const config::RunOptions& options, bool resumes, const WorkerHost& host,
    const std::function<void(const std::string&)>& doing, Log& log) {
  doing("reading " + options.data.name);
  s.dataset = load_data(options.data, host.workers_on_machine, log);
  s.validation = data::take_validation(s.dataset, options.data.validation, options.seed);
  log.info(
      "{}: {} from {}, {} training and {} test {}; {}", options.name, options.data.name,
      s.dataset.found_in, with_commas(s.dataset.train.size()), with_commas(s.dataset.test.size()),
      data::examples_of(options.data), s.dataset.account.task);
  for (const std::string& fact : s.dataset.account.facts) {
    log.info("{}", fact);
  }
  for (const std::string& doubt : s.dataset.account.doubts) {
    log.warning("{}", doubt);
  }

  check_labels(s.dataset.train, "training", s.dataset.found_in);
  check_labels(s.validation, "validation", s.dataset.found_in);
  check_labels(s.dataset.test, "test", s.dataset.found_in);
  // Errors must show up before the folder of an earlier run is touched.
  const data::ExampleShape& shape = s.dataset;
  s.length = config::check_run(options, shape, s.dataset.train.size());
  for (const std::string& note : config::run_notes(options, s.length)) {
    log.warning("{}", note);
  }
  if (optim::kind_of(options.optimizer).dual_averaging &&
      options.optimizer.center == optim::Center::Zero &&
      config::model_sizes(options, shape)->sizes.weights.size() > 1) {
    log.warning(
        "optimizer.center: zero pulls all weights to 0: a hidden layer that "
        "gets there no longer has a gradient, nor has any other layer; init "
        "starts from the initial weights");
  }
  if (lies_on_device(options, s.dataset, s.validation, s.device)) {
    s.device_copies = std::make_unique<data::DeviceCopies>(s.dataset, s.validation);
  }
  config::check_memory(
      options, shape, host.workers_on_machine,
      s.device_copies ? data::device_bytes(s.dataset, s.validation) : 0);
  at::set_num_threads(threads_per_worker(options, 1));
  config::RunOptions initial = options;
  if (resumes && !config::keeps_base(options)) {
    initial.model.weights.reset();
    initial.model.fresh.clear();
    initial.model.adapter.reset();
  }
  doing(
      initial.model.weights ? "reading " + *initial.model.weights
                            : "initializing " + options.model.name);
  s.model_file = weights::model_file_hash(options);
  s.initial = weights::make_initial_model(initial, shape);
  std::int64_t frozen = 0;
  for (const auto& constant : s.initial->file_form().constants) {
    frozen += constant.is_frozen ? constant.tensor.numel() : 0;
  }
  if (frozen > 0) {
    log.info(
        "{}: {} parameters are trained; {} are frozen and stay as they are in {}",
        options.model.name, with_commas(s.initial->dense_parameters()), with_commas(frozen),
        *options.model.file);
  }
  if (config::keeps_base(options)) {
    log.info(
        "{}: a worker trains {} of {} parameters; checkpoints and models hold these alone",
        options.model.name, with_commas(config::trained_parameters(options, shape)),
        with_commas(s.initial->dense_parameters()));
  }
  if (initial.model.weights) {
    log.info(
        "{}: the initial weights are those of {}{}", options.model.name, *options.model.weights,
        options.model.fresh.empty()
            ? ""
            : formatted(", but not of {} (model.fresh)", join(options.model.fresh, ", ")));
  }
}

void open_folder(
    const config::RunOptions& options, const std::string& folder, const ResumeChoice& resume,
    Log& log) {
  make_folders(folder);
  if (!resume.is_own) {
    put_checkpoints_aside(folder, log);
  } else {
    run_folder::put_later_aside(folder, resume.from->step, &log);
  }
  // When a run is extended, its model stays until the longer run has one.
  const bool keeps_model = resume.is_own && resume.changes_length;
  std::error_code ignored;
  for (const char* result :
       {"/summary.json", "/failure.json", "/model.safetensors", "/model.sparse.safetensors"}) {
    if (!keeps_model || std::string_view(result).ends_with(".json")) {
      std::filesystem::remove(folder + result, ignored);
    }
  }
  atomic_write(folder + "/config.yaml", config::to_yaml(options));
}

}  // namespace abtrain::train
