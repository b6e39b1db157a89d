#include "state/archive.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "base/error.h"
#include "base/json.h"

namespace abtrain::state {

State::State()
    : values(std::make_shared<nlohmann::ordered_json>(nlohmann::ordered_json::object())) {}

void Archive::tensor(
    const std::string& name, at::Tensor& tensor, Owner owner, std::optional<std::int64_t> numel) {
  auto& tensors = owner == Owner::Worker ? state_.own : state_.replicas;
  if (!loading_) {
    at::Tensor saved = tensor.defined() ? tensor.detach() : at::empty({0}, at::kFloat);
    ABT_ASSERT(
        saved.scalar_type() == at::kFloat, "checkpoint: {} is not fp32 but {}", name,
        c10::toString(saved.scalar_type()));
    ABT_ASSERT(
        tensors.emplace(name, std::move(saved)).second, "checkpoint: two tensors named {}", name);
    return;
  }
  const auto found = tensors.find(name);
  ABT_CHECK(found != tensors.end(), DamagedData, "the checkpoint has no tensor '{}'", name);
  const std::int64_t stored = found->second.numel();
  if (!tensor.defined() && stored == 0) {
    return;
  }
  const std::int64_t wanted = tensor.defined() ? tensor.numel() : numel.value_or(stored);
  ABT_CHECK(
      wanted == stored, DamagedData, "the checkpoint's tensor '{}' has {} elements, expected {}",
      name, stored, wanted);
  if (!tensor.defined()) {
    tensor = numel ? found->second.view({stored}) : found->second;
    return;
  }
  const at::NoGradGuard no_grad;
  if (tensor.numel() > 0) {
    tensor.copy_(found->second.view(tensor.sizes()));
  }
}

template <class T>
void Archive::value(const std::string& name, T& value) {
  if (!loading_) {
    ABT_ASSERT(!state_.values->contains(name), "checkpoint: two values named {}", name);
    (*state_.values)[name] = value;
    return;
  }
  const auto found = state_.values->find(name);
  ABT_CHECK(found != state_.values->end(), DamagedData, "the checkpoint has no value '{}'", name);
  ABT_CHECK(
      read_json(*found, value), DamagedData,
      "the checkpoint's value '{}' has the wrong type or is out of range: {}", name, shown(*found));
}

template void Archive::value(const std::string&, std::int64_t&);
template void Archive::value(const std::string&, double&);
template void Archive::value(const std::string&, bool&);
template void Archive::value(const std::string&, std::string&);
template void Archive::value(const std::string&, std::vector<std::int64_t>&);
template void Archive::value(const std::string&, std::vector<double>&);
template void Archive::value(const std::string&, nlohmann::ordered_json&);

}  // namespace abtrain::state
