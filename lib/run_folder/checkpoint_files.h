// File names, sizes and hashes of a checkpoint. Internal to
// run_folder/checkpoint*.
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
// In front of the name of a folder that is about to be removed.
constexpr const char* kObsolete = ".obsolete-";
constexpr const char* kOwnPrefix = "own/";
constexpr const char* kReplicasPrefix = "replicas/";

// "worker-00003.safetensors"
std::string worker_file(int rank);
// "step-0000000420"
std::string step_folder(std::int64_t step);

// XXH3 (64 bits) of a file's content. Throws Io.
std::uint64_t hash_of(const InputFile& file);
// Full paths of the entries of <run folder>/checkpoints whose names begin with
// the prefix, the greatest name first: of checkpoints, whose step numbers have
// leading zeros, the newest.
std::vector<std::string> entries_of(const std::string& run_folder, const std::string& prefix);
// Puts the folder `from` in the place `to`. What was there is kept in `old`, beside it, until that
// is done, and is put back if it fails. The caller removes `old`. Throws Io.
void replace_folder(const std::string& from, const std::string& to, const std::string& old);
// After a replace_folder() that was killed: puts `old` back in the place `to`, or removes it if the
// place is taken. Throws Io.
void settle_replaced(const std::string& to, const std::string& old);
// The hash as 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace abtrain::run_folder
