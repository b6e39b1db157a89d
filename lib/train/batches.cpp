#include "train/batches.h"

#include "base/error.h"
#include "data/device_loader.h"
#include "data/loader.h"
#include "device/devices.h"

namespace abtrain::train {

namespace {

// The images may take this share of the GPU's memory; activations need the
// rest.
constexpr double kShareOfMemory = 0.1;

// With bf16 the first layer would cast a batch of floats to the same values.
at::ScalarType type_on_device(const TrainInputs& inputs) {
  return inputs.device.is_cuda() && inputs.options.train.precision == "bf16"
             ? at::kBFloat16
             : at::kFloat;
}

HeldOut held_out(
    const TrainInputs& inputs,
    const data::Images& images,
    const data::DeviceImages data::DeviceDataset::*part) {
  if (inputs.device_copies == nullptr) {
    return {images};
  }
  return {
      images,
      &(inputs.device_copies->on(inputs.device).*part),
      type_on_device(inputs)};
}

}  // namespace

bool lies_on_device(
    const config::RunOptions& options,
    const data::Dataset& dataset,
    const data::Images& validation,
    const at::Device& device) {
  const std::string& wanted = options.data.on_device;
  const std::int64_t bytes = data::device_bytes(dataset, validation);
  if (wanted == "true") {
    ABT_CHECK(
        device.is_cuda(),
        Config,
        "data.on_device: true needs a GPU, but this run computes on ",
        device.str(),
        "; expected auto or false");
    ABT_CHECK(
        bytes > 0,
        Config,
        "data.on_device: the images of ",
        options.data.name,
        dataset.train.values.defined()
            ? " are no longer bytes (data.pool, data.standardise)"
            : " are files that the host decodes",
        "; expected auto or false");
    return true;
  }
  if (wanted == "false" || !device.is_cuda() || bytes == 0) {
    return false;
  }
  for (const device::DeviceInfo& gpu : device::cuda_devices()) {
    if (gpu.device == device) {
      return static_cast<double>(bytes) <=
             kShareOfMemory * static_cast<double>(gpu.memory_bytes);
    }
  }
  return false;
}

std::unique_ptr<data::BatchSource> make_batches(
    const TrainInputs& inputs,
    const data::Augment& augment,
    const data::ExampleOrder& order,
    std::int64_t first_batch) {
  const data::DataOptions& options = inputs.options.data;
  if (inputs.device_copies != nullptr) {
    return std::make_unique<data::DeviceLoader>(
        inputs.device_copies->on(inputs.device).train,
        augment,
        order,
        options.batch_size,
        first_batch,
        type_on_device(inputs));
  }
  return std::make_unique<data::Loader>(
      inputs.dataset.train,
      augment,
      order,
      options.batch_size,
      options.prefetch,
      first_batch,
      inputs.device);
}

HeldOut training_images(const TrainInputs& inputs) {
  return held_out(inputs, inputs.dataset.train, &data::DeviceDataset::train);
}

HeldOut test_images(const TrainInputs& inputs) {
  return held_out(inputs, inputs.dataset.test, &data::DeviceDataset::test);
}

HeldOut validation_images(const TrainInputs& inputs) {
  return held_out(inputs, inputs.validation, &data::DeviceDataset::validation);
}

}  // namespace abtrain::train
