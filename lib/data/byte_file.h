// Reads a file front to back, plain or gzipped (told by its first bytes), and
// straight into the caller's memory.
//
// Errors name the file: MissingInput where it is not there, Io where it cannot
// be read, DamagedData where it is a folder, too short, too long, or its gzip
// stream is broken.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace abtrain::data {

class ByteFile {
 public:
  explicit ByteFile(const std::string& path);
  ~ByteFile();

  // Fills `out`; `what` names the part in the error of a file that ends early.
  void read(std::span<std::uint8_t> out, std::string_view what);
  std::uint32_t read_big_endian(std::string_view what);
  // Checks that nothing is left, and the checksum of a gzip stream.
  void finish();

  const std::string& path() const;
  // No more bytes than this can come, whatever a damaged header claims.
  std::uint64_t most_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abtrain::data
