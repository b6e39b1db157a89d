#include "data/text/text_set.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/mapped.h"
#include "base/scalars.h"
#include "data/text/text_files.h"
#include "data/text/tokens.h"

namespace abtrain::data {
namespace {

void check_window(
    const Examples& windows, const char* part, const std::string& path, std::int64_t tokens,
    std::int64_t context, const std::string& because = "") {
  ABT_CHECK(
      windows.size() > 0, Config,
      "data.context: a window takes {} tokens and the one after them, but the "
      "{} part of {} has only {}{}",
      with_commas(context), part, path, with_commas(tokens), because);
}

}  // namespace

TextWindows windows_of(
    std::shared_ptr<const Tokens> text, std::int64_t begin, std::int64_t end,
    std::int64_t context) {
  const std::int64_t count = std::max<std::int64_t>(0, end - begin - 1) / context;
  return {std::move(text), at::arange(begin, begin + count * context, context, at::kLong)};
}

Dataset open_text(const DataOptions& options, const std::string& path, Log* log) {
  Dataset out;
  out.name = options.name;
  out.found_in = path;
  out.classes = vocabulary_of(options);
  out.context = options.context;
  const auto files = [&](const std::string& from) {
    return text_files(from, options.tokens, log, out.account);
  };
  const auto open = [&](const std::vector<TextFile>& from) {
    return std::make_shared<const Tokens>(from, options.tokens, out.classes);
  };
  TextParts parts{files(path), {}};
  if (std::filesystem::is_directory(path)) {
    parts = parts_of(
        std::move(parts.train), path, options.tokens, options.test.has_value(), out.account);
  }
  std::string test_path = path;
  if (options.test) {
    test_path = *options.test;
    parts.test = files(test_path);
    const auto real = [](const TextFile& file) { return real_path(file.path).string(); };
    const std::vector<std::string> tests = mapped(parts.test, real);
    const std::set<std::string> tested(tests.begin(), tests.end());
    std::erase_if(parts.train, [&](const TextFile& file) { return tested.contains(real(file)); });
    ABT_CHECK(
        !parts.train.empty(), Config, "data.test: {} has all files of data.root {}", test_path,
        path);
    out.account.facts.push_back(formatted("{}: the test text (data.test)", test_path));
  }
  const auto text = open(parts.train);
  std::int64_t end = text->size();
  if (!parts.test.empty()) {
    const auto test = open(parts.test);
    out.test = windows_of(test, 0, test->size(), options.context);
    check_window(out.test, "test", test_path, test->size(), options.context);
  } else {
    const auto tail = std::llround(options.test_share * static_cast<double>(text->size()));
    end -= tail;
    out.test = windows_of(text, end, text->size(), options.context);
    check_window(
        out.test, "test", path, tail, options.context,
        formatted(
            ", which is data.test_share, {}, of its {}", print_number(options.test_share),
            with_commas(text->size())));
  }
  out.train = windows_of(text, 0, end, options.context);
  check_window(out.train, "training", path, end, options.context);
  return out;
}

Batch text_batch(
    const TextWindows& windows, std::span<const std::int64_t> indices, std::int64_t context) {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, context}, at::kLong), at::empty({count, context}, at::kLong)};
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* labels = batch.labels.data_ptr<std::int64_t>();
  const auto* places = windows.places.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> window(static_cast<std::size_t>(context) + 1);
  for (const std::int64_t index : indices) {
    windows.text->read(places[index], window);
    inputs = std::copy(window.begin(), window.end() - 1, inputs);
    labels = std::copy(window.begin() + 1, window.end(), labels);
  }
  return batch;
}

}  // namespace abtrain::data
