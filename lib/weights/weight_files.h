// The weights of a model, in one safetensors file or split into several as
// Hugging Face does: shards next to a file model.safetensors.index.json, whose
// "weight_map" tells where each tensor lies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "state/safetensors.h"

namespace abtrain::weights {

class WeightFiles {
 public:
  // path: a safetensors file, an index (*.index.json), or a folder that holds model.safetensors or
  // model.safetensors.index.json. Checks the layouts of all files. Throws MissingInput, or
  // DamagedData naming file and tensor.
  explicit WeightFiles(const std::string& path);

  struct Item {
    const state::SafetensorsFile* file;
    const state::StoredTensor* tensor;
  };
  // In the files' order.
  const std::vector<Item>& tensors() const {
    return items_;
  }
  bool has(const std::string& name) const {
    return owners_.contains(name);
  }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }
  std::vector<std::string> paths() const;

 private:
  void open_index(const std::string& path);

  std::vector<state::SafetensorsFile> files_;
  std::vector<Item> items_;
  std::map<std::string, const state::SafetensorsFile*> owners_;
  std::map<std::string, std::string> metadata_;
};

// Throws Usage if `path` has the ending of another format, or is a folder, one of the inputs or a
// terminal. Unless `force` is set, also throws if a file that is not a safetensors file, or that a
// run has written, exists there. Any other safetensors file will be replaced at the end. Call this
// before long work.
void check_output(
    const std::string& path, const std::vector<std::string>& inputs, bool force = false);

}  // namespace abtrain::weights
