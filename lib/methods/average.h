// Averages over a group of workers, shared by the methods.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "nn/model.h"
#include "optim/parameter_block.h"

namespace abtrain::methods {

// The factor that turns a plain mean over n members into a mean over examples:
// member `index` multiplies its values by it before the members are averaged.
// examples[i]: the number of examples of member i. The factor is
// n * examples[index] / (sum of examples); it is exactly 1 if all have the same
// number, and if `examples` is empty.
double weight_of(const std::vector<std::int64_t>& examples, std::size_t index);
// Multiplies the tensor by the weight in place; does nothing if the weight is 1.
void weigh(at::Tensor tensor, double weight);

// Overwrites contiguous fp32 tensors with their mean over `group`, all of them in one all-reduce.
// Here and below, `weight`: this member's weight_of().
void average(
    const std::vector<at::Tensor>& tensors, comm::Communicator& group, comm::Purpose purpose,
    at::ScalarType wire = at::kFloat, double weight = 1);

// The dtype in which optimizer moments are sent if values are sent in `wire`: fp32 for fp16, in
// which squared gradients would underflow to zero.
constexpr at::ScalarType moment_wire(at::ScalarType wire) {
  return wire == at::kHalf ? at::kFloat : wire;
}

// The model's running statistics, without those of frozen norms.
std::vector<at::Tensor> statistics_of(const nn::Model& model);
// The elements of these tensors, one tensor after another, in a new flat tensor.
at::Tensor flattened(const std::vector<at::Tensor>& tensors);
// The inverse of flattened(): overwrites the tensors.
void unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors);

// Averages the running statistics in place.
void average_buffers(
    const nn::Model& model, comm::Communicator& group, comm::Purpose purpose, double weight = 1);

// References for a ParameterBlock to everything in a model that is dense now and not frozen
// (weights, biases, norms and the like), in layer order.
std::vector<optim::ParameterRef> dense_parameters(const nn::Model& model);

// Sets the dense parameters of `target` to the mean of `own` over `world`. `own`: this worker's,
// flat, in the order of dense_parameters(). `target` has this worker's dense parameters
// (Method::merge_into()), whose strides it keeps.
void set_mean_dense(
    const at::Tensor& own, comm::Communicator& world, nn::Model& target, double weight);

}  // namespace abtrain::methods
