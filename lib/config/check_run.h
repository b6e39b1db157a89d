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

// Bytes of the fp32 parameters, gradients, moments, residuals and example-order
// state of one worker in a dense step; activations come on top.
double state_bytes(const RunOptions& options, std::int64_t parameters);

// Parameters that a worker trains in a dense step, or the factors of adapters; with those that only
// spectra can tell, all parameters.
std::int64_t trained_parameters(const RunOptions& options, const data::ExampleShape& shape);
// Bytes of what the workers of a process share of a model with frozen parts; 0 without.
double base_bytes(const RunOptions& options, std::int64_t parameters);

// Throws Error(Config) if the workers' parameters, gradients and moments alone,
// together with the bytes of the images kept there, exceed the memory of the
// device.
void check_memory(
    const RunOptions& options, const data::ExampleShape& shape, int local_workers,
    std::int64_t image_bytes);

}  // namespace abtrain::config
