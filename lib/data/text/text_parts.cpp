#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "base/text.h"
#include "data/text/text_files.h"

namespace abtrain::data {
namespace {

enum class TextPart { None, Train, Validation, Test };

// The part named by the words of a name such as "tiny_shakespeare_val.bin".
TextPart part_of(const std::string& name) {
  constexpr std::pair<std::string_view, TextPart> kWords[] = {
      {"train", TextPart::Train},           {"training", TextPart::Train},
      {"val", TextPart::Validation},        {"valid", TextPart::Validation},
      {"validation", TextPart::Validation}, {"dev", TextPart::Validation},
      {"eval", TextPart::Validation},       {"test", TextPart::Test}};
  std::set<TextPart> parts;
  std::string word;
  for (const char c : lower_case(name) + ".") {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    for (const auto& [known, part] : kWords) {
      if (word == known) {
        parts.insert(part);
      }
    }
    word.clear();
  }
  return parts.size() == 1 ? *parts.begin() : TextPart::None;
}

std::string names_of(const std::vector<TextFile>& files) {
  return first_of(mapped(files, &TextFile::name));
}

}  // namespace

TextParts parts_of(
    std::vector<TextFile> files, const std::string& folder, TokenType tokens, bool has_test,
    Account& account) {
  std::vector<TextFile> of_part[4];
  for (const TextFile& file : files) {
    of_part[static_cast<std::size_t>(part_of(file.name))].push_back(file);
  }
  auto& [none, train, validation, test] = of_part;
  const auto count = std::ssize(files);
  const auto all = [&] {
    account.facts.push_back(formatted(
        "{}: {} {}: {}", folder, with_commas(count), count == 1 ? "file" : "files",
        names_of(files)));
    return TextParts{std::move(files), {}};
  };
  if (train.empty() || (validation.empty() && test.empty())) {
    return all();
  }
  if (!none.empty()) {
    const std::string doubt = formatted(
        "by their names, {} is for training and {} for the test, but {} says neither; let "
        "data.root and data.test name one file or folder each",
        train.front().name, (validation.empty() ? test : validation).front().name,
        none.front().name);
    ABT_CHECK(tokens == TokenType::Bytes, Config, "data.root: {}: {}", folder, doubt);
    account.doubts.push_back(formatted("{}: all files are one text: {}", folder, doubt));
    return all();
  }
  std::vector<TextFile>& chosen_test = validation.empty() ? test : validation;
  std::vector<TextFile> skipped = validation.empty() ? std::vector<TextFile>() : test;
  if (has_test) {
    std::ranges::move(chosen_test, std::back_inserter(skipped));
    chosen_test.clear();
  }
  account.facts.push_back(formatted(
      "{}: the training text is {}{}", folder, names_of(train),
      chosen_test.empty() ? "" : ", the test text is " + names_of(chosen_test)));
  if (!skipped.empty()) {
    account.facts.push_back(
        formatted("{}: skipped, since there is another test text: {}", folder, names_of(skipped)));
  }
  return {std::move(train), std::move(chosen_test)};
}

}  // namespace abtrain::data
