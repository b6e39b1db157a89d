#include "data/arrays/array_set.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/conflict.h"
#include "base/error.h"
#include "base/files.h"
#include "base/mapped.h"
#include "base/scalars.h"
#include "data/arrays/answers.h"
#include "data/arrays/array_file.h"
#include "data/arrays/finite.h"
#include "data/images/float_images.h"
#include "device/tensor_text.h"
#include "state/safetensors_header.h"

namespace abtrain::data {
namespace {

struct ArrayPart {
  std::string x_path, y_path;
  at::Tensor x, y;
  std::vector<std::string> class_names = {};
  std::int64_t classes = 0;  // a lower bound: the width of one-hot rows, else 0
};

bool is_tokens(const at::Tensor& x) {
  return x.scalar_type() != at::kByte && c10::isIntegralType(x.scalar_type(), false);
}

std::string described(const at::Tensor& tensor) {
  return formatted("{} {}", tensor.scalar_type(), tensor.sizes());
}

// Returns nullopt if the folder does not hold the part.
std::optional<ArrayPart> find_array_part(const std::string& folder, const std::string& part) {
  const std::string both = formatted("{}/{}.safetensors", folder, part);
  const std::string x = formatted("{}/{}_x.npy", folder, part);
  const std::string y = formatted("{}/{}_y.npy", folder, part);
  ABT_CHECK(
      !is_there(both) || !is_there(x), DamagedData,
      "{}: there is {}_x.npy beside it; expected only one of them", both, part);
  if (is_there(both)) {
    constexpr const char* kExpected = "the tensors x and y";
    return ArrayPart{
        .x_path = both,
        .y_path = both,
        .x = map_array(both, "x", kExpected),
        .y = map_array(both, "y", kExpected),
        .class_names = class_names_in(both)};
  }
  for (const auto& [here, there] : {std::pair{&x, &y}, std::pair{&y, &x}}) {
    ABT_CHECK(
        !is_there(*here) || is_there(*there), MissingInput, "{}: no such file, but {} needs it",
        *there, *here);
  }
  if (!is_there(x)) {
    return std::nullopt;
  }
  return ArrayPart{
      .x_path = x, .y_path = y, .x = map_array(x, "x", ""), .y = map_array(y, "y", "")};
}

void check_array_part(const ArrayPart& part) {
  const at::Tensor &x = part.x, &y = part.y;
  ABT_CHECK(
      x.dim() >= 1 && x.numel() > 0, DamagedData, "{}: expected examples x, N x anything, found {}",
      part.x_path, x.sizes());
  const bool tokens = is_tokens(x);
  ABT_CHECK(
      tokens || x.scalar_type() == at::kByte || x.is_floating_point(), DamagedData,
      "{}: expected x of uint8 or floating-point values, or of int64 or int32 tokens, found {}",
      part.x_path, x.scalar_type());
  ABT_CHECK(
      !tokens || x.dim() == 2, DamagedData,
      "{}: integers other than uint8 are tokens, N x T, but x is {}; values must be uint8 or "
      "floating point",
      part.x_path, x.sizes());
  ABT_CHECK(
      y.dim() >= 1 && y.size(0) == x.size(0), DamagedData,
      "{}: expected y for each of the {} examples of x, found {}", part.y_path,
      with_commas(x.size(0)), y.sizes());
}

// Converts y to labels or targets, and checks that its shape fits x.
void settle_answers(ArrayPart& part, Task task) {
  const at::Tensor& x = part.x;
  at::Tensor& y = part.y;
  const bool tokens = is_tokens(x);
  Answers answers = answers_of(y, part.y_path, task, tokens ? x.sizes() : at::IntArrayRef());
  y = std::move(answers.y);
  part.classes = answers.classes;
  const bool fits = y.is_floating_point() ? y.dim() <= 2 && y.numel() > 0
                                          : y.dim() == 1 || (tokens && y.sizes() == x.sizes());
  ABT_CHECK(
      fits, DamagedData,
      "{}: expected y of N integer labels{}, or of N or N x K floating-point targets, for x of "
      "{}, found {}{}",
      part.y_path, tokens ? " or N x T of them" : "", x.sizes(), described(y),
      y.dim() == 2 && task == Task::Auto
          ? "; data.task: classes takes one-hot rows, and regression takes integers as numbers"
          : "");
}

void check_same_kind(const ArrayPart& train, const ArrayPart& test) {
  const auto check = [](const std::string& path, const char* name, const at::Tensor& of_train,
                        const at::Tensor& of_test) {
    ABT_CHECK(
        of_train.scalar_type() == of_test.scalar_type() &&
            of_train.sizes().slice(1) == of_test.sizes().slice(1),
        DamagedData,
        "{}: expected {} with the dtype and the shape per example of the training set, {}; found "
        "{}",
        path, name, described(of_train), described(of_test));
  };
  check(test.x_path, "x", train.x, test.x);
  check(test.y_path, "y", train.y, test.y);
}

// Converts the sizes of an example to channels, height and width.
std::vector<std::int64_t> canonical(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() == 3) {
    return sizes;
  }
  if (sizes.size() == 2) {
    return {1, sizes[0], sizes[1]};
  }
  return {1, 1, c10::multiply_integers(sizes)};
}

// The sizes of one example of x, as in the file.
std::vector<std::int64_t> sizes_of_each(const at::Tensor& x) {
  return x.dim() == 1 ? std::vector<std::int64_t>{1} : x.sizes().slice(1).vec();
}

void check_array_options(const DataOptions& o, const Dataset& set) {
  const auto refuse = [&](bool given, const char* key) {
    if (given) {
      throw ConflictError(
          {{key, "data.name"},
           formatted(
               "the examples of {} are {}, not images; expected the default, which does nothing",
               set.found_in,
               set.context > 0
                   ? formatted("rows of {} tokens", set.context)
                   : formatted("numbers in the form {}", state::shape_text(set.sizes)))});
    }
  };
  const bool tokens = set.context > 0;
  if (tokens || set.sizes.size() < 2 || set.sizes.size() > 3) {
    refuse(o.augment != AugmentName::None, "data.augment");
    refuse(o.erase > 0, "data.erase");
    refuse(o.pool > 0, "data.pool");
  }
  refuse(tokens && o.standardize, "data.standardize");
  refuse(tokens && !o.mean.empty(), "data.mean");
  refuse(tokens && !o.std.empty(), "data.std");
}

// Makes examples of an x that holds values, not tokens.
Examples images_in(const at::Tensor& x, const at::Tensor& labels, const at::Tensor& targets) {
  std::vector<std::int64_t> sizes = canonical(sizes_of_each(x));
  sizes.insert(sizes.begin(), x.size(0));
  const at::Tensor values = x.view(sizes);
  if (x.scalar_type() == at::kByte) {
    return ByteImages{values, labels, targets};
  }
  return FloatImages{values, labels, targets, at::arange(x.size(0), at::kLong)};
}

Examples examples_in(const ArrayPart& part, const Dataset& set) {
  const at::Tensor &x = part.x, &y = part.y;
  const std::int64_t count = x.size(0);
  if (set.context > 0) {
    return token_rows(x, y);
  }
  at::Tensor labels, targets;
  if (set.regression) {
    targets = y.reshape({count, -1}).to(at::kFloat).contiguous();
    labels = at::zeros({count}, at::kLong);
  } else {
    labels = y.to(at::kLong).contiguous();
  }
  return images_in(x, labels, targets);
}

std::string files_fact(
    const std::vector<ArrayPart>& parts, const DataOptions& options, const std::string& folder) {
  std::vector<std::string> files;
  for (const ArrayPart& part : parts) {
    for (const std::string& path : {part.x_path, part.y_path}) {
      files.push_back(std::filesystem::path(path).filename().string());
    }
  }
  files.erase(std::ranges::unique(files).begin(), files.end());
  return formatted(
      "{}: {}; x is {}, y is {}{}", folder, listed(files), described(parts.front().x),
      described(parts.front().y),
      parts.size() > 1 ? ""
                       : formatted(
                             "; there is no test part, so that {} of the examples are the test set "
                             "(data.test_share)",
                             print_number(options.test_share)));
}

void check_values(
    const std::vector<ArrayPart>& parts, const DataOptions& options, Account& account) {
  double largest = 0;
  for (const ArrayPart& part : parts) {
    largest = std::max(largest, largest_magnitude(part.x, part.x_path, "x"));
  }
  constexpr double kLarge = 1000;  // larger than any byte, and than values in most units
  if (largest > kLarge && !options.standardize && options.std.empty()) {
    account.doubts.push_back(formatted(
        "{}: the network gets values of up to {:.3g} as they are; data.standardize: true brings "
        "them to about 1",
        parts.front().x_path, largest));
  }
}

void doubt_rows_without_labels(Dataset& set, const std::string& path) {
  const at::Tensor counted = set.train.counted_labels();
  const std::int64_t empty = counted.defined() ? counted.eq(0).sum().item<std::int64_t>() : 0;
  if (empty > 0) {
    set.account.doubts.push_back(formatted(
        "{}: all labels of {} of the {} training examples are {} and do not count: nothing is "
        "learned from these examples",
        path, with_commas(empty), with_commas(counted.size(0)), kIgnoredLabel));
  }
}

void doubt_channels(Dataset& set) {
  if (set.sizes.size() == 3 && set.sizes[2] <= 4 && set.sizes[0] > 4) {
    set.account.doubts.push_back(formatted(
        "{}: examples of {} x {} x {} are taken for {} channels of {} x {} pixels; if the channels "
        "come last, save numpy.moveaxis(x, -1, 1)",
        set.found_in, set.sizes[0], set.sizes[1], set.sizes[2], set.sizes[0], set.sizes[1],
        set.sizes[2]));
  }
}

}  // namespace

Dataset open_arrays(const DataOptions& options, const std::string& folder, bool reads_values) {
  const auto check_there = [&](bool there, const char* fault) {
    const DatasetPlace place = find_dataset(options.name);
    ABT_CHECK(
        there, MissingInput, "data.root: {} {}.\nIt should hold {}.\nExpected layout:\n  {}",
        folder, fault, place.how_to_get, join(split_text(place.layout, '\n'), "\n  "));
  };
  check_there(std::filesystem::is_directory(folder), "is not a folder");
  std::vector<ArrayPart> parts;
  for (const char* name : {"train", "test"}) {
    if (auto part = find_array_part(folder, name)) {
      check_array_part(*part);
      parts.push_back(std::move(*part));
    }
    check_there(!parts.empty(), "holds no training arrays");
  }
  if (parts.size() > 1) {
    check_same_kind(parts[0], parts[1]);
  }
  const at::Tensor& x = parts.front().x;
  const at::Tensor& y = parts.front().y;
  Dataset out;
  out.account.facts.push_back(files_fact(parts, options, folder));
  Task task = options.task;
  for (ArrayPart& part : parts) {
    settle_answers(part, task);
    // The training set decides: the few targets of a small test set may look like labels.
    task = y.is_floating_point() ? Task::Regression : task;
  }
  out.name = options.name;
  out.found_in = folder;
  out.sizes = out.file_sizes = sizes_of_each(x);
  out.regression = y.is_floating_point();
  out.token_labels = !is_tokens(x) || (!out.regression && y.dim() == 2);
  out.class_names = parts.front().class_names;
  out.of_bytes = x.scalar_type() == at::kByte;
  if (is_tokens(x)) {
    out.context = x.size(1);
    out.vocabulary = options.vocabulary.value_or(0);
  } else {
    const std::vector<std::int64_t> form = canonical(out.sizes);
    out.channels = form[0];
    out.height = form[1];
    out.width = form[2];
  }
  check_array_options(options, out);
  const auto names = std::ssize(out.class_names);
  for (const ArrayPart& part : parts) {
    if (is_tokens(x)) {
      const std::int64_t largest = largest_of(part.x, false, part.x_path, "a token");
      ABT_CHECK(
          !options.vocabulary || largest < *options.vocabulary, DamagedData,
          "{}: expected tokens below the {} of data.vocabulary, found {}", part.x_path,
          *options.vocabulary, largest);
      out.vocabulary = std::max(out.vocabulary, largest + 1);
    }
    if (out.regression) {
      out.classes = y.dim() == 2 ? y.size(1) : 1;
      ABT_CHECK(
          names == 0 || names == out.classes, DamagedData,
          "{}: expected names of {} targets, found {}", part.y_path, out.classes, names);
      largest_magnitude(part.y, part.y_path, "y");
    } else {
      const bool ignores = part.y.dim() == 2;
      const std::int64_t largest = largest_of(part.y, ignores, part.y_path, "the label");
      ABT_CHECK(
          largest >= 0, DamagedData, "{}: expected labels, found only {}", part.y_path,
          kIgnoredLabel);
      ABT_CHECK(
          names == 0 || largest < names, DamagedData,
          "{}: {} names {} classes, but the largest label is {}", part.y_path, parts.front().y_path,
          names, largest);
      out.classes = std::max({out.classes, part.classes, largest + 1, names});
    }
  }
  if (!out.regression && options.task == Task::Auto && names == 0) {
    check_labels(
        mapped(parts, [](const ArrayPart& part) { return part.y; }), out.classes,
        parts.front().y_path, out.account);
  }
  doubt_channels(out);
  if (reads_values && x.is_floating_point()) {
    check_values(parts, options, out.account);
  }
  out.train = examples_in(parts.front(), out);
  out.ignores_labels = out.train.counted_labels().defined();
  doubt_rows_without_labels(out, parts.front().y_path);
  if (parts.size() > 1) {
    out.test = examples_in(parts.back(), out);
    return out;
  }
  const std::int64_t count = out.train.size();
  ABT_CHECK(
      count > 1, DamagedData, "{}: expected at least two examples, one of them for the test set",
      parts.front().x_path);
  const auto share = std::llround(options.test_share * static_cast<double>(count));
  out.test = hold_out(out.train, std::clamp<std::int64_t>(share, 1, count - 1), kSplitSeed);
  return out;
}

Examples further_examples(
    const at::Tensor& x, const std::string& path, const Dataset& set, const DataOptions& options) {
  const bool tokens = set.context > 0;
  ABT_CHECK(
      x.dim() >= 1 && x.numel() > 0 && sizes_of_each(x) == set.file_sizes &&
          tokens == is_tokens(x) &&
          (tokens || (set.of_bytes ? x.scalar_type() == at::kByte : x.is_floating_point())),
      DamagedData, "{}: expected N x {} {}, as in {}, found {}", path,
      state::shape_text(set.file_sizes),
      tokens         ? "tokens"
      : set.of_bytes ? "bytes"
                     : "floating-point values",
      set.found_in, described(x));
  const at::Tensor places = at::arange(x.size(0), at::kLong);
  if (tokens) {
    const std::int64_t largest = largest_of(x, false, path, "a token");
    ABT_CHECK(
        largest < set.vocabulary, DamagedData, "{}: expected tokens below {}, found {}", path,
        set.vocabulary, largest);
    return token_rows(x, places);
  }
  if (x.is_floating_point()) {
    largest_magnitude(x, path, "x");
  }
  const Examples all = images_in(x, places, {});
  return set.norm.mean.defined() ? as_floats(all, options.pool) : all;
}

}  // namespace abtrain::data
