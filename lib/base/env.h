// The environment of the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace abtrain {

// Empty counts as not set.
std::optional<std::string> env(const char* name);
// Error(Usage) where it is set to something else than an integer.
std::optional<std::int64_t> env_integer(const char* name);
// The running program's own file, "" where the system does not tell.
std::string program_path();

}  // namespace abtrain
