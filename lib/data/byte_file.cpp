#include "data/byte_file.h"

#include <endian.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::data {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::size_t kMaxPerCall = 1 << 30;  // zlib counts in 32 bits
constexpr int kGzipWindow = 15 + 16;
constexpr std::size_t kGzipMark = 3;

// Whether a file's first bytes, possibly fewer than kGzipMark, begin a gzip member. The member must
// use the deflate method; no other is in use.
bool begins_gzip(std::span<const std::uint8_t> bytes) {
  constexpr std::array<std::uint8_t, kGzipMark> kMark = {0x1f, 0x8b, Z_DEFLATED};
  const std::size_t count = std::min(bytes.size(), kMark.size());
  return count >= 2 && std::equal(kMark.begin(), kMark.begin() + count, bytes.begin());
}

}  // namespace

struct ByteFile::State {
  explicit State(const std::string& name) : path(name), file(name) {
    refill();
    gzip = at_member();
    ABT_CHECK(
        gzip || !(path.ends_with(".gz") || path.ends_with(".dz")), DamagedData,
        "{}: expected a gzip file, as its name says, but it does not begin as "
        "one",
        path);
    if (gzip) {
      ABT_ASSERT(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib");
    }
  }
  ~State() {
    if (gzip) {
      inflateEnd(&stream);
    }
  }

  std::size_t left() const {
    return static_cast<std::size_t>(end - next);
  }
  std::size_t read_file(std::uint8_t* out, std::size_t count) {
    const std::size_t got = file.read_some(taken, out, count);
    taken += got;
    return got;
  }
  void refill() {
    next = buffer.data();
    end = next + read_file(buffer.data(), buffer.size());
  }

  // Whether a member of a gzip file begins here.
  bool at_member() {
    if (left() < kGzipMark) {
      end = std::copy(next, end, buffer.data());
      next = buffer.data();
      end += read_file(end, buffer.size() - left());
    }
    return begins_gzip({next, left()});
  }

  // Returns the number of bytes read, which is below `count` only at the end of the file.
  std::size_t read(std::uint8_t* out, std::size_t count) {
    return gzip ? read_gzip(out, count) : read_plain(out, count);
  }
  std::size_t read_plain(std::uint8_t* out, std::size_t count) {
    const std::size_t buffered = std::min(count, left());
    std::copy_n(next, buffered, out);
    next += buffered;
    return buffered == count ? count : buffered + read_file(out + buffered, count - buffered);
  }
  std::size_t read_gzip(std::uint8_t* out, std::size_t count) {
    std::size_t done = 0;
    while (done < count && !ended) {
      if (left() == 0) {
        refill();
        ABT_CHECK(
            left() > 0, DamagedData,
            "{}: expected the end of its gzip stream, found the end of the "
            "file ({} bytes; truncated?)",
            path, with_commas(static_cast<std::int64_t>(file.size())));
      }
      const std::size_t want = std::min(count - done, kMaxPerCall);
      stream.next_in = next;
      stream.avail_in = static_cast<uInt>(left());
      stream.next_out = out + done;
      stream.avail_out = static_cast<uInt>(want);
      const int code = inflate(&stream, Z_NO_FLUSH);
      next = end - stream.avail_in;
      done += want - stream.avail_out;
      ABT_CHECK(
          code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, DamagedData,
          "{}: expected a whole gzip stream, found damage after {} bytes: {}", path,
          with_commas(static_cast<std::int64_t>(stream.total_out)),
          stream.msg ? stream.msg : zError(code));
      ended = code == Z_STREAM_END && !at_member();
      if (code == Z_STREAM_END && !ended) {
        ABT_ASSERT(inflateReset(&stream) == Z_OK, "zlib");
      }
    }
    return done;
  }

  std::string path;
  InputFile file;
  std::uint64_t taken = 0;  // bytes of the file read so far
  std::vector<std::uint8_t> buffer = std::vector<std::uint8_t>(kBufferBytes);
  std::uint8_t* next = nullptr;
  std::uint8_t* end = nullptr;
  bool gzip = false;
  bool ended = false;
  z_stream stream{};
};

ByteFile::ByteFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
ByteFile::~ByteFile() = default;

bool ByteFile::is_gzip() const {
  return state_->gzip;
}

const std::string& ByteFile::path() const {
  return state_->path;
}

void ByteFile::read(std::span<std::uint8_t> out, std::string_view what) {
  const std::size_t got = state_->read(out.data(), out.size());
  ABT_CHECK(
      got == out.size(), DamagedData, "{}: ends within the {}: expected {} bytes, found {}",
      state_->path, what, with_commas(static_cast<std::int64_t>(out.size())),
      with_commas(static_cast<std::int64_t>(got)));
}

std::size_t ByteFile::read_some(std::span<std::uint8_t> out) {
  return state_->read(out.data(), out.size());
}

std::uint32_t ByteFile::read_big_endian(std::string_view what) {
  std::uint32_t value = 0;
  read({reinterpret_cast<std::uint8_t*>(&value), sizeof value}, what);
  return be32toh(value);
}

void ByteFile::finish() {
  std::uint8_t extra = 0;
  ABT_CHECK(
      state_->read(&extra, 1) == 0, DamagedData,
      "{}: expected the file to end after the last image or label, found more "
      "bytes",
      state_->path);
  if (state_->gzip && state_->left() == 0) {
    state_->refill();
  }
  ABT_CHECK(
      state_->left() == 0, DamagedData,
      "{}: expected the file to end after its gzip stream, found more bytes", state_->path);
}

}  // namespace abtrain::data
