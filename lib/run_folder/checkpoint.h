// Checkpoints on disk: <run folder>/checkpoints/step-0000000420/ holds one
// safetensors file per worker, the configuration, and a manifest of file sizes
// and XXH3 hashes. A checkpoint is written under a temporary name, forced to
// disk and renamed last, so a folder with a final name is complete; it is
// verified before use all the same.
//
// State that the members of a replica group (workers with identical weights) share is stored once,
// by the member with the lowest rank (the lead).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "comm/communicator.h"
#include "state/archive.h"

namespace abtrain::run_folder {

struct Checkpoint {
  std::string folder = {};
  std::int64_t step = 0;                           // steps done
  std::int64_t run_steps = 0;                      // total steps of the run
  std::vector<int> leads = {};                     // per worker: the rank of its lead
  std::optional<double> validation_accuracy = {};  // for text: 1 / perplexity
  std::int64_t metrics_bytes = 0;                  // length of metrics.jsonl at the save
  std::string model_file = {};                     // hash of model.file; "" if unknown
  std::vector<std::string> class_names = {};       // of the data; empty if unknown
  int workers() const {
    return static_cast<int>(leads.size());
  }
};

// Every checkpoint of a run folder whose manifest can be read, newest first.
std::vector<Checkpoint> list_checkpoints(const std::string& run_folder);
// Returns the checkpoint with the best validation accuracy; the end if none has one.
std::vector<Checkpoint>::const_iterator best_of(const std::vector<Checkpoint>& checkpoints);

// Reads a checkpoint from its own folder. Throws MissingInput, DamagedData.
Checkpoint read_checkpoint(const std::string& folder);

// Compares all files with the manifest. Throws DamagedData naming the file.
void verify(const Checkpoint& checkpoint);
Checkpoint verified_checkpoint(const std::string& folder);

// Returns the newest checkpoint that passes verify(); the log names newer ones that fail. If
// another run in the folder removes a checkpoint meanwhile, the search begins again.
std::optional<Checkpoint> newest_checkpoint(const std::string& run_folder, Log& log);

// "runs/my@best" means the checkpoint `best` of the run `runs/my`; for "runs/my" the checkpoint is
// "". A run folder may have an @ in its own name.
struct RunName {
  std::string run, checkpoint;
};
RunName split_run_name(const std::string& name);

// Returns the checkpoint that a user names, and verifies it: "last", "best" (with the best
// validation accuracy), or "step-400". Throws MissingInput, which lists the existing checkpoints;
// DamagedData.
Checkpoint named_checkpoint(const std::string& run_folder, const std::string& name);

// Returns the state that worker `rank` stored, plus the shared state of its replica group, which
// the lead stored. Throws DamagedData.
state::State load_state(const Checkpoint& checkpoint, int rank);

class CheckpointWriter {
 public:
  struct Options {
    std::string run_folder;
    std::string config;     // YAML
    std::int64_t keep = 2;  // number of newest checkpoints to keep, besides the best
    std::string model_file = {};  // as in Checkpoint
    std::vector<std::string> class_names = {};
  };
  // For tests: called before a file is written ("write"), before the checkpoint gets its final name
  // ("publish"), and at the end ("saved").
  using Hook = std::function<void(int rank, const char* moment, const std::string& folder)>;

  CheckpointWriter(Options options, comm::Communicator& world, Log* log, Hook hook);

  // Collective. `about` has everything but folder and leads. `lead`: the rank of this worker's
  // lead. Returns false, with a warning in the log of worker 0, if some worker could not write;
  // then nothing of this checkpoint is left, and older checkpoints are unchanged.
  bool save(Checkpoint about, state::State& state, int lead);

 private:
  void write_own(
      const std::string& folder, std::int64_t step, state::State& state, bool is_lead,
      std::int64_t& bytes, std::uint64_t& hash) const;
  void publish(const Checkpoint& about, const std::string& folder) const;
  void prune() const;
  void tell(const char* moment, const std::string& folder) const;

  Options options_;
  comm::Communicator& world_;
  Log* log_;
  Hook hook_;
};

// <run folder>/checkpoints.previous, which keeps checkpoints that the run does not continue from.
std::string previous_of(const std::string& run_folder);
// Moves checkpoints with a step above `step` to previous_of(), where they replace any of the same
// name. The log, if not null, names them. Throws Io.
void put_later_aside(const std::string& run_folder, std::int64_t step, Log* log);

// Removes the remains of interrupted saves, and restores a checkpoint that such a save had moved
// away but not replaced.
void clean_checkpoints(const std::string& run_folder);

}  // namespace abtrain::run_folder
