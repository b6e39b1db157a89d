// The model that a run begins with.
#pragma once

#include <memory>

#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::weights {

// The initial weights of all workers: made from model.init and seed, or read
// from the file model.weights. If config::keeps_base(), Model::base() is their hash. Errors: as
// load_model().
std::unique_ptr<nn::Model> make_initial_model(
    const config::RunOptions& options, const data::ExampleShape& shape);

}  // namespace abtrain::weights
