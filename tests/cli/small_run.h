// A whole run of the program that takes a moment, for the tests of its commands.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "temp_folder.h"

namespace abtrain {

// A small network and eight steps: 2 dense, 3 factored, 1 dense, 2 factored.
inline std::string small_run(const TempFolder& folder, const std::string& more = "") {
  const bool has_output = more.find("--output") != std::string::npos;
  return "--config fashion_mnist_mlp.yaml " +
         (has_output ? "" : "--output '" + folder.path() + "'") +
         " --name small --set 'model.hidden=[32, 32]' --set train.steps=8"
         " --set method.warmup_steps=2 --set method.sync_every=4"
         " --set method.full_rank_steps=1 --set 'method.rank={rule: fixed, rank: 4}'"
         " --set schedule.warmup_steps=2 --set train.log_every=1 " +
         more;
}

inline std::string content(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace abtrain
