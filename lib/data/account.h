// The account of a data set: its task, facts of what was read, and doubts. The first lines of a run
// and `abtrain plan` show it, whatever kind of data set it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/example_shape.h"

namespace abtrain::data {

// Facts and doubts are sentences for people, without a full stop. They begin with the file or
// folder that they are about.
//   set.account.facts.push_back(formatted("{}: {} was skipped, since ...", root, name));
struct Account {
  std::string task = {};                 // what is to be predicted, as by task_of()
  std::vector<std::string> facts = {};   // what was read and what was left out, and why
  std::vector<std::string> doubts = {};  // what may not be meant, and which key settles it
};

// "10 classes: airplane, automobile, bird, ...", "a regression of 3 targets" and the like. Names
// may be missing.
std::string task_of(const ExampleShape& shape, const std::vector<std::string>& class_names);

// Adds which classes have no training examples, given the labels (N, int64) of both parts. It is a
// fact if the number of classes is `settled`, and a doubt if it follows from the labels.
void account_for_classes(
    const at::Tensor& train, const at::Tensor& test, std::int64_t classes,
    const std::vector<std::string>& class_names, const std::string& found_in, bool settled,
    Account& account);

// "a, b, c, ...": the first of these names, safe to show.
std::string first_of(const std::vector<std::string>& names, std::size_t shown = 5);

}  // namespace abtrain::data
