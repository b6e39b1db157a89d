// A text as a sequence of tokens, which stay in their files until they are
// read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/data_options.h"
#include "data/text/text_files.h"

namespace abtrain::data {

// Safe to use from several threads.
class Tokens {
 public:
  // Maps the files, whose tokens follow each other: each byte, or little-endian
  // numbers of 16 or 32 bits, as nanoGPT writes them or, after a header of 1024
  // bytes, llm.c. Throws DamagedData for a file that is cut off or has the
  // other kind of header.
  Tokens(const std::vector<TextFile>& files, TokenType type, std::int64_t vocabulary);
  // Bytes in memory.
  explicit Tokens(std::vector<std::uint8_t> bytes);
  ~Tokens();

  std::int64_t size() const {
    return size_;
  }
  // Copies tokens first, first + 1, ... . Throws DamagedData, naming file and
  // place, for a token that is not below the vocabulary.
  void read(std::int64_t first, std::span<std::int64_t> out) const;

 private:
  struct Part;
  TokenType type_ = TokenType::Bytes;
  std::int64_t vocabulary_ = 256;
  std::int64_t size_ = 0;
  std::vector<std::uint8_t> memory_;
  std::vector<Part> parts_;
};

}  // namespace abtrain::data
