// Reads a file front to back, plain or gzipped (of one member or several, RFC
// 1952), straight into the caller's memory. Its first bytes tell which; where
// its name says gzip, they must agree.
//
// Errors name the file: MissingInput if it does not exist, Io if it cannot be
// read, DamagedData if it is not a regular file, too short or too long, or if
// its gzip stream is broken.
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

  // Fills `out`. `what` names the part in the error for a file that ends early.
  void read(std::span<std::uint8_t> out, std::string_view what);
  // Fills as much of `out` as is left in the file; returns how many bytes.
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
