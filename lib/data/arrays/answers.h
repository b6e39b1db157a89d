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
  at::Tensor y;              // labels: integers, N or N x T; targets: floating point, N or N x K
  std::int64_t classes = 0;  // the width of one-hot rows, else 0
};

// Interprets `y` as data.task says. `path`: its file. `rows_of_tokens`: the sizes N x T of x if it
// holds tokens, else empty. Throws Error(Config) if the task is auto and floating-point numbers
// look like labels; DamagedData if the task is classes and the numbers are not labels.
Answers answers_of(
    const at::Tensor& y, const std::string& path, Task task, at::IntArrayRef rows_of_tokens);

// Returns the largest of these integers, -1 if all are ignored. Throws DamagedData if one is
// negative or far too large. With `ignores`, kIgnoredLabel is ignored. `what` names the integers in
// the message: "the label".
std::int64_t largest_of(
    const at::Tensor& integers, bool ignores, const std::string& path, const char* what);

// Checks the labels of all parts (training, test), each below `classes`, for classes without names.
// Throws Error(Config) if hardly any class has an example. Adds a doubt if 255 is the largest label
// of tokens in uint8: other programs ignore this label.
void check_labels(
    const std::vector<at::Tensor>& labels, std::int64_t classes, const std::string& path,
    Account& account);

}  // namespace abtrain::data
