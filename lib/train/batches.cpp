#include "train/batches.h"

#include <algorithm>

#include "base/error.h"
#include "data/device_loader.h"
#include "data/loader.h"
#include "device/devices.h"
#include "train/setup.h"
#include "train/train_inputs.h"

namespace abtrain::train {

namespace {

// The images may take this share of the GPU's memory; activations need the
// rest.
constexpr double kShareOfMemory = 0.1;

}  // namespace

RunExamples examples_of(const TrainInputs& inputs) {
  // With bf16, batches are made in bf16: the first layer would round fp32 batches to the same
  // values.
  const at::ScalarType type =
      inputs.device.is_cuda() ? precision_on(inputs.options.train, inputs.device) : at::kFloat;
  if (inputs.device_copies == nullptr) {
    return {
        OnHost{inputs.dataset.train, type}, OnHost{inputs.validation}, OnHost{inputs.dataset.test}};
  }
  const data::DeviceDataset& copy = inputs.device_copies->on(inputs.device);
  return {OnDevice{copy.train, type}, OnDevice{copy.validation, type}, OnDevice{copy.test, type}};
}

bool lies_on_device(
    const config::RunOptions& options, const data::Dataset& dataset,
    const data::Examples& validation, const at::Device& device) {
  const std::int64_t bytes = data::device_bytes(dataset, validation);
  if (options.data.on_device == true) {
    ABT_CHECK(
        device.is_cuda(), Config,
        "data.on_device: true needs a GPU, but this run computes on {}; "
        "expected auto or false",
        device.str());
    ABT_CHECK(
        bytes > 0, Config, "data.on_device: the images of {}{}; expected auto or false",
        options.data.name,
        std::holds_alternative<data::FloatImages>(dataset.train)
            ? " are not bytes (floating-point arrays, data.pool, data.standardize)"
            : " are made by the host");
    return true;
  }
  return options.data.on_device != false && device.is_cuda() && bytes > 0 &&
         static_cast<double>(bytes) <=
             kShareOfMemory * static_cast<double>(device::info_of(device).memory_bytes);
}

std::unique_ptr<data::BatchSource> make_batches(
    const ExampleSource& source, const data::Augment& augment, const data::ExampleOrder& order,
    std::int64_t batch_size, std::int64_t first_batch, const at::Device& device) {
  if (const auto* there = std::get_if<OnDevice>(&source)) {
    return std::make_unique<data::DeviceLoader>(
        there->images, augment, order, batch_size, first_batch, there->type);
  }
  const OnHost& host = std::get<OnHost>(source);
  // Steps on single examples are so short that waking the loader's thread for each is too slow.
  const std::int64_t ahead = std::clamp<std::int64_t>(64 / batch_size, 4, 64);
  return std::make_unique<data::Loader>(
      host.examples, augment, order, batch_size, ahead, first_batch, device, host.type);
}

}  // namespace abtrain::train
