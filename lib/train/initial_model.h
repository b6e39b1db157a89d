// The weights that all workers of a process start from, made once.
#pragma once

#include <memory>
#include <mutex>

#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::train {

class InitialModel {
 public:
  // Fresh ones from model.init and seed, or those of the file model.weights.
  // `takers` workers will take them. Errors as load_model.
  InitialModel(
      const config::RunOptions& options,
      const nn::InputShape& shape,
      int takers);
  // Copies them into a worker's model; the memory goes with the last taker.
  // Thread-safe.
  void copy_into(nn::Model& model);

 private:
  std::mutex mutex_;
  std::unique_ptr<nn::Model> model_;
  int takers_;
};

}  // namespace abtrain::train
