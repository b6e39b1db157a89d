// Checks on the output file that a user names with an option such as -o: its kind, and whether it
// may be replaced.
#pragma once

#include <functional>
#include <string>

namespace abtrain {

// The destination of bytes that are written to a path.
struct OutputPlace {
  // The path with its links followed, so that a rename replaces the target and
  // not the link.
  std::string path;
  // Whether it is a device, pipe or socket, which must be written to directly.
  bool is_stream = false;
  // The descriptor, if this process already has the output open ("-",
  // /dev/stdout, /dev/fd/3); -1 if the path must be opened.
  int descriptor = -1;
};

// "-" is standard output. Throws Error(Io) if the links form a cycle.
OutputPlace find_output(const std::string& path);
bool is_standard_output(const std::string& path);

// The kind of file that a command writes to the path given by one of its options.
struct OutputKind {
  const char* option;  // "-o"
  const char* what;    // "a safetensors file"
  // Whether an existing file is of this kind, judged by its first bytes.
  std::function<bool(const std::string& begin)> matches;
};

// Call it before long work. Throws Error(Usage) if `path` is a folder or, unless `force` is set, a
// file of another kind, which the user probably did not mean to replace. Accepts streams, empty
// files and files that do not exist yet.
void check_replaceable(const std::string& path, const OutputKind& kind, bool force);

}  // namespace abtrain
