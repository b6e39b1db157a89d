// Reads the y of a user's arrays as class labels or as numbers to predict.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "data/account.h"
#include "data/data_options.h"

namespace abtrain::data {

struct Answers {
  at::Tensor y;              // labels as integers of any type, N or N x T; or N or N x K numbers
  std::int64_t classes = 0;  // the width of one-hot rows
};

// Interprets `y` as data.task says. `path`: its file. `rows_of_tokens`: the sizes N x T of x, else
// empty. Throws Error(Config) if the task is auto and floating-point numbers look like labels;
// DamagedData if they should be labels but are not.
Answers answers_of(
    const at::Tensor& y, const std::string& path, Task task, at::IntArrayRef rows_of_tokens);

// The largest of these integers, -1 if none counts. They must be 0 or more; with `ignores`,
// kIgnoredLabel is allowed and does not count. `what` is for the message: "the label". Throws
// DamagedData.
std::int64_t largest_of(
    const at::Tensor& integers, bool ignores, const std::string& path, const char* what);

// Checks the labels of all parts, which must be below `classes`, if the classes have no names.
// Throws Error(Config) if hardly any class has an example. Adds a doubt if tokens have a label that
// other programs ignore.
void check_labels(
    const std::vector<at::Tensor>& labels, std::int64_t classes, const std::string& path,
    Account& account);

}  // namespace abtrain::data
