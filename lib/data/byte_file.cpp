#include "data/byte_file.h"

#include <endian.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::data {

bool is_gzip(const std::string& path) {
  constexpr std::array<std::uint8_t, 3> kMark = {0x1f, 0x8b, Z_DEFLATED};
  std::array<std::uint8_t, 3> begin = {};
  InputFile(path).read_some(0, begin.data(), begin.size());
  return begin == kMark;
}

ByteFile::ByteFile(const std::string& path)
    : path_(InputFile(path).path()), file_(nullptr, gzclose) {
  file_.reset(gzopen(path.c_str(), "rbe"));
  ABT_CHECK(file_ != nullptr, Io, "cannot open {}", path);
  gzbuffer(file_.get(), 1 << 16);
  ABT_CHECK(
      is_gzip(path) || !(path.ends_with(".gz") || path.ends_with(".dz")), DamagedData,
      "{}: expected a gzip file, as its name says, but it does not begin as one", path);
}

std::size_t ByteFile::read_some(std::span<std::uint8_t> out) {
  constexpr std::size_t kMostPerCall = 1 << 30;  // zlib counts in 32 bits
  std::size_t done = 0;
  for (int got = 1; got > 0 && done < out.size();
       done += static_cast<std::size_t>(std::max(got, 0))) {
    const std::size_t want = std::min(out.size() - done, kMostPerCall);
    got = gzread(file_.get(), out.data() + done, static_cast<unsigned>(want));
  }
  int code = Z_OK;
  std::string why = gzerror(file_.get(), &code);  // "PATH: why"
  why.erase(0, path_.size() + 2);
  ABT_CHECK(code != Z_ERRNO, Io, "cannot read {}: {}", path_, why);
  ABT_CHECK(
      code != Z_BUF_ERROR, DamagedData,
      "{}: expected the end of its gzip stream, found the end of the file (truncated?)", path_);
  ABT_CHECK(
      code == Z_OK || code == Z_STREAM_END, DamagedData,
      "{}: expected a whole gzip stream, found damage after {} bytes: {}", path_,
      with_commas(gztell(file_.get())), why);
  return done;
}

void ByteFile::read(std::span<std::uint8_t> out, std::string_view what) {
  const std::size_t got = read_some(out);
  ABT_CHECK(
      got == out.size(), DamagedData, "{}: ends within the {}: expected {} bytes, found {}", path_,
      what, with_commas(static_cast<std::int64_t>(out.size())),
      with_commas(static_cast<std::int64_t>(got)));
}

std::uint32_t ByteFile::read_big_endian(std::string_view what) {
  std::uint32_t value = 0;
  read({reinterpret_cast<std::uint8_t*>(&value), sizeof value}, what);
  return be32toh(value);
}

void ByteFile::finish() {
  std::uint8_t extra = 0;
  ABT_CHECK(
      read_some({&extra, 1}) == 0, DamagedData,
      "{}: expected the file to end after the last image or label, found more bytes", path_);
}

}  // namespace abtrain::data
