// Averages over a group of workers, shared by the methods.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"
#include "nn/model.h"
#include "optim/parameter_block.h"

namespace abtrain::methods {

// Overwrites contiguous fp32 tensors with their mean over `group`, all of them
// in one all-reduce.
void average(
    const std::vector<at::Tensor>& tensors, comm::Communicator& group, comm::Purpose purpose,
    at::ScalarType wire = at::kFloat);

// Averages the running statistics in place.
void average_buffers(const nn::Model& model, comm::Communicator& group, comm::Purpose purpose);

// Everything that is dense in a model now (weights, biases, norms and the
// like), as references for a ParameterBlock, in the order of the layers.
std::vector<optim::ParameterRef> dense_parameters(const nn::Model& model);

// Makes `target` share the dense weights and parameters of `source`, without
// gradients; its running statistics become the mean over `world` of those of
// `source`. Counts as metrics.
void share_dense(const nn::Model& source, comm::Communicator& world, nn::Model& target);

// Sets what is dense in `target` to the mean over `world` of `own`, which is
// flat, in the order of dense_parameters().
void set_mean_dense(const at::Tensor& own, comm::Communicator& world, nn::Model& target);

}  // namespace abtrain::methods
