// Networks of the tests of sizes and shapes.
#pragma once

#include <cstdint>
#include <string>

#include "config/run_options.h"
#include "nn/model.h"

namespace abtrain::plan {

inline config::RunOptions network(const std::string& name, const std::string& data) {
  config::RunOptions o;
  o.data.name = data;
  o.model.name = name;
  o.method.name = "ddp";
  return o;
}

inline std::int64_t count_of(const nn::ModelOptions& model, const std::string& data) {
  const bool is_gray = data == "fashion-mnist";
  const std::int64_t side = is_gray ? 28 : 32;
  return nn::make_model(model, {is_gray ? 1 : 3, side, side, 10})->dense_parameters();
}

}  // namespace abtrain::plan
