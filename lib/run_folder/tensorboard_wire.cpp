#include "run_folder/tensorboard_wire.h"

#include <bit>

namespace abtrain::run_folder {

namespace {

// Wire types of protocol buffers.
constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kLengthDelimited = 2;
constexpr unsigned kFixed32 = 5;

template <class Integer>
void append(std::string& out, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>((value >> (8 * i)) & 0xFF);
  }
}

// TFRecord files store checksums in this masked form.
std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

}  // namespace

void Message::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

void Message::key(int field, unsigned type) {
  varint(static_cast<std::uint64_t>(field) << 3 | type);
}

Message& Message::integer(int field, std::int64_t value) {
  key(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real(int field, double value) {
  key(field, kFixed64);
  append(bytes_, std::bit_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real32(int field, float value) {
  key(field, kFixed32);
  append(bytes_, std::bit_cast<std::uint32_t>(value));
  return *this;
}

Message& Message::bytes(int field, std::string_view value) {
  key(field, kLengthDelimited);
  varint(value.size());
  bytes_ += value;
  return *this;
}

std::uint32_t crc32c(std::string_view bytes) {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // bits reversed
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
  }
  return ~crc;
}

std::string tfrecord(std::string_view bytes) {
  std::string record;
  append(record, static_cast<std::uint64_t>(bytes.size()));
  append(record, masked(crc32c(record)));
  record += bytes;
  append(record, masked(crc32c(bytes)));
  return record;
}

}  // namespace abtrain::run_folder
