// Hands out the tensors of a single layer.
#pragma once

#include "nn/layer.h"

namespace abtrain::testing {

class Grab : public nn::Visitor {
 public:
  void weight(const std::string&, nn::Weight& found, const nn::Init&) override {
    weight_ = &found;
  }
  void parameter(const std::string& name, at::Tensor& tensor, bool, const nn::Init&) override {
    (name == "bias" ? bias : other) = &tensor;
  }
  void buffer(const std::string&, at::Tensor&) override {}
  nn::Weight& get() {
    return *weight_;
  }
  at::Tensor* bias = nullptr;
  at::Tensor* other = nullptr;

 private:
  nn::Weight* weight_ = nullptr;
};

}  // namespace abtrain::testing
