#include "train/class_scores.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/rows.h"
#include "base/text.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostInConfusion = 1000;
constexpr std::size_t kMostInTables = 20;
constexpr std::size_t kWorst = 10;

// "3 cat"
std::string label_of(const ordered_json& row) {
  const std::string name = printable(row.value("name", ""));
  return std::to_string(row.at("class").get<std::int64_t>()) + (name.empty() ? "" : " " + name);
}

std::string class_table(std::vector<ordered_json> rows) {
  const std::size_t all = rows.size();
  if (all > kMostInTables) {
    std::erase_if(rows, [](const ordered_json& row) { return row.at("accuracy").is_null(); });
    std::ranges::stable_sort(
        rows, {}, [](const ordered_json& row) { return row.at("accuracy").get<double>(); });
    rows.resize(std::min(rows.size(), kWorst));
  }
  std::size_t width = 8;
  for (const ordered_json& row : rows) {
    width = std::max(width, label_of(row).size() + 2);
  }
  std::string text = formatted("\n{}{:>8}{:>12}\n", pad("class", width), "images", "accuracy");
  for (const ordered_json& row : rows) {
    const ordered_json& accuracy = row.at("accuracy");
    text += formatted(
        "{}{:>8}{:>12}\n", pad(label_of(row), width),
        with_commas(row.at("count").get<std::int64_t>()),
        accuracy.is_null() ? "-" : formatted("{:.2f} %", 100 * accuracy.get<double>()));
  }
  return text + (all > kMostInTables
                     ? formatted("These are the worst of {} classes; --json has all.\n", all)
                     : "");
}

std::string confusion_table(const std::vector<ordered_json>& classes, const ordered_json& counts) {
  std::size_t width = 16;
  std::size_t column = 3;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    width = std::max(width, label_of(classes[i]).size() + 1);
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
  const auto size = static_cast<std::size_t>(classes);
  std::vector<std::int64_t> count(size);
  std::vector<std::int64_t> correct(size);
  std::vector<std::vector<std::int64_t>> confusion(
      classes <= kMostInConfusion ? size : 0, std::vector<std::int64_t>(size));
  std::int64_t among_five = 0;
  const auto* answer = answers.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < answers.size(0); ++i, answer += 3) {
    const auto label = static_cast<std::size_t>(answer[0]);
    const auto taken_for = static_cast<std::size_t>(answer[1]);
    ++count[label];
    correct[label] += label == taken_for ? 1 : 0;
    among_five += answer[2];
    if (!confusion.empty()) {
      ++confusion[label][taken_for];
    }
  }
  if (classes > 5) {
    evaluation["top5"] = static_cast<double>(among_five) /
                         static_cast<double>(std::max<std::int64_t>(1, answers.size(0)));
  }
  ordered_json& rows = evaluation["per_class"] = ordered_json::array();
  for (std::size_t c = 0; c < size; ++c) {
    ordered_json row = {{"class", c}};
    if (!names.empty()) {
      row["name"] = names[c];
    }
    row["count"] = count[c];
    row["accuracy"] = ratio_or_null(static_cast<double>(correct[c]), static_cast<double>(count[c]));
    rows.push_back(row);
  }
  if (!confusion.empty()) {
    evaluation["confusion"] = confusion;
  }
}

std::string evaluation_text(const ordered_json& evaluation) {
  const auto number = [&](const char* key) { return evaluation.at(key).get<double>(); };
  std::string text =
      evaluation.contains("r2") ? formatted("R2 {:.4f}", number("r2"))
      : evaluation.contains("accuracy")
          ? formatted(
                "accuracy {:.2f} %{}", 100 * number("accuracy"),
                evaluation.contains("top5") ? formatted(", top-5 {:.2f} %", 100 * number("top5"))
                                            : "")
          : formatted(
                "{:.4f} bits per byte, perplexity {:.2f}", number("bits_per_byte"),
                number("perplexity"));
  const bool is_text = evaluation.contains("windows");
  const std::int64_t damaged = evaluation.at("damaged_images").at("count");
  text += formatted(
      ", loss {:.4f}: {} {}{}, {}, compression ratio {:.2f}\n", number("loss"),
      with_commas(evaluation.at(is_text ? "windows" : "images").get<std::int64_t>()),
      is_text ? "windows" : "images",
      damaged > 0 ? formatted(" ({} damaged ones left out)", damaged) : "",
      printable(evaluation.at("model").get<std::string>()), number("compression_ratio"));
  if (evaluation.contains("per_class")) {
    const auto& classes = evaluation.at("per_class").get_ref<const ordered_json::array_t&>();
    text += class_table(classes);
    if (classes.size() <= kMostInTables && evaluation.contains("confusion")) {
      text += confusion_table(classes, evaluation.at("confusion"));
    }
  }
  return text;
}

}  // namespace abtrain::train
