// The model that a run begins with.
#pragma once

#include <memory>

#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::weights {

// Makes the model with which all workers start. Its weights are initialized (model.init, seed) or
// read from model.weights, and model.adapter, if given, is added. If config::keeps_base(),
// Model::base() is the hash of these inputs. Throws as load_model() does.
std::unique_ptr<nn::Model> make_initial_model(
    const config::RunOptions& options, const data::ExampleShape& shape);

}  // namespace abtrain::weights
