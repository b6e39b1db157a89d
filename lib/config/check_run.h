// Whether a configuration can run on data of a given shape.
#pragma once

#include <cstdint>

#include "config/run_length.h"
#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::config {

// Checks everything that can be wrong with a configuration on data of this
// shape, without reading the data or touching a file. Returns the length of the
// run. Throws Error(Config).
RunLength check_run(
    const RunOptions& options, const data::ExampleShape& shape, std::int64_t train_images);

// Bytes of the fp32 parameters, gradients, moments, residuals and example-order state of one worker
// in a dense step; activations are not included.
double state_bytes(const RunOptions& options, std::int64_t parameters);

// The number of parameters that a worker trains: all that are not frozen or, with adapters, their
// factors. If the ranks depend on the spectra, all parameters.
std::int64_t trained_parameters(const RunOptions& options, const data::ExampleShape& shape);
// Bytes of the base that the workers of a process share, for a model with frozen parts; 0 for all
// other models.
double base_bytes(const RunOptions& options, std::int64_t parameters);

// Throws Error(Config) if the state_bytes() of all workers on a device, the images kept there and
// the base together exceed its memory, or if the result of one operator alone does.
void check_memory(
    const RunOptions& options, const data::ExampleShape& shape, int local_workers,
    std::int64_t image_bytes);

}  // namespace abtrain::config
