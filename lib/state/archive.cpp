#include "state/archive.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace abtrain::state {

State::State() : values(std::make_unique<nlohmann::ordered_json>()) {
  *values = nlohmann::ordered_json::object();
}
State::~State() = default;
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;

void Archive::tensor(const std::string& name, at::Tensor& tensor, Share share) {
  auto& tensors = share == Share::Own ? state_.own : state_.replicas;
  if (!loading_) {
    at::Tensor saved =
        tensor.defined() ? tensor.detach() : at::empty({0}, at::kFloat);
    ABT_ASSERT(
        saved.scalar_type() == at::kFloat,
        "checkpoint: ",
        name,
        " is not fp32 but ",
        c10::toString(saved.scalar_type()));
    ABT_ASSERT(
        tensors.emplace(name, std::move(saved)).second,
        "checkpoint: two tensors named ",
        name);
    return;
  }
  const auto found = tensors.find(name);
  ABT_CHECK(
      found != tensors.end(),
      DamagedData,
      "the checkpoint has no tensor '",
      name,
      "'");
  if (!tensor.defined()) {
    tensor = found->second.numel() > 0 ? found->second : at::Tensor();
    return;
  }
  ABT_CHECK(
      tensor.numel() == found->second.numel(),
      DamagedData,
      "the checkpoint's tensor '",
      name,
      "' has ",
      found->second.numel(),
      " numbers, expected ",
      tensor.numel());
  const at::NoGradGuard no_grad;
  if (tensor.numel() > 0) {
    tensor.copy_(found->second.view(tensor.sizes()));
  }
}

template <class T>
void Archive::exchange(const std::string& name, T& value) {
  if (!loading_) {
    ABT_ASSERT(
        !state_.values->contains(name), "checkpoint: two values named ", name);
    (*state_.values)[name] = value;
    return;
  }
  try {
    value = state_.values->at(name).template get<T>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(
        ErrorKind::DamagedData,
        str("the checkpoint's value '", name, "': ", error.what()));
  }
}

void Archive::value(const std::string& name, std::int64_t& value) {
  exchange(name, value);
}
void Archive::value(const std::string& name, double& value) {
  exchange(name, value);
}
void Archive::value(const std::string& name, bool& value) {
  exchange(name, value);
}
void Archive::value(const std::string& name, std::string& value) {
  exchange(name, value);
}
void Archive::value(const std::string& name, std::vector<std::int64_t>& value) {
  exchange(name, value);
}
void Archive::value(const std::string& name, std::vector<double>& value) {
  exchange(name, value);
}
void Archive::value(const std::string& name, nlohmann::ordered_json& value) {
  exchange(name, value);
}

}  // namespace abtrain::state
