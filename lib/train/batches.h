// Where a run's batches are made: on its GPU from images that lie there, or on
// the host.
#pragma once

#include <cstdint>
#include <memory>

#include "data/augment.h"
#include "data/batch_source.h"
#include "data/order.h"
#include "train/evaluation.h"
#include "train/trainer.h"

namespace abtrain::train {

// What `data.on_device` means for this set and device. Throws Error(Config)
// where it is `true` and cannot be.
bool lies_on_device(
    const config::RunOptions& options,
    const data::Dataset& dataset,
    const data::Images& validation,
    const at::Device& device);

// A worker's batches from `first_batch` on. The arguments must outlive it.
std::unique_ptr<data::BatchSource> make_batches(
    const TrainInputs& inputs,
    const data::Augment& augment,
    const data::ExampleOrder& order,
    std::int64_t first_batch);

// All of them, as they are: not augmented.
HeldOut training_images(const TrainInputs& inputs);
HeldOut test_images(const TrainInputs& inputs);
HeldOut validation_images(const TrainInputs& inputs);

}  // namespace abtrain::train
