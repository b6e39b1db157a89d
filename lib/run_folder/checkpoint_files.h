// The names in a checkpoint. Internal to run_folder/checkpoint*.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "config/run_files.h"

namespace abtrain::run_folder {

constexpr int kCheckpointFormat = 2;
constexpr const char* kStep = "step";
constexpr const char* kWorker = "worker";
constexpr std::int64_t kMaxWorkers = 65536;  // limit of the key `workers`
constexpr const char* kStepPrefix = "step-";
// Prefix for the name of a checkpoint's folder that is about to be removed or replaced.
constexpr const char* kObsolete = ".obsolete-";
constexpr const char* kOwnPrefix = "own/";
constexpr const char* kReplicasPrefix = "replicas/";

// "worker-00003.safetensors"
std::string worker_file(int rank);
// "step-0000000420"
std::string step_folder(std::int64_t step);
// "step-420" for "step-0000000420"; any other name stays.
std::string brief_name(const std::string& checkpoint);

// Full paths of the entries of <run folder>/checkpoints whose names begin with the prefix, in
// descending order of name: the newest checkpoint comes first, because step numbers have leading
// zeros.
std::vector<std::string> entries_of(const std::string& run_folder, const std::string& prefix);
// Moves the folder `from` to `to`. An earlier `to` is first moved to `old`, beside it, and is moved
// back on failure. The caller removes `old`. Throws Io.
void replace_folder(const std::string& from, const std::string& to, const std::string& old);
// After a replace_folder() that was killed: moves `old` back to `to`, or removes it if `to` exists.
// Throws Io.
void settle_replaced(const std::string& to, const std::string& old);
}  // namespace abtrain::run_folder
