// What a worker's decompositions keep for its next ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/side_stream.h"
#include "state/archive.h"

namespace abtrain::methods {

class SvdMemory {
 public:
  // Where the search in a layer's weights may begin (linalg/svd.h,
  // next_start()); undefined: at random. Known only for layers that this worker
  // decomposed.
  at::Tensor start_of(const std::string& layer) const;
  void keep_start(const std::string& layer, const at::Tensor& start);
  void clear() {
    starts_.clear();
  }
  // The starts of these layers. They affect the bits, so a resume needs them.
  void archive(state::Archive& archive, const std::vector<std::string>& layers);

  // For the worker's device; created at the first call.
  device::SideStream& stream(c10::Device device);

 private:
  std::map<std::string, at::Tensor> starts_;
  std::unique_ptr<device::SideStream> stream_;
};

}  // namespace abtrain::methods
