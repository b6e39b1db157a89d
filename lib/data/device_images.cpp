#include "data/device_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "base/file_mapping.h"

namespace abtrain::data {
namespace {

std::int64_t bytes_of(const Examples& examples) {
  const auto* images = std::get_if<ByteImages>(&examples);
  if (images == nullptr || examples.size() == 0) {
    return 0;
  }
  const std::size_t targets = images->targets.defined() ? images->targets.nbytes() : 0;
  return static_cast<std::int64_t>(images->pixels.nbytes() + images->labels.nbytes() + targets);
}

DeviceImages copy_of(const Examples& examples, const at::Tensor& table, c10::Device device) {
  if (examples.size() == 0) {
    return {};
  }
  const auto& images = std::get<ByteImages>(examples);
  // The copies are blocking: when to() returns, streams of other threads see all of the data.
  return {
      {images.pixels.to(device), images.labels.to(device),
       images.targets.defined() ? images.targets.to(device) : at::Tensor()},
      table};
}

}  // namespace

at::Tensor normalized_bytes(const std::vector<float>& mean, const std::vector<float>& std) {
  const at::Tensor levels = at::arange(256, at::kFloat).div_(255);
  return (levels - at::tensor(mean).unsqueeze(1)).div_(at::tensor(std).unsqueeze(1));
}

DeviceCopies::DeviceCopies(const Dataset& dataset, const Examples& validation)
    : dataset_(dataset), validation_(validation) {}

const DeviceDataset& DeviceCopies::on(c10::Device device) {
  const std::lock_guard lock(mutex_);
  for (const DeviceDataset& copy : copies_) {
    if (copy.device == device) {
      return copy;
    }
  }
  const at::Tensor table = normalized_bytes(dataset_.mean, dataset_.std).to(device);
  DeviceDataset& copy = copies_.emplace_back(DeviceDataset{
      device, copy_of(dataset_.train, table, device), copy_of(validation_, table, device),
      copy_of(dataset_.test, table, device)});
  check_mapped_files();
  return copy;
}

std::int64_t device_bytes(const Dataset& dataset, const Examples& validation) {
  return bytes_of(dataset.train) + bytes_of(validation) + bytes_of(dataset.test);
}

}  // namespace abtrain::data
