// The score of a model on held-out examples, distributed over workers.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <vector>

#include "comm/communicator.h"
#include "nn/model.h"
#include "optim/optim_options.h"
#include "train/batches.h"
#include "train/score.h"

namespace abtrain::train {

// The workers hold one model and divide `examples` among themselves. Returns the same result on all
// workers; the host reads the device once. `label_smoothing` applies to the loss. The traffic is
// counted as comm::Purpose::Metrics.
//
// `answers`, if not null, gets one tensor on the device for each of this worker's batches, except
// in a regression. It is int64, with one row per label (B, or B * tokens) and three columns: the
// label, the likeliest class, and 1 if the label is among the five likeliest. Among equal logits,
// the class with the lower index counts as likelier.
Score evaluate(
    nn::Model& model, const ExampleSource& examples, const data::Augment& augment,
    std::int64_t batch_size, const at::Device& device, comm::Communicator& world,
    double label_smoothing = 0, std::vector<at::Tensor>* answers = nullptr);

// Passes the examples begin .. end - 1 to `use`, in batches of `size` that `batch(first, last)`
// makes. Skips batches in which all examples are damaged. With std::launch::async, the next batch
// is made while the current one is used.
void for_batches(
    std::int64_t begin, std::int64_t end, std::int64_t size, std::launch when,
    const std::function<data::Batch(std::int64_t first, std::int64_t last)>& batch,
    const std::function<void(const data::Batch&)>& use);

// The classes of each example (B x C) in descending order of their logits; among equal logits, the
// lower class comes first.
at::Tensor ranked_classes(const at::Tensor& logits);

// The term that the optimizer adds to the mean loss that it minimizes, over the weights that decay:
// for sgd, weight_decay / 2 times the sum of their squares; for the adagrads, l1 times the sum of
// their magnitudes; for adamw, nothing (its decay is decoupled). A factored weight counts as the
// product of its factors.
double penalty(const nn::Model& model, const optim::OptimizerOptions& options);

}  // namespace abtrain::train
