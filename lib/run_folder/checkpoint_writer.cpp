// Writing checkpoints.
#define XXH_INLINE_ALL
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <set>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "comm/failure.h"
#include "comm/share.h"
#include "run_folder/checkpoint.h"
#include "run_folder/checkpoint_files.h"
#include "run_folder/run_lock.h"
#include "state/safetensors.h"

namespace abtrain::run_folder {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kUnfinished = ".unfinished-";

// A message that workers exchange; longer messages are truncated.
using Words = std::array<char, 512>;

Words words_of(const std::string& message) {
  Words words{};
  message.copy(words.data(), words.size() - 1);
  return words;
}

// Returns the problems of the workers that failed. If several workers have the same problem with
// different files, quotes only the first.
std::string text_of(const std::vector<std::int64_t>& failed, const std::vector<Words>& problems) {
  std::vector<std::string> texts;
  std::set<std::string> reasons;
  std::int64_t more = 0;
  for (std::size_t worker = 0; worker < failed.size(); ++worker) {
    const std::string problem = problems[worker].data();
    const std::size_t file_ends = problem.rfind("': ");
    if (failed[worker] == 0) {
      continue;
    }
    if (!reasons.insert(problem.substr(file_ends == std::string::npos ? 0 : file_ends)).second) {
      ++more;
    } else {
      texts.push_back(
          worker == 0 ? problem
                      : formatted("worker {} could not write its part: {}", worker, problem));
    }
  }
  return join(texts, "; ") +
         (more == 0 ? ""
                    : formatted(
                          "; {} failed in the same way",
                          more == 1 ? "another worker" : formatted("{} other workers", more)));
}

// Whether `path` exists. A link counts, wherever it leads.
bool has_entry(const std::string& path) {
  struct stat status {};
  const bool found = uninterrupted([&] { return ::lstat(path.c_str(), &status); }) == 0;
  ABT_CHECK(
      found || errno == ENOENT, Io, "cannot read '{}': {}", path,
      std::generic_category().message(errno));
  return found;
}

}  // namespace

std::string worker_file(int rank) {
  return formatted("worker-{:05}.safetensors", rank);
}

std::string step_folder(std::int64_t step) {
  return formatted("{}{:010}", kStepPrefix, step);
}

CheckpointWriter::CheckpointWriter(Options options, comm::Communicator& world, Log* log, Hook hook)
    : options_(std::move(options)), world_(world), log_(log), hook_(std::move(hook)) {}

void CheckpointWriter::tell(const char* moment, const std::string& folder) const {
  if (hook_) {
    hook_(world_.rank(), moment, folder);
  }
}

void CheckpointWriter::write_own(
    const std::string& folder, std::int64_t step, state::State& state, bool is_lead,
    std::int64_t& bytes, std::uint64_t& hash) const {
  std::vector<state::NamedTensor> tensors;
  for (const auto& [name, tensor] : state.own) {
    tensors.push_back({kOwnPrefix + name, tensor});
  }
  if (is_lead) {
    for (const auto& [name, tensor] : state.replicas) {
      tensors.push_back({kReplicasPrefix + name, tensor});
    }
  }
  tell("write", folder);
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  state::write_safetensors(
      folder + "/" + worker_file(world_.rank()), tensors,
      {{"state", state.values->dump()},
       {kStep, std::to_string(step)},
       {kWorker, std::to_string(world_.rank())}},
      [&](std::string_view piece) {
        bytes += static_cast<std::int64_t>(piece.size());
        XXH3_64bits_update(&digest, piece.data(), piece.size());
      });
  hash = XXH3_64bits_digest(&digest);
}

bool CheckpointWriter::save(Checkpoint about, state::State& state, int lead) {
  const bool first = world_.rank() == 0;
  const std::string all = options_.run_folder + "/" + config::kCheckpoints;
  const std::string folder = formatted("{}/{}{}", all, kUnfinished, step_folder(about.step));
  // Runs the body and returns whether it succeeded on all workers. Any exception cancels only this
  // checkpoint; if training cannot go on either, its next step reports that.
  const auto all_succeed = [&](const auto& body) {
    std::optional<std::string> problem;
    try {
      body();
    } catch (...) {
      problem = comm::message_of(std::current_exception());
    }
    const auto failed = comm::gather_values(world_, std::int64_t{problem.has_value()});
    if (std::ranges::find(failed, 1) == failed.end()) {
      return true;
    }
    if (first && !lost_run_lock()) {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
    const auto problems = comm::gather_values(world_, words_of(problem.value_or("")));
    if (log_ != nullptr) {
      log_->warning("step {}: no checkpoint was saved: {}", about.step, text_of(failed, problems));
    }
    return false;
  };
  const bool is_ready = all_succeed([&] {
    if (first) {
      check_run_lock();
      remove_path(folder);
      make_folders(folder);
    }
  });
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;
  const auto write = [&] {
    write_own(folder, about.step, state, lead == world_.rank(), bytes, hash);
  };
  if (!is_ready || !all_succeed(write)) {
    return false;
  }
  const auto marks = comm::gather_values(
      world_, std::array{bytes, static_cast<std::int64_t>(hash), std::int64_t{lead}});
  const bool published = all_succeed([&] {
    if (first) {
      ordered_json files = ordered_json::object();
      for (int r = 0; r < world_.size(); ++r) {
        const auto& mark = marks[static_cast<std::size_t>(r)];
        const std::string name = worker_file(r);
        ABT_CHECK(
            is_known_there(folder + "/" + name), Io,
            "{}/{} of worker {} is not visible to worker 0: `output` must be a "
            "folder that all hosts share",
            folder, name, r);
        files[name] = {
            {"bytes", mark[0]}, {"xxh3", hash_text(static_cast<std::uint64_t>(mark[1]))}};
        about.leads.push_back(static_cast<int>(mark[2]));
      }
      atomic_write(formatted("{}/{}", folder, config::kConfig), options_.config);
      const InputFile config(formatted("{}/{}", folder, config::kConfig));
      files[config::kConfig] = {{"bytes", config.size()}, {"xxh3", hash_text(hash_of(config))}};
      ordered_json manifest = {
          {"format", kCheckpointFormat},
          {"step", about.step},
          {"run_steps", about.run_steps},
          {"workers", world_.size()},
          {"leads", about.leads},
          {"validation_accuracy",
           about.validation_accuracy ? ordered_json(*about.validation_accuracy) : nullptr},
          {"metrics_bytes", about.metrics_bytes},
          {"files", files}};
      if (!options_.model_file.empty()) {
        manifest["model_file"] = options_.model_file;
      }
      if (!options_.class_names.empty()) {
        manifest["class_names"] = options_.class_names;
      }
      atomic_write(folder + "/" + config::kManifest, manifest.dump(2) + "\n");
      publish(about, folder);
    }
  });
  if (published) {
    tell("saved", formatted("{}/{}", all, step_folder(about.step)));
  }
  return published;
}

void CheckpointWriter::publish(const Checkpoint& about, const std::string& folder) const {
  const std::string all = options_.run_folder + "/" + config::kCheckpoints;
  const std::string place = formatted("{}/{}", all, step_folder(about.step));
  sync_path(folder);
  tell("publish", folder);
  check_run_lock();
  const std::string old = formatted("{}/{}{}", all, kObsolete, step_folder(about.step));
  replace_folder(folder, place, old);  // `place` may exist if a run was resumed before this step
  try {
    remove_path(old);
    // After a resume with more workers, the steps count fewer than before, and the checkpoints
    // saved until then seem to be later ones.
    put_later_aside(options_.run_folder, about.step, log_);
    prune();
  } catch (...) {
    if (log_ != nullptr) {
      log_->warning("pruning old checkpoints: {}", comm::message_of(std::current_exception()));
    }
  }
}

void CheckpointWriter::prune() const {
  const std::vector<Checkpoint> found = list_checkpoints(options_.run_folder);  // newest first
  const auto best = best_of(found);
  for (const Checkpoint& old : found | std::views::drop(options_.keep)) {
    if (best != found.end() && old.step == best->step) {
      continue;
    }
    // Rename it first, so that a half-removed folder does not look like a
    // checkpoint.
    const fs::path path = old.folder;
    const std::string gone = (path.parent_path() / (kObsolete + path.filename().string())).string();
    remove_path(gone);
    rename_path(old.folder, gone);
    remove_path(gone);
  }
}

std::string previous_of(const std::string& run_folder) {
  return formatted("{}/{}.previous", run_folder, config::kCheckpoints);
}

void put_later_aside(const std::string& run_folder, std::int64_t step, Log* log) {
  const std::string previous = previous_of(run_folder);
  std::vector<std::string> moved;
  for (const std::string& path : entries_of(run_folder, kStepPrefix)) {
    const std::string name = fs::path(path).filename().string();
    if (name <= step_folder(step)) {
      break;  // the newest one comes first
    }
    make_folders(previous);
    const std::string place = formatted("{}/{}", previous, name);
    remove_path(place);
    std::error_code error;
    fs::rename(path, place, error);
    if (error == std::errc::cross_device_link) {  // `checkpoints` is a link to another disk
      fs::copy(path, place, fs::copy_options::recursive);
      remove_path(path);
    } else {
      ABT_CHECK(!error, Io, "cannot move '{}' to '{}': {}", path, place, error.message());
    }
    moved.push_back(name);
  }
  if (!moved.empty() && log != nullptr) {
    log->warning(
        "continuing from step {}: later checkpoints of this run are kept in {}: {}", step, previous,
        join(moved, ", "));
  }
}

void replace_folder(const std::string& from, const std::string& to, const std::string& old) {
  const std::string parent = fs::path(to).parent_path().string();
  const bool replaces = has_entry(to);
  if (replaces) {
    remove_path(old);
    rename_path(to, old);
  }
  try {
    rename_path(from, to);
    sync_path(parent);
  } catch (const Error&) {
    if (replaces && !has_entry(to)) {
      rename_path(old, to);
    }
    throw;
  }
}

void settle_replaced(const std::string& to, const std::string& old) {
  if (!has_entry(old)) {
    return;
  }
  if (has_entry(to)) {
    std::error_code ignored;  // a later replace_folder() reports it
    fs::remove_all(old, ignored);
  } else {
    rename_path(old, to);
  }
}

void clean_checkpoints(const std::string& run_folder) {
  std::error_code ignored;
  for (const std::string& path : entries_of(run_folder, kUnfinished)) {
    fs::remove_all(path, ignored);
  }
  for (const fs::path path : entries_of(run_folder, kObsolete)) {
    // A save may have been killed after it moved the old checkpoint away and
    // before it put the new one in its place.
    const fs::path place =
        path.parent_path() / path.filename().string().substr(std::string_view(kObsolete).size());
    try {
      if (!has_entry(place)) {
        verified_checkpoint(path);
        rename_path(path, place);
        continue;
      }
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Io) {
        continue;  // the checkpoint may be whole
      }
    }
    fs::remove_all(path, ignored);
  }
}

}  // namespace abtrain::run_folder
