// An account of a data set for the user: its task, facts about what was read, and doubts about what
// was meant. A run prints it first, and `abtrain plan` shows it, for every kind of data set.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/example_shape.h"

namespace abtrain::data {

// Facts and doubts are sentences for users, without a full stop, and begin with the file or folder
// that they are about.
//   set.account.facts.push_back(formatted("{}: {} was skipped, since ...", root, name));
struct Account {
  std::string task = {};                 // what is to be predicted, from task_of()
  std::vector<std::string> facts = {};   // what was read or left out, and why
  std::vector<std::string> doubts = {};  // what the user may not have intended
};

// Returns a description such as "10 classes: airplane, automobile, bird, ..." or "a regression of 3
// targets". `class_names` may be empty.
std::string task_of(const ExampleShape& shape, const std::vector<std::string>& class_names);

// Adds the classes without training examples to `account`: as a fact if the number of classes is
// `settled`, as a doubt if it was inferred from the labels. `train`, `test`: labels, N, int64.
// `found_in`: the file or folder to name.
void account_for_classes(
    const at::Tensor& train, const at::Tensor& test, std::int64_t classes,
    const std::vector<std::string>& class_names, const std::string& found_in, bool settled,
    Account& account);

// Returns the first `shown` names as text that is safe to print: "a, b, c, ...".
std::string first_of(const std::vector<std::string>& names, std::size_t shown = 5);

}  // namespace abtrain::data
