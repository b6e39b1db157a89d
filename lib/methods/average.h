// Averages over a group of workers that methods share.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.h"
#include "nn/model.h"
#include "optim/parameter_block.h"

namespace abtrain::methods {

// Mean over `group`, in one all-reduce, of all tensors together. Contiguous
// fp32 tensors are overwritten in place.
void average(
    const std::vector<at::Tensor>& tensors,
    comm::Communicator& group,
    comm::Purpose purpose,
    at::ScalarType wire = at::kFloat);

// Averages the running statistics in place.
void average_buffers(
    const nn::Model& model, comm::Communicator& group, comm::Purpose purpose);

// The running statistics, averaged: new tensors, one a buffer of the model.
std::vector<at::Tensor> averaged_buffers(
    const nn::Model& model, comm::Communicator& group, comm::Purpose purpose);

// Everything that is dense in a model now, weights, biases, norms and the like, as
// references for a ParameterBlock, in the order of the layers.
std::vector<optim::ParameterRef> dense_parameters(const nn::Model& model);

// Lets `target` share the dense weights and parameters of `source`, without
// gradients; its buffers become `buffers`.
void share_dense(
    const nn::Model& source,
    const std::vector<at::Tensor>& buffers,
    nn::Model& target);

// What is dense in `target` becomes the mean over `world` of `own`: flat, in the
// order of dense_parameters().
void set_mean_dense(
    const at::Tensor& own, comm::Communicator& world, nn::Model& target);

}  // namespace abtrain::methods
