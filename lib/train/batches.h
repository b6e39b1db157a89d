// Where the batches of a run are made: on its GPU, from images kept there, or
// on the host.
#pragma once

#include <cstdint>
#include <memory>

#include "data/augment.h"
#include "data/batch_source.h"
#include "data/order.h"
#include "train/evaluation.h"
#include "train/trainer.h"

namespace abtrain::train {

// Whether the images are kept on the device, by `data.on_device`, data set and
// device. Throws Error(Config) if it is `true` and that is impossible.
bool lies_on_device(
    const config::RunOptions& options,
    const data::Dataset& dataset,
    const data::Images& validation,
    const at::Device& device);

// The batches of a worker, from `first_batch` on. The arguments must outlive
// the result.
std::unique_ptr<data::BatchSource> make_batches(
    const TrainInputs& inputs,
    const data::Augment& augment,
    const data::ExampleOrder& order,
    std::int64_t first_batch);

// All images of one part, not augmented.
HeldOut training_images(const TrainInputs& inputs);
HeldOut test_images(const TrainInputs& inputs);
HeldOut validation_images(const TrainInputs& inputs);

}  // namespace abtrain::train
