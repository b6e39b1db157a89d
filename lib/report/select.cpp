#include "report/select.h"

#include <string.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/options_apply.h"
#include "base/text.h"
#include "config/override.h"
#include "config/run_options.h"
#include "report/columns.h"
#include "report/traits.h"

namespace abtrain::report {

std::vector<Condition> read_conditions(const std::vector<std::string>& texts) {
  std::vector<Condition> conditions;
  std::vector<Problem> problems;
  for (const std::string& text : texts) {
    config::RunOptions options;
    const Fields fields = config::fields_of(options);
    ReadResult reading;
    const config::Override given = config::parse_override(text, "--where", reading.problems);
    if (reading.problems.empty()) {
      apply(fields, config::as_section(given), reading);
    }
    std::ranges::copy(reading.problems, std::back_inserter(problems));
    each_key(fields.list(), [&](const std::string& name, const Field& field) {
      if (reading.settings.contains(name)) {
        conditions.push_back({name, field.print()});
      }
    });
  }
  throw_any(problems, ErrorKind::Usage);
  return conditions;
}

void keep_matching(std::vector<RunRecord>& runs, const std::vector<Condition>& where) {
  for (const Condition& wanted : where) {
    std::set<std::string> there;
    const auto is_other = [&](const RunRecord& run) {
      const std::string value = run.value_of(wanted.key);
      there.insert(value);
      return std::ranges::none_of(
          where, [&](const Condition& c) { return c.key == wanted.key && c.value == value; });
    };
    std::erase_if(runs, is_other);
    ABT_CHECK(
        !runs.empty(), MissingInput, "--where {}={}: no run has it; the values there are: {}",
        wanted.key, wanted.value, join({there.begin(), there.end()}, ", "));
  }
}

std::vector<std::string> sort_keys() {
  std::vector<std::string> keys = {"name"};
  std::ranges::transform(all_traits(), std::back_inserter(keys), &Trait::key);
  std::ranges::transform(all_columns(1), std::back_inserter(keys), &Column::key);
  return keys;
}

void sort_settings(Comparison& comparison, const std::string& key) {
  std::vector<Trait> traits = all_traits();
  traits.push_back({.key = "name", .help = {}, .of = [](const Setting& s) { return s.name; }});
  const auto trait = std::ranges::find(traits, key, &Trait::key);
  if (trait != traits.end()) {
    std::ranges::stable_sort(comparison.settings, [&](const Setting& a, const Setting& b) {
      const std::string in_a = trait->of(a);
      const std::string in_b = trait->of(b);
      // Numbers within names compare as numbers: "r4" before "r16".
      return in_a.empty() || in_b.empty() ? in_a.size() > in_b.size()
                                          : ::strverscmp(in_a.c_str(), in_b.c_str()) < 0;
    });
    return;
  }
  const auto columns = all_columns(comparison.target);
  const auto column = std::ranges::find(columns, key, &Column::key);
  ABT_CHECK(column != columns.end(), Usage, "--sort: {} needs a --target", key);
  std::ranges::stable_sort(comparison.settings, {}, [&](const Setting& setting) {
    const auto value = column->figure(setting).value;
    const double sign = column->best == Best::Highest ? -1 : 1;
    return std::pair(!value, sign * value.value_or(0));
  });
}

}  // namespace abtrain::report
