#include "device/graph.h"

namespace abtrain::device {

namespace {

class RunAgain : public Graph::Form {
 public:
  explicit RunAgain(std::function<void()> body) : body_(std::move(body)) {}
  void replay() override {
    body_();
  }

 private:
  std::function<void()> body_;
};

}  // namespace

Graph Graph::capture(
    c10::Device device, const std::function<void()>& body,
    const std::vector<at::Generator>& generators, CaptureTurn& turn) {
  Graph graph;
  graph.form_ = device.is_cuda() ? capture_cuda(device, body, generators, turn)
                                 : std::make_unique<RunAgain>(body);
  return graph;
}

}  // namespace abtrain::device
