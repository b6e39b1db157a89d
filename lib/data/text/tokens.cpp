#include "data/text/tokens.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "data/mapped_file.h"

namespace abtrain::data {
namespace {

template <class T>
void widen(const std::uint8_t* from, std::span<std::int64_t> out) {
  for (std::int64_t& value : out) {
    T token;
    std::memcpy(&token, from, sizeof token);
    value = token;
    from += sizeof token;
  }
}

// Tokens need not be aligned.
template <class T>
std::int64_t largest_token(std::span<const std::uint8_t> bytes) {
  T largest = 0;
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T token;
    std::memcpy(&token, bytes.data() + i, sizeof token);
    largest = std::max(largest, token);
  }
  return largest;
}

// How files store the tokens of one TokenType.
struct TokenForm {
  std::size_t width;  // bytes
  void (*widen)(const std::uint8_t* from, std::span<std::int64_t> out);
  std::int64_t (*largest)(std::span<const std::uint8_t> bytes);
};
constexpr TokenForm kForms[] = {
    {1, widen<std::uint8_t>, largest_token<std::uint8_t>},
    {2, widen<std::uint16_t>, largest_token<std::uint16_t>},
    {4, widen<std::uint32_t>, largest_token<std::uint32_t>}};

const TokenForm& form_of(TokenType type) {
  return kForms[static_cast<std::size_t>(type)];
}

// The first three of the 256 numbers of 32 bits in llm.c's header.
struct BinHeader {
  std::uint32_t magic, version, tokens;
};
constexpr std::size_t kHeaderBytes = 1024;
struct BinKind {
  TokenType type;
  std::uint32_t magic, version;
};
constexpr BinKind kBinKinds[] = {
    {TokenType::Uint16, 20240520, 1}, {TokenType::Uint32, 20240801, 7}};

// The bytes of the tokens, without llm.c's header if there is one.
std::span<const std::uint8_t> without_header(
    const std::string& path, std::span<const std::uint8_t> bytes, TokenType type) {
  BinHeader header{};
  if (type == TokenType::Bytes || bytes.size() < sizeof header) {
    return bytes;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto kind = std::ranges::find(kBinKinds, header.magic, &BinKind::magic);
  if (kind == std::end(kBinKinds)) {
    return bytes;
  }
  ABT_CHECK(
      kind->type == type && kind->version == header.version && bytes.size() >= kHeaderBytes,
      DamagedData,
      "{}: expected tokens of {} bits, found a header of version {} for tokens "
      "of {} bits{}",
      path, 8 * form_of(type).width, header.version, 8 * form_of(kind->type).width,
      bytes.size() < kHeaderBytes ? ", which is cut off" : "");
  bytes = bytes.subspan(kHeaderBytes);
  ABT_CHECK(
      bytes.size() / form_of(type).width == header.tokens, DamagedData,
      "{}: its header announces {} tokens ({} bytes), but {} bytes follow", path,
      with_commas(header.tokens),
      with_commas(static_cast<std::int64_t>(form_of(type).width) * header.tokens),
      with_commas(static_cast<std::int64_t>(bytes.size())));
  return bytes;
}

}  // namespace

struct Tokens::Part {
  std::string path;
  at::Tensor file;
  std::span<const std::uint8_t> bytes;
  std::int64_t first = 0;  // index of its first token in the text
};

Tokens::Tokens(const std::vector<TextFile>& files, TokenType type, std::int64_t vocabulary)
    : type_(type), vocabulary_(vocabulary) {
  const std::size_t width = form_of(type).width;
  for (const TextFile& from : files) {
    const std::string& path = from.path;
    Part part{path, mapped_file(from.mapped), {}, size_};
    part.bytes =
        without_header(path, {part.file.const_data_ptr<std::uint8_t>(), part.file.nbytes()}, type);
    ABT_CHECK(
        part.bytes.size() % width == 0, DamagedData,
        "{}: expected tokens of {} bits, but its {} bytes are not a multiple "
        "of {}",
        path, 8 * width, with_commas(static_cast<std::int64_t>(part.bytes.size())), width);
    size_ += static_cast<std::int64_t>(part.bytes.size() / width);
    if (!part.bytes.empty()) {
      parts_.push_back(std::move(part));
    }
  }
}

Tokens::Tokens(std::vector<std::uint8_t> bytes)
    : size_(std::ssize(bytes)), memory_(std::move(bytes)) {
  parts_.push_back({"memory", {}, memory_, 0});
}

Tokens::~Tokens() = default;

void Tokens::check() const {
  // A byte is always below the vocabulary.
  if (type_ == TokenType::Bytes) {
    return;
  }
  const TokenForm& form = form_of(type_);
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;  // tokens
  for (const Part& part : parts_) {
    const auto count = static_cast<std::int64_t>(part.bytes.size() / form.width);
    const std::int64_t first_bad = at::parallel_reduce(
        0, (count + kAtOnce - 1) / kAtOnce, 1, count,
        [&](std::int64_t piece, std::int64_t end, std::int64_t found) {
          for (; piece < end && found == count; ++piece) {
            const auto begin = static_cast<std::size_t>(piece * kAtOnce) * form.width;
            const auto bytes = part.bytes.subspan(
                begin, std::min(kAtOnce * form.width, part.bytes.size() - begin));
            found = form.largest(bytes) < vocabulary_ ? count : piece * kAtOnce;
          }
          return found;
        },
        [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
    if (first_bad < count) {
      std::vector<std::int64_t> tokens(
          static_cast<std::size_t>(std::min(kAtOnce, count - first_bad)));
      read(part.first + first_bad, tokens);  // throws
    }
  }
}

void Tokens::read(std::int64_t first, std::span<std::int64_t> out) const {
  ABT_ASSERT(
      first >= 0 && first + std::ssize(out) <= size_, "tokens {} .. {} of {}", first,
      first + std::ssize(out), size_);
  const std::size_t width = form_of(type_).width;
  auto part = std::ranges::upper_bound(parts_, first, {}, &Part::first) - 1;
  for (; !out.empty(); ++part) {
    const auto begin = static_cast<std::size_t>(first - part->first);
    const std::size_t count = std::min(out.size(), part->bytes.size() / width - begin);
    const std::uint8_t* from = part->bytes.data() + begin * width;
    const auto some = out.first(count);
    form_of(type_).widen(from, some);
    const auto above =
        std::ranges::find_if(some, [&](std::int64_t token) { return token >= vocabulary_; });
    ABT_CHECK(
        above == some.end(), DamagedData,
        "{}: token {}: expected one below the {} of data.vocabulary, found {}", part->path,
        static_cast<std::int64_t>(begin) + (above - some.begin()), vocabulary_, *above);
    out = out.subspan(count);
    first += static_cast<std::int64_t>(count);
  }
}

}  // namespace abtrain::data
