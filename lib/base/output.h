// The file that a user names with -o: what it is, and whether it may be
// replaced.
#pragma once

#include <functional>
#include <string>

namespace abtrain {

// Where bytes written to a path end up.
struct OutputPlace {
  // With links followed, so that a rename replaces the target, not the link.
  std::string path;
  // A device, pipe or socket, which takes bytes as they come.
  bool is_stream = false;
  // One that this process has open already ("-", /dev/stdout, /dev/fd/3); -1
  // where the path must be opened.
  int descriptor = -1;
};

// "-" is standard output. Throws Error(Io) where links go in circles.
OutputPlace find_output(const std::string& path);
bool is_standard_output(const std::string& path);

// What a command writes with one of its options.
struct OutputKind {
  const char* option;  // "-o"
  const char* what;    // "a safetensors file"
  // Whether an existing file is of this kind, by its first bytes.
  std::function<bool(const std::string& begin)> matches;
};

// Called before long work. Throws Error(Usage) where `path` is a folder or,
// unless `force`, a file of another kind, which the user hardly meant to lose.
// Streams, empty files and files that are not there yet are fine.
void check_replaceable(
    const std::string& path,
    const OutputKind& kind,
    bool force);

}  // namespace abtrain
