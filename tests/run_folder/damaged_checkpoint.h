// Finds a checkpoint, changes what it says, and makes its sizes and hashes right
// again, for tests.
#pragma once

#include <fstream>
#include <functional>
#include <string>

#include "base/json.h"
#include "run_folder/checkpoint_files.h"
#include "state/safetensors.h"
#include "temp_folder.h"

namespace abtrain::run_folder {

using Change = std::function<void(nlohmann::ordered_json&)>;

// The folder of a run's checkpoint.
inline std::string place_of(const TempFolder& run, std::int64_t step) {
  return run / formatted("{}/{}", config::kCheckpoints, step_folder(step));
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline void change_manifest(const std::string& folder, const Change& change) {
  const std::string path = folder + "/" + config::kManifest;
  nlohmann::ordered_json json = JsonObject::of_file(path).all();
  change(json);
  write_file(path, json.dump());
}

// Of a file that was changed.
inline void mend_mark(const std::string& folder, const std::string& name) {
  const InputFile file(folder + "/" + name);
  change_manifest(folder, [&](nlohmann::ordered_json& json) {
    json["files"][name] = {{"bytes", file.size()}, {"xxh3", hash_text(hash_of(file))}};
  });
}

// The values of worker 0's state.
inline void change_values(const std::string& folder, const Change& change) {
  const std::string path = folder + "/" + worker_file(0);
  std::vector<state::NamedTensor> tensors;
  auto metadata = state::SafetensorsFile(path).metadata();
  {
    const state::SafetensorsFile file(path);
    for (const std::string& name : file.names()) {
      tensors.push_back({name, file.read(name, file.shape(name))});
    }
  }
  auto values = nlohmann::ordered_json::parse(metadata.at("state"));
  change(values);
  metadata["state"] = values.dump();
  state::write_safetensors(path, tensors, metadata);
  mend_mark(folder, worker_file(0));
}

}  // namespace abtrain::run_folder
