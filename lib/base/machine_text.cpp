#include "base/machine_text.h"

#include "base/mapped.h"
#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {

namespace {

bool is_number(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  double ignored = 0;
  return read_number(text, ignored);
}

std::string csv_cell(const std::string& raw) {
  std::string text = printable(raw);
  constexpr std::string_view kFormula = "=+-@";
  if (!text.empty() && kFormula.find(text.front()) != std::string_view::npos && !is_number(text)) {
    text.insert(0, "'");
  }
  if (text.find_first_of(",\"") == std::string::npos) {
    return text;
  }
  return "\"" + replaced(text, "\"", "\"\"") + "\"";
}

}  // namespace

std::string csv_line(const std::vector<std::string>& cells) {
  return join(mapped(cells, csv_cell), ",");
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(
             indent, ' ',
             /*ensure_ascii=*/true, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace abtrain
