// Where a run's images are stored and its batches are made: on the host, or on the GPU that trains
// on them.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "config/run_options.h"
#include "data/augment.h"
#include "data/batch_source.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "data/order.h"

namespace abtrain::train {

struct TrainInputs;  // train/train_inputs.h

// `type`: dtype of the images in training batches.
struct OnHost {
  const data::Examples& examples;
  at::ScalarType type = at::kFloat;
};
struct OnDevice {
  const data::DeviceImages& images;
  at::ScalarType type = at::kFloat;
};
using ExampleSource = std::variant<OnHost, OnDevice>;

// Where a worker reads its images. `validation` may be empty.
struct RunExamples {
  ExampleSource train, validation, test;
};
RunExamples examples_of(const TrainInputs& inputs);

// True if the images are to be kept in the memory of `device`. Depends on `data.on_device`, the
// data set and the device. Throws Error(Config) if `data.on_device` is true but they cannot be kept
// there.
bool lies_on_device(
    const config::RunOptions& options, const data::Dataset& dataset,
    const data::Examples& validation, const at::Device& device);

// Batches of `batch_size` examples, from `first_batch` on, for a worker that computes on `device`.
// The references must outlive the result.
std::unique_ptr<data::BatchSource> make_batches(
    const ExampleSource& source, const data::Augment& augment, const data::ExampleOrder& order,
    std::int64_t batch_size, std::int64_t first_batch, const at::Device& device);

}  // namespace abtrain::train
