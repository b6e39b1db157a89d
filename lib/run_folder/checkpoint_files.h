// Names and marks of the files of a checkpoint. Internal to the sources
// run_folder/checkpoint*.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_files.h"

namespace abtrain::run_folder {

constexpr int kCheckpointFormat = 1;
constexpr const char* kSource = "checkpoints.source";
constexpr std::int64_t kMostWorkers = 65536;  // of the key `workers`
constexpr const char* kStepPrefix = "step-";
constexpr const char* kOwnPrefix = "own/";
constexpr const char* kReplicasPrefix = "replicas/";

// "worker-00003.safetensors"
std::string worker_file(int rank);
// "step-00000420"
std::string step_folder(std::int64_t step);

struct FileMark {
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;  // XXH3, 64 bits
};
// Of a file on disk; throws MissingInput, Io.
FileMark mark_of(const std::string& path);
// Full paths in <run folder>/checkpoints of what begins so, in any order.
std::vector<std::string> entries_of(
    const std::string& run_folder,
    const std::string& prefix);
// 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace abtrain::run_folder
