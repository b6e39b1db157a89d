#include "methods/ab/svd_memory.h"

namespace abtrain::methods {

at::Tensor SvdMemory::start_of(const std::string& layer) const {
  const auto found = starts_.find(layer);
  return found == starts_.end() ? at::Tensor() : found->second;
}

void SvdMemory::keep_start(const std::string& layer, const at::Tensor& start) {
  starts_[layer] = start;
}

void SvdMemory::archive(
    state::Archive& archive,
    const std::vector<std::string>& layers) {
  if (archive.is_loading()) {
    starts_.clear();
  }
  for (const std::string& layer : layers) {
    at::Tensor& start = starts_[layer];
    archive.tensor("svd_start." + layer, start, state::Owner::Worker);
    if (start.defined() && start.numel() == 0) {
      start = at::Tensor();
    }
  }
}

device::SideStream& SvdMemory::stream(c10::Device device) {
  if (!stream_) {
    stream_ = std::make_unique<device::SideStream>(device);
  }
  return *stream_;
}

}  // namespace abtrain::methods
