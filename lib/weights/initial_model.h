// The model that a run begins with.
#pragma once

#include <memory>

#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::weights {

// Makes the model with which all workers start: its weights follow from model.init and seed, or are
// read from the file model.weights. If config::keeps_base(), Model::base() is the hash of these
// weights. Throws as load_model().
std::unique_ptr<nn::Model> make_initial_model(
    const config::RunOptions& options, const data::ExampleShape& shape);

}  // namespace abtrain::weights
