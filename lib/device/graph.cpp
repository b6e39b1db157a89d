#include "device/graph.h"

namespace abtrain::device {

Graph Graph::capture(
    c10::Device device, const std::function<void()>& body,
    const std::vector<at::Generator>& generators, CaptureTurn& turn) {
  Graph graph;
  graph.replay_ = device.is_cuda() ? capture_cuda(device, body, generators, turn) : body;
  return graph;
}

}  // namespace abtrain::device
