// Recomputes the running statistics of a merged model's batch norms: the average of the statistics
// of the models that were merged is not right for the merged model.
//
// Every worker passes batches through the model. A running mean becomes the mean of the batch means
// over all workers' batches. A running variance becomes the mean of the batches' unbiased variances
// (not the variance over all images taken together). torch.optim.swa_utils.update_bn computes the
// same on one worker that sees all these batches.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "comm/communicator.h"
#include "data/batch_source.h"
#include "nn/model.h"

namespace abtrain::train {

// Overwrites the model's buffers that are not fixed, and nothing else, from `count` (at least 1)
// batches of each worker. Every worker passes the same `count` and ends with bit-identical buffers.
// No dropout, no gradients. Collective: one fp32 all-reduce of the buffers. A model without such
// buffers makes no pass and sends nothing. Throws Error(Config) if a batch norm gets a single value
// per channel.
void collect_statistics(
    nn::Model& model, data::BatchSource& batches, std::int64_t count, comm::Communicator& world,
    comm::Purpose purpose);

}  // namespace abtrain::train
