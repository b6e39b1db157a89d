// Appends to a file even if writing fails for a while, for example because the disk is full: bytes
// that cannot be written are kept in memory and written, in the original order, as soon as
// possible. Logs a warning when writing begins to fail, and a message when everything has been
// written after all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace abtrain::run_folder {

class Backlog {
 public:
  // `write` appends all of the bytes to the file, or none and throws Error(Io).
  Backlog(std::function<void(std::string_view)> write, Log& log)
      : write_(std::move(write)), log_(log) {}

  // Writes the bytes left from earlier calls, then `bytes`.
  void add(std::string_view bytes);
  // Writes the bytes left from earlier calls. Throws Error(Io) if that fails.
  void finish();

 private:
  std::function<void(std::string_view)> write_;
  Log& log_;
  std::string left_;
  std::string problem_;  // why the last attempt to write failed; "" if it succeeded
};

}  // namespace abtrain::run_folder
