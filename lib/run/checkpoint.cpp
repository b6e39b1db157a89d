// Reading checkpoints.
#include "run/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "run/checkpoint_files.h"
#include "run/safetensors.h"

namespace abtrain::run {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

Checkpoint read_checkpoint(const std::string& folder) {
  const std::string path = folder + "/" + kManifest;
  const std::string text = read_file(path);
  try {
    const ordered_json json = ordered_json::parse(text);
    ABT_CHECK(
        json.at("format") == kCheckpointFormat,
        DamagedData,
        path,
        ": expected format ",
        kCheckpointFormat,
        ", got ",
        json.at("format").dump());
    Checkpoint checkpoint;
    checkpoint.folder = folder;
    checkpoint.step = json.at("step").get<std::int64_t>();
    checkpoint.run_steps = json.at("run_steps").get<std::int64_t>();
    checkpoint.leads = json.at("leads").get<std::vector<int>>();
    checkpoint.metrics_bytes = json.at("metrics_bytes").get<std::int64_t>();
    if (!json.at("validation_accuracy").is_null()) {
      checkpoint.validation_accuracy =
          json.at("validation_accuracy").get<double>();
    }
    const int workers = checkpoint.workers();
    ABT_CHECK(
        workers > 0 &&
            std::ranges::all_of(
                checkpoint.leads,
                [&](int lead) { return lead >= 0 && lead < workers; }),
        DamagedData,
        path,
        ": its list of workers is malformed");
    return checkpoint;
  } catch (const ordered_json::exception& error) {
    throw Error(ErrorKind::DamagedData, str(path, ": ", error.what()));
  }
}

void verify(const Checkpoint& checkpoint) {
  const std::string path = checkpoint.folder + "/" + kManifest;
  try {
    const ordered_json manifest = ordered_json::parse(read_file(path));
    for (const auto& [name, wanted] : manifest.at("files").items()) {
      const std::string file = checkpoint.folder + "/" + name;
      const FileMark found = mark_of(file);
      ABT_CHECK(
          found.bytes == wanted.at("bytes").get<std::int64_t>(),
          DamagedData,
          file,
          ": expected ",
          wanted.at("bytes").dump(),
          " bytes, found ",
          found.bytes);
      ABT_CHECK(
          hash_text(found.hash) == wanted.at("xxh3").get<std::string>(),
          DamagedData,
          file,
          ": its content is not what was written (XXH3 differs)");
    }
  } catch (const ordered_json::exception& error) {
    throw Error(ErrorKind::DamagedData, str(path, ": ", error.what()));
  }
}

std::vector<std::string> entries_of(
    const std::string& run_folder,
    const std::string& prefix) {
  std::vector<std::string> paths;
  std::error_code none;
  for (fs::directory_iterator i(run_folder + "/" + kCheckpoints, none), end;
       !none && i != end;
       i.increment(none)) {
    if (i->path().filename().string().starts_with(prefix)) {
      paths.push_back(i->path().string());
    }
  }
  return paths;
}

std::vector<Checkpoint> list_checkpoints(const std::string& run_folder) {
  std::vector<Checkpoint> found;
  for (const std::string& folder : entries_of(run_folder, kStepPrefix)) {
    try {
      found.push_back(read_checkpoint(folder));
    } catch (const Error&) {
      // newest_checkpoint() names it.
    }
  }
  std::ranges::sort(found, [](const Checkpoint& a, const Checkpoint& b) {
    return a.step > b.step;
  });
  return found;
}

std::optional<Checkpoint> newest_checkpoint(
    const std::string& run_folder,
    Log& log) {
  std::vector<std::string> folders = entries_of(run_folder, kStepPrefix);
  // The number has leading zeros.
  std::ranges::sort(folders, std::ranges::greater());
  for (const std::string& folder : folders) {
    try {
      Checkpoint checkpoint = read_checkpoint(folder);
      verify(checkpoint);
      return checkpoint;
    } catch (const Error& error) {
      log.warning("checkpoint left aside: ", error.what());
    }
  }
  return std::nullopt;
}

namespace {

void take(
    const SafetensorsFile& file,
    const std::string& prefix,
    std::map<std::string, at::Tensor>& tensors) {
  for (const std::string& name : file.names()) {
    if (name.starts_with(prefix)) {
      tensors.emplace(
          name.substr(prefix.size()), file.read(name, file.shape(name)));
    }
  }
}

}  // namespace

state::State load_state(const Checkpoint& checkpoint, int rank) {
  const auto file_of = [&](int worker) {
    return checkpoint.folder + "/" + worker_file(worker);
  };
  state::State state;
  const SafetensorsFile own(file_of(rank));
  take(own, kOwnPrefix, state.own);
  const int lead = checkpoint.leads[static_cast<std::size_t>(rank)];
  if (lead == rank) {
    take(own, kReplicasPrefix, state.replicas);
  } else {
    take(SafetensorsFile(file_of(lead)), kReplicasPrefix, state.replicas);
  }
  *state.values = ordered_json::parse(own.metadata("state"), nullptr, false);
  ABT_CHECK(
      state.values->is_object(),
      DamagedData,
      file_of(rank),
      ": its metadata has no state");
  return state;
}

}  // namespace abtrain::run
