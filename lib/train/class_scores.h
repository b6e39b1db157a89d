// The accuracy of a model on each class of a test set.
#pragma once

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::train {

// Adds class scores to an evaluation, from the answers of evaluate() (N x 3, on the host): "top5",
// if there are more than five classes; "per_class", a list of "class", "name" (if known), "count"
// and "accuracy" (null if count is 0); and, for up to 1,000 classes, "confusion": row i, column j
// counts the examples of class i that were classified as class j.
void add_class_scores(
    nlohmann::ordered_json& evaluation, const at::Tensor& answers, std::int64_t classes,
    const std::vector<std::string>& names);

// The evaluation as readable text: a line of scores and, for a classifier, tables by class (with
// more than 20 classes, the ten worst).
std::string evaluation_text(const nlohmann::ordered_json& evaluation);

}  // namespace abtrain::train
