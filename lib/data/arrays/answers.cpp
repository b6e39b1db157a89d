#include "data/arrays/answers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/logical_or.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/conflict.h"
#include "base/error.h"
#include "data/batch.h"
#include "device/tensor_text.h"

namespace abtrain::data {
namespace {

// More classes or tokens than any model has; a larger number is not a label.
constexpr std::int64_t kMaxClasses = 100'000'000;
constexpr std::int64_t kAnswersAtOnce = std::int64_t{1} << 20;  // elements converted at a time

// Converts the elements to `type` piece by piece and calls take(index of the piece's first element,
// values), until take() returns false.
template <class T>
void each_of(const at::Tensor& tensor, at::ScalarType type, const auto& take) {
  std::int64_t first = 0;
  for (const at::Tensor& piece : tensor.flatten().split(kAnswersAtOnce)) {
    const at::Tensor wide = piece.to(type).contiguous();
    if (!take(first, std::span(wide.const_data_ptr<T>(), static_cast<std::size_t>(wide.numel())))) {
      return;
    }
    first += wide.numel();
  }
}

// True for whole numbers in the range of class labels, each occurring twice or more on average.
bool look_like_labels(const at::Tensor& y) {
  constexpr double kMax = 65'535;
  std::vector<bool> seen(static_cast<std::size_t>(kMax) + 2);  // -1, 0, ...
  bool do_look = true;
  each_of<double>(y, at::kDouble, [&](std::int64_t, std::span<const double> values) {
    for (const double value : values) {
      do_look = do_look && value >= -1 && value <= kMax && value == std::floor(value);
      if (!do_look) {
        return false;
      }
      seen[static_cast<std::size_t>(value + 1)] = true;
    }
    return true;
  });
  return do_look && 2 * std::ranges::count(seen, true) <= y.numel();
}

enum class Rows { Numbers, ZerosAndOnes, OneHot };

Rows rows_of(const at::Tensor& y) {
  Rows rows = Rows::OneHot;
  for (const at::Tensor& piece : y.split(std::max<std::int64_t>(1, kAnswersAtOnce / y.size(1)))) {
    const at::Tensor ones = at::eq(piece, 1);
    if (!at::logical_or(ones, at::eq(piece, 0)).all().item<bool>()) {
      return Rows::Numbers;
    }
    if (!at::eq(ones.sum(1), 1).all().item<bool>()) {
      rows = Rows::ZerosAndOnes;
    }
  }
  return rows;
}

// Returns why the numbers may not be targets of a regression, such as "look like one-hot labels";
// "" if there is no doubt.
std::string doubt_of(const at::Tensor& y, bool per_token) {
  if (y.dim() == 1 || y.size(1) == 1 || per_token) {
    return look_like_labels(y) ? "look like class labels (whole numbers)" : "";
  }
  const Rows rows = rows_of(y);
  return rows == Rows::OneHot ? "look like one-hot labels"
         : rows == Rows::ZerosAndOnes
             ? "look like multi-label rows (zeros and ones), for which the only loss here is a "
               "regression's mean squared error"
             : "";
}

// Converts floating-point labels to int64. Throws DamagedData if one is not a whole number.
at::Tensor whole_numbers(const at::Tensor& y, const std::string& path) {
  each_of<double>(y, at::kDouble, [&](std::int64_t first, std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      ABT_CHECK(
          std::abs(values[i]) < static_cast<double>(kMaxClasses) &&
              values[i] == std::floor(values[i]),
          DamagedData, "{}: the label of example {}: expected a whole number, found {}", path,
          (first + static_cast<std::int64_t>(i)) / (y.numel() / y.size(0)), values[i]);
    }
    return true;
  });
  return y.to(at::kLong);
}

Answers classes_of(const at::Tensor& y, const std::string& path, bool per_token) {
  const bool in_columns = y.dim() == 2 && !per_token;
  if (in_columns && y.size(1) > 1) {
    ABT_CHECK(
        rows_of(y) == Rows::OneHot, DamagedData,
        "{}: expected N labels or N one-hot rows for data.task: classes, found {} {} with "
        "other values",
        path, y.scalar_type(), y.sizes());
    return {at::argmax(at::eq(y, 1).to(at::kByte), 1), y.size(1)};  // y may have any dtype
  }
  const at::Tensor labels = in_columns ? y.flatten() : y;
  return {y.is_floating_point() ? whole_numbers(labels, path) : labels};
}

}  // namespace

Answers answers_of(
    const at::Tensor& y, const std::string& path, Task task, at::IntArrayRef rows_of_tokens) {
  if (y.dim() > 2 || y.dim() == 0 || y.numel() == 0) {
    return {y};  // neither labels nor targets: the caller throws
  }
  const bool per_token = !rows_of_tokens.empty() && y.sizes() == rows_of_tokens;
  if (task == Task::Classes) {
    return classes_of(y, path, per_token);
  }
  if (task == Task::Regression) {
    return {y.is_floating_point() ? y : y.to(at::kFloat)};
  }
  if (y.is_floating_point()) {
    const std::string doubt = doubt_of(y, per_token);
    if (!doubt.empty()) {
      throw ConflictError(
          {{"data.task"},
           formatted(
               "the values of y in {} ({} {}) {}; expected classes or regression, got auto", path,
               y.scalar_type(), y.sizes(), doubt)});
    }
  }
  return {y};
}

std::int64_t largest_of(
    const at::Tensor& integers, bool ignores, const std::string& path, const char* what) {
  std::int64_t largest = -1;
  const std::int64_t in_row = integers.numel() / integers.size(0);
  each_of<std::int64_t>(
      integers, at::kLong, [&](std::int64_t first, std::span<const std::int64_t> values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (ignores && values[i] == kIgnoredLabel) {
            continue;
          }
          ABT_CHECK(
              values[i] >= 0 && values[i] < kMaxClasses, DamagedData,
              "{}: {} of example {}: expected 0 .. {}, found {}{}", path, what,
              (first + static_cast<std::int64_t>(i)) / in_row, with_commas(kMaxClasses - 1),
              values[i],
              values[i] == kIgnoredLabel ? "; leave out examples that do not count" : "");
          largest = std::max(largest, values[i]);
        }
        return true;
      });
  return largest;
}

void check_labels(
    const std::vector<at::Tensor>& labels, std::int64_t classes, const std::string& path,
    Account& account) {
  constexpr std::int64_t kIgnoredByOthers = 255;
  const bool may_ignore = classes == kIgnoredByOthers + 1;
  if (labels[0].dim() == 2) {  // not every class need occur among per-token labels
    if (may_ignore && labels[0].scalar_type() == at::kByte) {
      account.doubts.push_back(formatted(
          "{}: label 255 is read as a class. To exclude labels from the loss, write {} in a wider "
          "integer type; to confirm that 255 is a class, set data.task: classes",
          path, kIgnoredLabel));
    }
    return;
  }
  constexpr std::int64_t kSparse = 10;  // allowed number of classes per class with examples
  std::vector<bool> seen(static_cast<std::size_t>(classes));
  for (const at::Tensor& part : labels) {
    each_of<std::int64_t>(part, at::kLong, [&](std::int64_t, std::span<const std::int64_t> values) {
      for (const std::int64_t value : values) {
        seen[static_cast<std::size_t>(value)] = true;
      }
      return true;
    });
  }
  const std::int64_t used = std::ranges::count(seen, true);
  if (used * kSparse >= classes) {
    return;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) {
      names.push_back(std::to_string(i));
    }
  }
  throw ConflictError(
      {{"data.task"},
       formatted(
           "the labels of {} imply {} classes, but only {} of them {} examples ({}); {}expected "
           "labels 0 .. {} (numpy.unique(y, return_inverse=True)[1] renumbers them), classes if "
           "there are {} classes, or regression if the labels are values to predict; got auto",
           path, with_commas(classes), with_commas(used), used == 1 ? "has" : "have",
           first_of(names),
           may_ignore ? "remove examples labeled 255 if that means \"ignore\"; " : "", used - 1,
           with_commas(classes))});
}

}  // namespace abtrain::data
