// How a model does on each class of a test set.
#pragma once

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::train {

// Adds to an evaluation, by the answers of evaluate() (N x 3, on the host):
// "top5", if there are more than five classes; "per_class", a list of "class",
// "name" (if known), "count" and "accuracy" (null if count is 0); and
// "confusion", for up to 1,000 classes: in row i, column j, how many examples of
// class i were taken for class j.
void add_class_scores(
    nlohmann::ordered_json& evaluation, const at::Tensor& answers, std::int64_t classes,
    const std::vector<std::string>& names);

// The evaluation for people: a line with the scores, and, for classes, tables by
// class; of more than 20 classes, the ten worst.
std::string evaluation_text(const nlohmann::ordered_json& evaluation);

}  // namespace abtrain::train
