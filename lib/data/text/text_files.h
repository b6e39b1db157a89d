// The files of a text, in a form that can be mapped.
#pragma once

#include <string>
#include <vector>

namespace abtrain {
class Log;
}

namespace abtrain::data {

struct TextFile {
  std::string path;    // for messages
  std::string mapped;  // what to map: the same file, or the unpacked one
};

// `path` itself, or all files below a folder, in the order of their paths and
// without files and folders whose names begin with a dot. A gzip file (found by
// its first bytes) is unpacked once, to a file in the folder abtrain/text of
// $XDG_CACHE_HOME or ~/.cache whose name follows from the file's path, size and
// modification time. Throws MissingInput; DamagedData, naming the gzip file;
// Io. `log` may be null.
std::vector<TextFile> text_files(const std::string& path, Log* log);

}  // namespace abtrain::data
