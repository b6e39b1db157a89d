// Checkpoints on disk: <run folder>/checkpoints/step-00000420/ with a
// safetensors file a worker, the configuration, and a manifest of sizes and
// XXH3 hashes. A checkpoint is written beside its place, forced to the disk and
// renamed at the end, so a folder of that name is whole; it is verified all the
// same before it is used.
//
// What the members of a replica group hold alike is stored once, by the lowest.
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
  std::string folder;
  std::string copy_of;    // the folder that this one's files are from, or ""
  std::int64_t step = 0;  // steps done
  std::int64_t run_steps = 0;  // length of that run
  std::vector<int> leads;      // of each worker, who stores its replicas' state
  std::optional<double> validation_accuracy;
  std::int64_t metrics_bytes = 0;  // of metrics.jsonl at that moment
  int workers() const {
    return static_cast<int>(leads.size());
  }
};

// Those below a run folder whose manifest can be read, the newest first.
std::vector<Checkpoint> list_checkpoints(const std::string& run_folder);

// One that was named: its folder. Throws MissingInput, DamagedData.
Checkpoint read_checkpoint(const std::string& folder);

// Compares all files with the manifest. Throws DamagedData naming the file.
void verify(const Checkpoint& checkpoint);

// The newest that verifies; those that do not are named in the log.
std::optional<Checkpoint> newest_checkpoint(
    const std::string& run_folder,
    Log& log);

// The newest of another run that verifies, or the checkpoint `folder` itself,
// as links (or copies) in <run folder>/checkpoints.source: that run may prune
// it while it is being loaded. Goes with the next save. Throws MissingInput,
// DamagedData.
Checkpoint borrow_checkpoint(
    const std::string& folder,
    const std::string& run_folder,
    Log& log);
void return_checkpoint(const std::string& run_folder) noexcept;

// What worker `rank` stored and, of its replicas, their lead did. Throws
// DamagedData.
state::State load_state(const Checkpoint& checkpoint, int rank);

class CheckpointWriter {
 public:
  struct Place {
    std::string run_folder;
    std::string config;     // YAML
    std::int64_t keep = 2;  // the newest so many, and the best
  };
  // For tests: called between the steps of a save ("write", "publish",
  // "saved").
  using Hook = std::function<
      void(int rank, const char* moment, const std::string& folder)>;

  CheckpointWriter(Place place, comm::Communicator& world, Log* log, Hook hook);

  // Collective. `about` has all but folder and leads. False, with a warning in
  // the log of worker 0, where some worker could not write; then nothing is
  // left of it and older ones are as they were.
  bool save(Checkpoint about, state::State& state, int lead);

 private:
  std::string write_own(
      const std::string& folder,
      state::State& state,
      bool is_lead,
      std::int64_t& bytes,
      std::uint64_t& hash) const;
  void publish(const Checkpoint& about, const std::string& folder) const;
  void prune() const;
  void tell(const char* moment, const std::string& folder) const;

  Place place_;
  comm::Communicator& world_;
  Log* log_;
  Hook hook_;
};

// Removes what interrupted saves have left.
void clean_checkpoints(const std::string& run_folder);

}  // namespace abtrain::run_folder
