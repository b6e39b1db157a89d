// Names of files and folders that other code looks for in run folders and checkpoint folders.
#pragma once

namespace abtrain::config {

inline constexpr const char* kConfig = "config.yaml";
inline constexpr const char* kCheckpoints = "checkpoints";
inline constexpr const char* kManifest = "manifest.json";

}  // namespace abtrain::config
