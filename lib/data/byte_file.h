// Reads a file front to back, plain or gzipped (one member or several, RFC 1952), straight into the
// caller's memory. Its first bytes decide which of the two it is. A file named .gz or .dz must
// begin as gzip.
//
// Errors name the file: MissingInput if it does not exist; Io if it cannot be read; DamagedData if
// it is not a regular file, is too short or too long, or has a broken gzip stream.
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

  // Fills `out`. `what` names the part for the error if the file ends early.
  void read(std::span<std::uint8_t> out, std::string_view what);
  // Fills `out`, or only its beginning if the file ends first; returns the number of bytes.
  std::size_t read_some(std::span<std::uint8_t> out);
  std::uint32_t read_big_endian(std::string_view what);
  // Checks that nothing is left, and verifies the checksum of a gzip stream.
  void finish();

  bool is_gzip() const;
  const std::string& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abtrain::data
