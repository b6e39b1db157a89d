// Checks whether a configuration can run on data of a given shape.
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

// Bytes of one worker's fp32 state in a dense step: `parameters` trained parameters, their
// gradients, moments, residuals, the method's copies, and the example order's state. Activations
// are not included.
double state_bytes(const RunOptions& options, std::int64_t parameters);

// The number of parameters that a worker trains: all that are not frozen; with adapters, the
// factors replace the weights that they adapt. If the ranks depend on singular values, all
// parameters.
std::int64_t trained_parameters(const RunOptions& options, const data::ExampleShape& shape);
// Bytes of the base, the initial model of `parameters` parameters. The workers of a process share
// it if parts of the model are frozen; else 0.
double base_bytes(const RunOptions& options, std::int64_t parameters);

// Throws Error(Config) if the state_bytes() of all workers on a device, the images kept there and
// the base together exceed the device's memory, or if the result of one operator alone does.
void check_memory(
    const RunOptions& options, const data::ExampleShape& shape, int local_workers,
    std::int64_t image_bytes);

}  // namespace abtrain::config
