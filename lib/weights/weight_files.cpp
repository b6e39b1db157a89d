#include "weights/weight_files.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/mapped.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/text.h"
#include "config/run_files.h"

namespace abtrain::weights {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

std::string file_in(const std::string& folder) {
  for (const char* name : {kFile, kIndex}) {
    const std::string path = (fs::path(folder) / name).string();
    if (is_known_there(path)) {
      return path;
    }
  }
  throw Error(
      ErrorKind::MissingInput,
      formatted("{}: expected {} or {} in this folder", folder, kFile, kIndex));
}

// Whether the file exists and a run seems to have written it: as a model next to the run's
// configuration, or as a worker's part of a checkpoint.
bool is_of_run(const fs::path& path) {
  std::error_code ignored;
  const std::string name = path.filename().string();
  const bool is_model = name == kFile || name == "model.sparse.safetensors";
  return fs::exists(path, ignored) &&
         ((is_model && fs::exists(path.parent_path() / config::kConfig, ignored)) ||
          (name.starts_with("worker-") &&
           fs::exists(path.parent_path() / config::kManifest, ignored)));
}

// A safetensors file begins with a length below 2^32 and a header of JSON.
bool begins_as_safetensors(const std::string& begin) {
  return begin.size() > 8 && begin.substr(4, 5) == std::string("\0\0\0\0{", 5);
}

}  // namespace

WeightFiles::WeightFiles(const std::string& path) {
  std::error_code ignored;
  const std::string file = fs::is_directory(path, ignored) ? file_in(path) : path;
  if (file.ends_with(".json")) {
    open_index(file);
  } else {
    files_.emplace_back(file);
  }
  for (const state::SafetensorsFile& part : files_) {
    metadata_.insert(part.metadata().begin(), part.metadata().end());
    for (const state::StoredTensor& tensor : part.tensors()) {
      items_.push_back({&part, &tensor});
      const auto [other, is_new] = owners_.emplace(tensor.name, &part);
      ABT_CHECK(
          is_new, DamagedData, "{}: tensor '{}' is in {} too", part.path(), tensor.name,
          other->second->path());
    }
  }
}

void WeightFiles::open_index(const std::string& path) {
  JsonProblem problem;
  const auto index = parse_json(read_file(path), problem);
  const auto check = [&](bool ok) {
    ABT_CHECK(
        ok, DamagedData,
        "{}: expected an index of shards, {{\"weight_map\": {{TENSOR: FILE, "
        "...}}}}{}{}",
        path, problem.what.empty() ? "" : "; ", problem.what);
  };
  const auto map = index.find("weight_map");
  check(map != index.end() && map->is_object());
  std::map<std::string, std::size_t> shards;  // indices into files_
  for (const auto& [tensor, file] : map->items()) {
    std::string name;
    check(read_json(file, name));
    shards.emplace(name, 0);
  }
  for (auto& [name, place] : shards) {
    place = files_.size();
    files_.emplace_back((fs::path(path).parent_path() / name).string());
  }
  for (const auto& [tensor, file] : map->items()) {
    const state::SafetensorsFile& shard = files_[shards.at(file.get<std::string>())];
    ABT_CHECK(
        shard.has(tensor), DamagedData, "{}: tensor '{}' should be in {}, but is not", path, tensor,
        shard.path());
  }
}

std::vector<std::string> WeightFiles::paths() const {
  return mapped(files_, &state::SafetensorsFile::path);
}

void check_output(const std::string& path, const std::vector<std::string>& inputs, bool force) {
  std::error_code ignored;
  for (const std::string& input : inputs) {
    ABT_CHECK(
        !fs::equivalent(path, input, ignored), Usage, "-o: '{}' is the file that is read", path);
  }
  ABT_CHECK(
      !is_standard_output(path) || !is_tty(1), Usage,
      "-o: a model cannot be written to a terminal; name a file, or redirect");
  const std::string ending = fs::path(path).extension();
  ABT_CHECK(
      ending.empty() || lower_case(ending) == ".safetensors", Usage,
      "-o: '{}' ends in {}; expected a name that ends in .safetensors, for weights that "
      "abtrain.load_model and safetensors.torch.load_file read, or from `abtrain export` a program "
      "that ends in .pt2 or .onnx",
      path, ending);
  const fs::path place = find_output(path).path;
  ABT_CHECK(
      force || !is_of_run(place), Usage, "-o: '{}' is a file of a run; --force replaces it", path);
  check_replaceable(path, {"-o", "a safetensors file", begins_as_safetensors}, force);
}

}  // namespace abtrain::weights
