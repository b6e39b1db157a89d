// The initial weights of all workers of a process, made once.
#pragma once

#include <memory>
#include <mutex>

#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::train {

class InitialModel {
 public:
  // Makes them from model.init and seed, or reads the file model.weights.
  // `takers`: how many workers will copy them. Errors: as load_model().
  InitialModel(const config::RunOptions& options, const nn::InputShape& shape, int takers);
  // Copies them into a worker's model; the last taker frees the memory.
  // Thread-safe.
  void copy_into(nn::Model& model);

 private:
  std::mutex mutex_;
  std::unique_ptr<nn::Model> model_;
  int takers_;
};

}  // namespace abtrain::train
