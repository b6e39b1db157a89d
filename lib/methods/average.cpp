#include "methods/average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/unflatten_dense_tensors.h>

#include <algorithm>
#include <numeric>

#include "base/mapped.h"
#include "compress/plain.h"

namespace abtrain::methods {

double weight_of(const std::vector<std::int64_t>& examples, std::size_t index) {
  if (examples.empty()) {
    return 1;
  }
  const std::int64_t sum = std::accumulate(examples.begin(), examples.end(), std::int64_t{0});
  return static_cast<double>(examples[index] * std::ssize(examples)) / static_cast<double>(sum);
}

void weigh(at::Tensor tensor, double weight) {
  if (weight != 1) {
    tensor.mul_(weight);
  }
}

void average(
    const std::vector<at::Tensor>& tensors, comm::Communicator& group, comm::Purpose purpose,
    at::ScalarType wire, double weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor buffer = flattened(tensors);
  if (buffer.numel() == 0) {
    return;
  }
  weigh(buffer, weight);
  compress::average(buffer, group, purpose, wire);
  unflatten(buffer, tensors);
}

std::vector<at::Tensor> statistics_of(const nn::Model& model) {
  std::vector<at::Tensor> statistics;
  for (const nn::NamedBuffer& b : model.buffers()) {
    if (!b.is_fixed) {
      statistics.push_back(*b.tensor);
    }
  }
  return statistics;
}

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  const auto flat = [](const at::Tensor& tensor) { return tensor.reshape({-1}); };
  return tensors.empty() ? at::empty({0}) : at::cat(mapped(tensors, flat));
}

void unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  at::_foreach_copy_(tensors, at::unflatten_dense_tensors(flat, tensors));
}

void average_buffers(
    const nn::Model& model, comm::Communicator& group, comm::Purpose purpose, double weight) {
  average(statistics_of(model), group, purpose, at::kFloat, weight);
}

std::vector<optim::ParameterRef> dense_parameters(const nn::Model& model) {
  std::vector<optim::ParameterRef> refs;
  for (const nn::NamedWeight& w : model.weights()) {
    if (!w.weight->is_factored() && !w.weight->is_frozen()) {
      refs.push_back({w.name, &w.weight->dense, true, false, w.position});
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (!p.is_frozen) {
      refs.push_back({p.name, p.tensor, p.decays, false, p.position});
    }
  }
  // In layer order, so that tensors sent together are one range of the buffer.
  std::ranges::sort(refs, {}, &optim::ParameterRef::position);
  return refs;
}

void set_mean_dense(
    const at::Tensor& own, comm::Communicator& world, nn::Model& target, double weight) {
  const at::Tensor mean = own.clone();
  average({mean}, world, comm::Purpose::Metrics, at::kFloat, weight);
  std::int64_t offset = 0;
  for (const optim::ParameterRef& ref : dense_parameters(target)) {
    // The strides are those of the trained tensor: for a convolution's weight channels-last, for a
    // parameter of an exported model the file's.
    const at::Tensor& trained = *ref.tensor;
    const std::int64_t numel = trained.numel();
    *ref.tensor = mean.as_strided(trained.sizes(), trained.strides(), mean.storage_offset() + offset);
    offset += numel;
  }
}

}  // namespace abtrain::methods
