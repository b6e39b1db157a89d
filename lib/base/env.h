// Environment variables and the path of the running program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace abtrain {

// The variable's value. An empty variable counts as unset.
std::optional<std::string> env(const char* name);
// Throws Error(Usage) if the variable is set but is not an integer.
std::optional<std::int64_t> env_integer(const char* name);

// The first number of a list such as OMP_NUM_THREADS=4,2 (one number per level of nested parallel
// regions).
std::optional<std::int64_t> first_env_integer(const char* name);

// Replaces a leading "~" with $HOME, and $NAME and ${NAME} with that variable, as a shell does. If
// a variable is not set, returns false and says so in `why`.
bool expand_path(const std::string& path, std::string& out, std::string& why);
// The folder for files that can be recreated: abtrain in $XDG_CACHE_HOME or ~/.cache; "" if neither
// is known.
std::string cache_folder();
// The path of the running executable, or "" if the system does not provide it.
std::string program_path();

}  // namespace abtrain
