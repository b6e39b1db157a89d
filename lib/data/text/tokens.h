// A text as a sequence of tokens, which stay in their files until they are read.
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
  // Maps the files and concatenates their tokens. By `type`, a token is a byte or a little-endian
  // integer of 16 or 32 bits; a header of 1024 bytes as llm.c writes it may precede integers
  // (nanoGPT writes none). Throws DamagedData, which names the file, if a file is cut off or its
  // header does not fit `type`; MissingInput or Io if a file cannot be mapped.
  Tokens(const std::vector<TextFile>& files, TokenType type, std::int64_t vocabulary);
  // Takes each of these bytes as a token.
  explicit Tokens(std::vector<std::uint8_t> bytes);
  ~Tokens();

  std::int64_t size() const {
    return size_;
  }
  // Checks all tokens once. Throws as read() does.
  void check() const;
  // Fills `out` with the tokens first, first + 1, ... . Throws DamagedData, which names the file
  // and the place, for a token that is not below the vocabulary.
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
