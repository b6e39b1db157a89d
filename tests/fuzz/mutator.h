// Changes inputs of a fuzz target at random, the same for the same seed: bits,
// bytes, parts left out, doubled or taken from other inputs, words of the
// target and extreme numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "target.h"

namespace abtrain::fuzz {

using Input = std::string;

constexpr std::size_t kLargest = 1 << 17;  // bytes of an input

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Input>& pool) : random_(seed), pool_(pool) {}

  Input next() {
    Input input = pool_[below(pool_.size())];
    for (std::size_t n = std::size_t{1} << below(5); n > 0; --n) {
      change(input);
      input.resize(std::min(input.size(), kLargest));
    }
    return input;
  }

 private:
  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : random_() % limit;
  }
  // A part of the input: mostly short.
  std::pair<std::size_t, std::size_t> part(const Input& input) {
    const std::size_t begin = below(input.size() + 1);
    const std::size_t most = std::min(input.size() - begin, std::size_t{1} << below(12));
    return {begin, below(most + 1)};
  }
  void change(Input& input) {
    const auto [begin, size] = part(input);
    switch (below(12)) {
      case 0:
        if (begin < input.size()) {
          input[begin] = static_cast<char>(input[begin] ^ (1 << below(8)));
        }
        break;
      case 1:
        if (begin < input.size()) {
          input[begin] = static_cast<char>(random_());
        }
        break;
      case 2:
        input.erase(begin, size);
        break;
      case 3:
        input.insert(below(input.size() + 1), input.substr(begin, size));
        break;
      case 4:
        if (!kWords.empty()) {
          input.insert(begin, kWords[below(kWords.size())]);
        }
        break;
      case 5:
        if (!kWords.empty()) {
          input.replace(begin, size, kWords[below(kWords.size())]);
        }
        break;
      case 6:
        number(input, begin);
        break;
      case 7:
        integer(input, begin);
        break;
      case 8: {
        const Input& other = pool_[below(pool_.size())];
        const auto [from, count] = part(other);
        input.replace(begin, size, other, from, count);
        break;
      }
      case 9:
        input.resize(begin);
        break;
      case 10:
        line(input, begin);
        break;
      case 11:
        repeat(input, begin, size);
        break;
    }
  }
  // The decimal number at or after a place becomes an extreme one.
  void number(Input& input, std::size_t begin) {
    static constexpr std::array kNumbers = {
        "0",
        "-1",
        "1",
        "1e999",
        "-0.0",
        "18446744073709551616",
        "18446744073709551615",
        "9223372036854775808",
        "9223372036854775807",
        "-9223372036854775808",
        "4294967296",
        "2147483648",
        "-2147483649",
        "1e300",
        "1e-320",
        "0x10",
        "010",
        ".nan",
        "NaN",
        "null",
        "3.5"};
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    const auto first =
        std::find_if(input.begin() + static_cast<std::ptrdiff_t>(begin), input.end(), is_digit);
    const auto last = std::find_if_not(first, input.end(), is_digit);
    input.replace(first, last, kNumbers[below(kNumbers.size())]);
  }
  // Some bytes become an extreme integer, of either order.
  void integer(Input& input, std::size_t begin) {
    static constexpr std::array<std::uint64_t, 9> kIntegers = {
        0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
    std::uint64_t value = kIntegers[below(kIntegers.size())] + below(3) - 1;
    std::array<char, 8> bytes;
    std::memcpy(bytes.data(), &value, 8);
    const std::size_t size = std::size_t{1} << below(4);
    if (below(2) == 0) {
      std::reverse(bytes.begin(), bytes.begin() + static_cast<int>(size));
    }
    input.replace(begin, size, bytes.data(), size);
  }
  // A line goes elsewhere, or is there twice.
  void line(Input& input, std::size_t begin) {
    const std::size_t newline = input.rfind('\n', begin);
    const std::size_t first = newline == Input::npos ? 0 : newline + 1;
    const std::size_t end = input.find('\n', begin);
    const Input text = input.substr(first, end == Input::npos ? Input::npos : end + 1 - first);
    if (below(2) == 0) {
      input.erase(first, text.size());
    }
    const std::size_t place = input.find('\n', below(input.size() + 1));
    input.insert(place == Input::npos ? 0 : place + 1, text);
  }
  // A short part many times: depth and length.
  void repeat(Input& input, std::size_t begin, std::size_t size) {
    Input unit = input.substr(begin, std::min<std::size_t>(size, 16));
    if (!kWords.empty() && below(2) == 0) {
      unit = kWords[below(kWords.size())];
    }
    Input all;
    for (std::size_t n = std::size_t{1} << below(15); n > 0 && all.size() + unit.size() < kLargest;
         --n) {
      all += unit;
    }
    input.insert(begin, all);
  }

  std::mt19937_64 random_;
  const std::vector<Input>& pool_;
};

}  // namespace abtrain::fuzz
