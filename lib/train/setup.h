// What must be ready before a worker starts, and what the workers of a process
// share.
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
  std::unique_ptr<data::DeviceCopies> device_copies;  // may be null
  RunLength length;
  std::unique_ptr<nn::Model> initial;  // until the workers have copied it
  std::string model_file;              // model_file_hash() when it was made
  BackEnd back_end = BackEnd::Local;
};

// Decides where the workers compute and how they communicate. Collective: all
// processes see the same list of GPUs and make the same choice.
void choose_place(Setup& setup, const config::RunOptions& options, WorkerHost& host, Log& log);

// Prepares the data, the length of the run and the initial weights. `doing` is
// told of what takes time.
void prepare(
    Setup& setup, const config::RunOptions& options, const WorkerHost& host,
    const std::function<void(const std::string&)>& doing, Log& log);

// Makes the folder of the run ready for a fresh start or for resuming.
void open_folder(
    const config::RunOptions& options, const std::string& folder, const ResumeChoice& resume,
    Log& log);

// data.decode_threads; auto: each worker's share of the cores.
std::int64_t decode_threads(const data::DataOptions& options, std::int64_t workers);
// The data set, whose batches so many threads decode.
data::Dataset load_data(const data::DataOptions& options, std::int64_t workers, Log& log);

// The model of a file on this device, to be used by this thread with the cores
// and in the precision of a run's one worker. Throws as weights::load_model().
std::unique_ptr<nn::Model> model_at_work(
    const config::RunOptions& options, const data::ExampleShape& shape, const std::string& path,
    const at::Device& device);

// What the layers' larger products are computed in.
at::ScalarType precision_on(const config::TrainOptions& options, const at::Device& device);
// That of a run on this device, such as "bf16 (AMX-BF16)".
std::string precision_text(const config::TrainOptions& options, const at::Device& device);

// How many cores a worker's own operators use. To be set before the workers
// start: each thread takes the value over at its first parallel operator.
int threads_per_worker(const config::RunOptions& options, std::int64_t workers);

}  // namespace abtrain::train
