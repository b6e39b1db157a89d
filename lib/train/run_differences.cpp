#include "train/run_differences.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "base/options_apply.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/config.h"

namespace abtrain::train {

namespace {

struct Setting {
  std::string value;
  MayChange may_change;
};

std::map<std::string, Setting> flatten(config::RunOptions options) {
  std::map<std::string, Setting> all;
  each_key(config::fields_of(options).list(), [&](const std::string& key, const Field& field) {
    all[key] = {field.print(), field.may_change};
  });
  return all;
}

std::string difference(const std::string& key, const std::string& before, const std::string& now) {
  return formatted("  {}: {} there, {} now", key, before, now);
}

// The length in steps that a printed value gives as a share of the run, or else
// nothing.
std::optional<std::int64_t> share_in_steps(const std::string& printed, std::int64_t run_steps) {
  Duration length;
  std::string ignored;
  if (!parse_duration(printed, length, ignored) || length.unit != Duration::Unit::Percent) {
    return std::nullopt;
  }
  return length.in_steps({0, run_steps});
}

}  // namespace

std::vector<std::string> branch_differences(
    const config::RunOptions& before, const config::RunOptions& now) {
  const auto old_settings = flatten(before);
  std::vector<std::string> lines;
  for (const auto& [key, now_set] : flatten(now)) {
    const std::string& old_value = old_settings.at(key).value;
    const bool stays = now_set.may_change == MayChange::Never ||
                       now_set.may_change == MayChange::WithWorkers ||
                       (now_set.may_change == MayChange::ToAuto && now_set.value != "auto");
    if (stays && old_value != now_set.value) {
      lines.push_back(difference(key, old_value, now_set.value));
    }
  }
  return lines;
}

std::vector<std::string> differences(
    const config::RunOptions& before, const config::RunOptions& now, std::int64_t extended) {
  const bool regroups = before.workers != now.workers;
  const bool is_longer = extended > 0 && !regroups;
  const auto old_settings = flatten(before);
  std::vector<std::string> lines;
  for (const auto& [key, now_set] : flatten(now)) {
    const std::string& value = now_set.value;
    const std::string& old_value = old_settings.at(key).value;
    const bool is_free = now_set.may_change == MayChange::Always ||
                         (is_longer && now_set.may_change == MayChange::WhenLonger) ||
                         (value == "auto" && now_set.may_change == MayChange::ToAuto) ||
                         (regroups && now_set.may_change == MayChange::WithWorkers);
    if (is_free || old_value == value) {
      continue;
    }
    const auto share = share_in_steps(old_value, extended);
    if (!is_longer || !share ||
        value != print_duration(Duration::steps(static_cast<double>(*share)))) {
      lines.push_back(difference(key, old_value, value));
    }
  }
  return lines;
}

void take_recorded(config::RunOptions& now, const config::RunOptions& before) {
  const auto recorded = flatten(before);
  each_key(config::fields_of(now).list(), [&](const std::string& key, const Field& field) {
    if (field.may_change == MayChange::ToAuto && field.print() == "auto") {
      Value value;
      value.kind = Value::Kind::Scalar;
      value.text = recorded.at(key).value;
      field.read(value, [&](const Value&, const std::string&) {
        ABT_ASSERT(false, "{} does not read '{}', which it printed", key, value.text);
      });
    }
  });
}

std::string shares_in_steps(const config::RunOptions& options, std::int64_t run_steps) {
  std::vector<std::string> words;
  for (const auto& [key, set] : flatten(options)) {
    const auto steps = share_in_steps(set.value, run_steps);
    if (key.starts_with("method.") && steps.value_or(0) > 0) {
      words.push_back(formatted("{}={}", key, *steps));
    }
  }
  return join(words, " ");
}

}  // namespace abtrain::train
