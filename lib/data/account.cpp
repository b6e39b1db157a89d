#include "data/account.h"

#include <algorithm>

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

}  // namespace abtrain::data
