#include "train/class_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/rows.h"
#include "base/text.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMaxInConfusion = 1000;
constexpr std::size_t kMaxInTables = 20;
constexpr std::size_t kWorst = 10;

// "3 cat"
std::string label_of(const ordered_json& row) {
  const std::string name = printable(row.value("name", ""));
  return std::to_string(row.at("class").get<std::int64_t>()) + (name.empty() ? "" : " " + name);
}

std::string class_table(std::vector<ordered_json> rows, const char* examples) {
  const std::size_t all = rows.size();
  if (all > kMaxInTables) {
    std::erase_if(rows, [](const ordered_json& row) { return row.at("accuracy").is_null(); });
    std::ranges::stable_sort(
        rows, {}, [](const ordered_json& row) { return row.at("accuracy").get<double>(); });
    rows.resize(std::min(rows.size(), kWorst));
  }
  std::size_t width = 8;
  for (const ordered_json& row : rows) {
    width = std::max(width, columns_of(label_of(row)) + 2);
  }
  std::string text = formatted("\n{}{:>8}{:>12}\n", pad("class", width), examples, "accuracy");
  for (const ordered_json& row : rows) {
    const ordered_json& accuracy = row.at("accuracy");
    text += formatted(
        "{}{:>8}{:>12}\n", pad(label_of(row), width),
        with_commas(row.at("count").get<std::int64_t>()),
        accuracy.is_null() ? "-" : formatted("{:.2f} %", 100 * accuracy.get<double>()));
  }
  return text + (all > kMaxInTables
                     ? formatted("These are the worst of {} classes; --json has all.\n", all)
                     : "");
}

std::string confusion_table(const std::vector<ordered_json>& classes, const ordered_json& counts) {
  std::size_t width = 16;
  std::size_t column = 3;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    width = std::max(width, columns_of(label_of(classes[i])) + 1);
    for (const ordered_json& count : counts.at(i)) {
      column = std::max(column, count.dump().size());
    }
  }
  std::string text = "\n" + pad("true, predicted", width);
  for (std::size_t j = 0; j < classes.size(); ++j) {
    text += formatted(" {:>{}}", j, column);
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    text += "\n" + pad(label_of(classes[i]), width);
    for (const ordered_json& count : counts.at(i)) {
      text += formatted(" {:>{}}", count.get<std::int64_t>(), column);
    }
  }
  return text + "\n";
}

}  // namespace

void add_class_scores(
    ordered_json& evaluation, const at::Tensor& answers, std::int64_t classes,
    const std::vector<std::string>& names) {
  const at::Tensor label = answers.select(1, 0);
  const at::Tensor taken_for = answers.select(1, 1);
  const at::Tensor count = at::bincount(label, {}, classes);
  const at::Tensor correct = at::bincount(label.masked_select(label.eq(taken_for)), {}, classes);
  if (classes > 5) {
    evaluation["top5"] = answers.select(1, 2).sum().item<double>() /
                         static_cast<double>(std::max<std::int64_t>(1, answers.size(0)));
  }
  ordered_json& rows = evaluation["per_class"] = ordered_json::array();
  for (std::int64_t c = 0; c < classes; ++c) {
    ordered_json row = {{"class", c}};
    if (!names.empty()) {
      row["name"] = names[static_cast<std::size_t>(c)];
    }
    row["count"] = count[c].item<std::int64_t>();
    row["accuracy"] = ratio_or_null(correct[c].item<double>(), count[c].item<double>());
    rows.push_back(row);
  }
  if (classes <= kMaxInConfusion) {
    const at::Tensor pairs =
        at::bincount(label * classes + taken_for, {}, classes * classes).view({classes, classes});
    for (const at::Tensor& row : pairs.unbind()) {
      const auto* of = row.const_data_ptr<std::int64_t>();
      evaluation["confusion"].push_back(std::vector<std::int64_t>(of, of + classes));
    }
  }
}

std::string evaluation_text(const ordered_json& evaluation) {
  const auto number = [&](const char* key) { return evaluation.at(key).get<double>(); };
  std::string text =
      evaluation.contains("r2") ? formatted("R² {:.4f}", number("r2"))
      : evaluation.contains("accuracy")
          ? formatted(
                "accuracy {:.2f} %{}", 100 * number("accuracy"),
                evaluation.contains("top5") ? formatted(", top-5 {:.2f} %", 100 * number("top5"))
                                            : "")
          : formatted(
                "{:.4f} bits per byte, perplexity {:.2f}", number("bits_per_byte"),
                number("perplexity"));
  const char* const examples = evaluation.contains("windows")    ? "windows"
                               : evaluation.contains("examples") ? "examples"
                                                                 : "images";
  const std::int64_t damaged = evaluation.at("damaged_images").at("count");
  text += formatted(
      ", loss {:.4f}: {} {}{}, {}, compression ratio {:.2f}\n", number("loss"),
      with_commas(evaluation.at(examples).get<std::int64_t>()), examples,
      damaged > 0 ? formatted(" ({} damaged ones left out)", damaged) : "",
      printable(evaluation.at("model").get<std::string>()), number("compression_ratio"));
  if (evaluation.contains("per_class")) {
    const auto& classes = evaluation.at("per_class").get_ref<const ordered_json::array_t&>();
    text += class_table(classes, examples);
    if (classes.size() <= kMaxInTables && evaluation.contains("confusion")) {
      text += confusion_table(classes, evaluation.at("confusion"));
    }
  }
  return text;
}

}  // namespace abtrain::train
