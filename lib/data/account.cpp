#include "data/account.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/text.h"

namespace abtrain::data {

std::string first_of(const std::vector<std::string>& names, std::size_t shown) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(names.size(), shown));
  const std::string some = printable(join({names.begin(), names.begin() + count}, ", "));
  return names.size() > shown ? some + ", ..." : some;
}

std::string task_of(const ExampleShape& shape, const std::vector<std::string>& class_names) {
  const std::string count = with_commas(shape.classes);
  const bool one = shape.classes == 1;
  const std::string named = class_names.empty() ? "" : ": " + first_of(class_names);
  if (shape.regression) {
    return formatted("a regression of {} {}{}", count, one ? "target" : "targets", named);
  }
  if (shape.context > 0 && shape.sizes.empty()) {
    return formatted("the next token, one of {}", count);
  }
  const std::string numbers = one ? ": 0" : formatted(": 0 .. {}", with_commas(shape.classes - 1));
  const std::string classes =
      formatted("{} {}{}", count, one ? "class" : "classes", named.empty() ? numbers : named);
  return shape.context > 0 && shape.token_labels ? "a label for each token: " + classes : classes;
}

void account_for_classes(
    const at::Tensor& train, const at::Tensor& test, std::int64_t classes,
    const std::vector<std::string>& class_names, const std::string& found_in, bool settled,
    Account& account) {
  const auto counts_of = [&](const at::Tensor& labels) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
    const auto* label = labels.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < labels.numel(); ++i) {
      ++counts[static_cast<std::size_t>(label[i])];
    }
    return counts;
  };
  const std::vector<std::int64_t> in_train = counts_of(train), in_test = counts_of(test);
  std::vector<std::string> nowhere, only_in_test;
  std::int64_t tested = 0;
  for (std::size_t i = 0; i < in_train.size(); ++i) {
    if (in_train[i] == 0) {
      (in_test[i] == 0 ? nowhere : only_in_test)
          .push_back(class_names.empty() ? std::to_string(i) : class_names[i]);
      tested += in_test[i];
    }
  }
  std::vector<std::string>& out = settled ? account.facts : account.doubts;
  const char* remedy =
      settled ? ""
              : "; if this is not meant, renumber the labels from 0 without gaps "
                "(numpy.unique(y, return_inverse=True)[1]), else say so by data.task: classes";
  const auto named = [](const std::vector<std::string>& names) {
    return formatted("{} {}", names.size() == 1 ? "label" : "labels", first_of(names, 10));
  };
  if (!only_in_test.empty()) {
    out.push_back(formatted(
        "{}: no training example has the {}, but {} test {}{}", found_in, named(only_in_test),
        with_commas(tested), tested == 1 ? "example has" : "examples have", remedy));
  }
  if (!nowhere.empty()) {
    out.push_back(formatted(
        "{}: no example has the {}, so that {} of the {} classes {} empty{}{}", found_in,
        named(nowhere), with_commas(std::ssize(nowhere)), with_commas(classes),
        nowhere.size() == 1 ? "is" : "are",
        !settled && classes == 256
            ? ", and 255 may mark what is to be ignored: leave such examples out"
            : "",
        remedy));
  }
}

}  // namespace abtrain::data
