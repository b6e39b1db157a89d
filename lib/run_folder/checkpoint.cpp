// Reading checkpoints.
#include "run_folder/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "config/config.h"
#include "run_folder/checkpoint_files.h"
#include "state/safetensors.h"

namespace abtrain::run_folder {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

Checkpoint read_checkpoint(const std::string& folder) {
  const std::string path = folder + "/" + config::kManifest;
  const JsonObject json = JsonObject::of_file(path);
  json.integer("/format", kCheckpointFormat, kCheckpointFormat);
  const std::int64_t run_steps = json.integer("/run_steps", 1);
  Checkpoint checkpoint{
      .folder = folder,
      .step = json.integer("/step", 0, run_steps),
      .run_steps = run_steps,
      .metrics_bytes = json.integer("/metrics_bytes", 0)};
  // A checkpoint that was copied elsewhere may have another name.
  const std::string name = fs::path(folder).filename().string();
  if (name.starts_with(kStepPrefix) && name != step_folder(checkpoint.step)) {
    json.complain("/step", "the step in the folder's name");
  }
  auto leads = value_in<std::vector<std::int64_t>>(json.all(), "leads");
  const std::int64_t workers = json.integer("/workers", 1, kMaxWorkers);
  for (std::int64_t w = 0; w < std::ssize(leads); ++w) {
    // Among workers that hold the same state, the lowest rank stores it.
    const std::int64_t lead = leads[static_cast<std::size_t>(w)];
    if (lead < 0 || lead > w || leads[static_cast<std::size_t>(lead)] != lead) {
      leads.clear();
    }
  }
  if (std::ssize(leads) != workers) {
    json.complain(
        "/leads",
        formatted("for each of {} workers the rank that stores its replicas' state", workers));
  }
  checkpoint.leads.assign(leads.begin(), leads.end());
  const ordered_json* accuracy = json.find("/validation_accuracy");
  if (accuracy == nullptr || !accuracy->is_null()) {
    checkpoint.validation_accuracy = json.number("/validation_accuracy");
    if (!(*checkpoint.validation_accuracy <= 1)) {  // R^2 may be negative
      json.complain("/validation_accuracy", "a number up to 1, or null");
    }
  }
  if (json.find("/model_file") != nullptr) {
    checkpoint.model_file = json.text("/model_file");
  }
  if (const ordered_json* names = json.find("/class_names");
      names != nullptr && !read_json(*names, checkpoint.class_names)) {
    json.complain("/class_names", "a list of names");
  }
  return checkpoint;
}

namespace {

constexpr const char* kLast = "last";
constexpr const char* kBest = "best";

// The values in the metadata of a worker's file.
ordered_json values_of(const state::SafetensorsFile& file) {
  JsonProblem problem;
  ordered_json values = parse_json(file.metadata("state"), problem);
  ABT_CHECK(
      values.is_object(), DamagedData, "{}: its metadata has no state{}{}", file.path(),
      problem.what.empty() ? "" : ": ", problem.what);
  return values;
}

// Checks that the file belongs to this step and worker, and is not a copy of another file.
void check_place(const state::SafetensorsFile& file, std::int64_t step, int worker) {
  for (const auto& [key, number] :
       {std::pair(kStep, step), std::pair(kWorker, std::int64_t{worker})}) {
    const std::string found = file.metadata(key);
    ABT_CHECK(
        found == std::to_string(number), DamagedData, "{}: expected the state of {} {}, found {}",
        file.path(), key, number, found.empty() ? "none named" : formatted("that of {}", found));
  }
}

void check_mark(const JsonObject& manifest, const std::string& folder, const std::string& name) {
  const InputFile file(folder + "/" + name);
  // A file name has no slash at which the JSON pointer would be split.
  const std::string key = "/files/" + name;
  const std::int64_t bytes = manifest.integer((key + "/bytes").c_str(), 0);
  const std::string hash = manifest.text((key + "/xxh3").c_str());
  ABT_CHECK(
      file.size() == static_cast<std::uint64_t>(bytes), DamagedData,
      "{}: expected {} bytes, found {}", file.path(), bytes, file.size());
  ABT_CHECK(
      hash_text(hash_of(file)) == hash, DamagedData,
      "{}: its content differs from what was written (XXH3 mismatch)", file.path());
}

}  // namespace

void verify(const Checkpoint& checkpoint) {
  const JsonObject manifest = JsonObject::of_file(checkpoint.folder + "/" + config::kManifest);
  const auto files = static_cast<std::size_t>(checkpoint.workers()) + 1;
  if (manifest.object("/files").size() != files) {
    manifest.complain(
        "/files",
        formatted("config.yaml and one file for each of {} workers", checkpoint.workers()));
  }
  check_mark(manifest, checkpoint.folder, config::kConfig);
  for (int worker = 0; worker < checkpoint.workers(); ++worker) {
    check_mark(manifest, checkpoint.folder, worker_file(worker));
    const state::SafetensorsFile file(checkpoint.folder + "/" + worker_file(worker));
    values_of(file);
    check_place(file, checkpoint.step, worker);
  }
  std::int64_t workers = checkpoint.workers();
  const std::string config = formatted("{}/{}", checkpoint.folder, config::kConfig);
  try {
    workers = config::read_config(config).workers;
  } catch (const LocatedError&) {
    // Resuming the run reports the errors in the configuration.
  }
  ABT_CHECK(
      workers == checkpoint.workers(), DamagedData,
      "{}: expected the same number of workers twice, got {} in {} and {} in "
      "{}",
      checkpoint.folder, checkpoint.workers(), config::kManifest, workers, config::kConfig);
}

Checkpoint verified_checkpoint(const std::string& folder) {
  Checkpoint checkpoint = read_checkpoint(folder);
  verify(checkpoint);
  return checkpoint;
}

std::vector<std::string> entries_of(const std::string& run_folder, const std::string& prefix) {
  std::vector<std::string> paths;
  for (const fs::path& entry : list_folder(run_folder + "/" + config::kCheckpoints)) {
    if (entry.filename().string().starts_with(prefix)) {
      paths.push_back(entry.string());
    }
  }
  std::ranges::reverse(paths);
  return paths;
}

std::vector<Checkpoint> list_checkpoints(const std::string& run_folder) {
  std::vector<Checkpoint> found;
  for (const std::string& folder : entries_of(run_folder, kStepPrefix)) {
    try {
      found.push_back(read_checkpoint(folder));
    } catch (const Error&) {
      // newest_checkpoint() reports it.
    }
  }
  return found;
}

std::vector<Checkpoint>::const_iterator best_of(const std::vector<Checkpoint>& checkpoints) {
  const auto best =  // nullopt is less than any number
      std::ranges::max_element(checkpoints, {}, &Checkpoint::validation_accuracy);
  return best != checkpoints.end() && best->validation_accuracy ? best : checkpoints.end();
}

RunName split_run_name(const std::string& name) {
  const std::size_t at = name.rfind('@');
  return at == std::string::npos || is_there(name + "/" + config::kConfig)
             ? RunName{name, ""}
             : RunName{name.substr(0, at), name.substr(at + 1)};
}

std::string brief_name(const std::string& checkpoint) {
  if (!checkpoint.starts_with(kStepPrefix)) {
    return checkpoint;
  }
  const std::size_t zeros = checkpoint.find_first_not_of('0', std::string_view(kStepPrefix).size());
  return kStepPrefix + (zeros == std::string::npos ? "0" : checkpoint.substr(zeros));
}

Checkpoint named_checkpoint(const std::string& run_folder, const std::string& name) {
  const std::vector<std::string> folders = entries_of(run_folder, kStepPrefix);
  std::vector<std::string> there;
  if (!folders.empty()) {
    there.emplace_back(kLast);
  }
  const std::vector<Checkpoint> found = list_checkpoints(run_folder);
  const auto best = best_of(found);
  if (best != found.end()) {
    there.emplace_back(kBest);
  }
  for (const std::string& folder : folders) {
    const std::string file = fs::path(folder).filename().string();
    const std::string brief = brief_name(file);
    there.push_back(brief);
    if (name == file || name == brief || (name == kLast && folder == folders.front()) ||
        (name == kBest && best != found.end() && folder == best->folder)) {
      return verified_checkpoint(folder);
    }
  }
  throw Error(
      ErrorKind::MissingInput,
      formatted(
          "{}: there is no checkpoint '{}'{}; {}", run_folder, name,
          name == kBest ? ", since none has a validation accuracy (data.validation)" : "",
          there.empty() ? "it has none" : "there are " + join(there, ", ")));
}

std::optional<Checkpoint> newest_checkpoint(const std::string& run_folder, Log& log) {
  for (const std::string& folder : entries_of(run_folder, kStepPrefix)) {
    try {
      return verified_checkpoint(folder);
    } catch (const Error& error) {
      std::error_code none;
      if (fs::symlink_status(folder, none).type() == fs::file_type::not_found) {
        log.info("{} was just removed by its run: looking for a newer one", folder);
        return newest_checkpoint(run_folder, log);
      }
      log.warning("checkpoint skipped: {}", error.what());
    }
  }
  return std::nullopt;
}

namespace {

void take(
    const state::SafetensorsFile& file, const std::string& prefix,
    std::map<std::string, at::Tensor>& tensors) {
  for (const std::string& name : file.names()) {
    if (name.starts_with(prefix)) {
      tensors.emplace(name.substr(prefix.size()), file.read(name, file.shape(name)));
    }
  }
}

}  // namespace

state::State load_state(const Checkpoint& checkpoint, int rank) {
  const auto file_of = [&](int worker) { return checkpoint.folder + "/" + worker_file(worker); };
  state::State state;
  const state::SafetensorsFile own(file_of(rank));
  take(own, kOwnPrefix, state.own);
  const int lead = checkpoint.leads[static_cast<std::size_t>(rank)];
  take(state::SafetensorsFile(file_of(lead)), kReplicasPrefix, state.replicas);
  *state.values = values_of(own);
  return state;
}

}  // namespace abtrain::run_folder
