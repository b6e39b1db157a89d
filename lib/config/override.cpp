#include "config/override.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/yaml.h"

namespace abtrain::config {

Override parse_override(
    const std::string& text, const std::string& option, std::vector<Problem>& problems) {
  const Location place{option + " " + text, 0, 0, ""};
  const std::size_t equals = text.find('=');
  const std::string key(trim(text.substr(0, equals)));
  const std::vector<std::string> keys = split_text(key, '.');
  std::string fault;
  if (equals == std::string::npos || std::find(keys.begin(), keys.end(), "") != keys.end()) {
    fault = "expected a.b=value";
  } else if (keys.front() == "extends") {
    fault = "extends: may be used only in a file";
  }
  if (!fault.empty()) {
    problems.push_back({place, "", fault});
    return {};
  }
  return {key, place, parse_yaml(text.substr(equals + 1), place.source, false, problems)};
}

Override literal_override(std::string key, std::string text, const Location& place) {
  Override out{std::move(key), place, {}};
  out.value.kind = Value::Kind::Scalar;
  out.value.text = std::move(text);
  out.value.place = place;
  return out;
}

Value as_section(const Override& override) {
  Value value = override.value;
  const std::vector<std::string> keys = split_text(override.key, '.');
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    Value section;
    section.kind = Value::Kind::Section;
    section.place = override.place;
    section.entries.push_back({*key, override.place, std::move(value)});
    value = std::move(section);
  }
  return value;
}

}  // namespace abtrain::config
