// Prepares a run before its workers start: the device, the data and the initial weights, which the
// workers of a process share.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "nn/model.h"
#include "train/back_end.h"
#include "train/resume.h"
#include "train/workers/worker_host.h"

namespace abtrain::train {

struct Setup {
  at::Device device = at::kCPU;
  data::Dataset dataset;
  data::Examples validation;
  std::unique_ptr<data::DeviceCopies> device_copies;  // null: images stay on the host
  RunLength length;
  std::unique_ptr<nn::Model> initial;  // initial weights; null once all workers have copied them
  std::string model_file;              // model_file_hash() when `initial` was made
  BackEnd back_end = BackEnd::Local;
};

// Decides where the workers compute and how they communicate. Collective: all
// processes see the same list of GPUs and make the same choice.
void choose_place(Setup& setup, const config::RunOptions& options, WorkerHost& host, Log& log);

// Prepares the data, the length of the run and the initial weights. `resumes`: a checkpoint brings
// the weights, so that only a base that it lacks is read. `doing` gets the name of each slow task.
void prepare(
    Setup& setup, const config::RunOptions& options, bool resumes, const WorkerHost& host,
    const std::function<void(const std::string&)>& doing, Log& log);

// Makes the folder of the run ready for a fresh start or for resuming.
void open_folder(
    const config::RunOptions& options, const std::string& folder, const ResumeChoice& resume,
    Log& log);

// Number of threads that decode a worker's images: data.decode_threads or, for auto, the worker's
// share of the cores.
std::int64_t decode_threads(const data::DataOptions& options, std::int64_t workers);
// Loads the data set; decode_threads() threads will decode its batches.
data::Dataset load_data(const data::DataOptions& options, std::int64_t workers, Log& log);

// Loads the model of a file onto this device, for use by this thread with the cores and the
// precision of a run with one worker. Throws as weights::load_model().
std::unique_ptr<nn::Model> model_at_work(
    const config::RunOptions& options, const data::ExampleShape& shape, const std::string& path,
    const at::Device& device);

// The dtype in which layers compute their larger products: train.precision or, for auto, bf16 if
// the device supports it.
at::ScalarType precision_on(const config::TrainOptions& options, const at::Device& device);
// The precision of a run on this device as text, such as "bf16 (AMX-BF16)".
std::string precision_text(const config::TrainOptions& options, const at::Device& device);

// The number of cores that a worker's own operators use. Set it before the workers start: each
// thread adopts the value at its first parallel operator.
int threads_per_worker(const config::RunOptions& options, std::int64_t workers);

}  // namespace abtrain::train
