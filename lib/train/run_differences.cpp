#include "train/run_differences.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/options_apply.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/config.h"

namespace abtrain::train {

namespace {

// Keys that a branch may change in addition to those that a resume may change. They affect only the
// steps to come, and the state of a checkpoint fits any of their values.
constexpr const char* kBranchKeys[] = {
    "branch_from",          "data.augment",           "data.crop_scale",
    "data.erase",           "method.factor_lr_scale", "method.outer.lr",
    "model.drop_path",      "model.drop_rate",        "optimizer.beta1",
    "optimizer.beta2",      "optimizer.decay_all",    "optimizer.delta",
    "optimizer.eps",        "optimizer.l1",           "optimizer.lr",
    "optimizer.momentum",   "optimizer.nesterov",     "optimizer.ns_steps",
    "optimizer.other_lr",   "optimizer.weight_decay", "schedule.final_lr",
    "schedule.milestones",  "schedule.name",          "schedule.step_factor",
    "schedule.warmup_from", "schedule.warmup_steps",  "train.clip_norm",
    "train.cuda_graphs",    "train.label_smoothing"};

struct Setting {
  std::string value;
  MayChange may_change;
};

using Settings = std::map<std::string, Setting>;

// Returns the keys that are in use, with their values.
Settings flatten(config::RunOptions options) {
  std::map<std::string, Setting> all;
  const Fields fields = config::fields_of(options);
  each_key(in_use(fields.list()), [&](const std::string& key, const Field& field) {
    all[key] = {field.print(), field.may_change};
  });
  return all;
}

// The key's value in `before`, or `now` if it was not in use there: then the key that decides on
// its use differs itself.
const std::string& value_before(
    const Settings& before, const std::string& key, const std::string& now) {
  const auto found = before.find(key);
  return found == before.end() ? now : found->second.value;
}

std::string difference(const std::string& key, const std::string& before, const std::string& now) {
  return formatted("  {}: {} there, {} now", key, before, now);
}

// Converts a printed duration that is a percentage of the run to steps; nullopt for any other
// value.
std::optional<std::int64_t> share_in_steps(const std::string& printed, std::int64_t run_steps) {
  Duration length;
  std::string ignored;
  if (!parse_duration(printed, length, ignored) || length.unit != Duration::Unit::Percent) {
    return std::nullopt;
  }
  return length.in_steps({0, run_steps});
}

// True if `before` is a percentage of a run of `run_steps` steps, and `now` the same duration in
// steps.
bool is_same_length(const std::string& before, const std::string& now, std::int64_t run_steps) {
  const auto share = share_in_steps(before, run_steps);
  return share && now == print_duration(Duration::steps(static_cast<double>(*share)));
}

}  // namespace

std::vector<std::string> branch_differences(
    const config::RunOptions& before, const config::RunOptions& now, std::int64_t run_steps) {
  const auto old_settings = flatten(before);
  auto settings = flatten(now);
  config::RunOptions defaults;
  const std::vector<std::string> all = keys_of(config::fields_of(defaults));
  for (const char* key : kBranchKeys) {
    ABT_ASSERT(std::ranges::count(all, key) == 1, "there is no key {}", key);
    settings.erase(key);
  }
  std::vector<std::string> lines;
  for (const auto& [key, now_set] : settings) {
    const std::string& old_value = value_before(old_settings, key, now_set.value);
    const bool stays = now_set.may_change == MayChange::Never ||
                       now_set.may_change == MayChange::WithWorkers ||
                       (now_set.may_change == MayChange::ToAuto && now_set.value != "auto");
    if (stays && old_value != now_set.value &&
        !is_same_length(old_value, now_set.value, run_steps)) {
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
  bool regroups_and_extends = false;
  for (const auto& [key, now_set] : flatten(now)) {
    const std::string& value = now_set.value;
    const std::string& old_value = value_before(old_settings, key, value);
    const bool is_free = now_set.may_change == MayChange::Always ||
                         (is_longer && now_set.may_change == MayChange::WhenLonger) ||
                         (value == "auto" && now_set.may_change == MayChange::ToAuto) ||
                         (regroups && now_set.may_change == MayChange::WithWorkers);
    if (is_free || old_value == value) {
      continue;
    }
    if (!is_longer || !is_same_length(old_value, value, extended)) {
      lines.push_back(difference(key, old_value, value));
      regroups_and_extends |= extended > 0 && now_set.may_change == MayChange::WhenLonger;
    }
  }
  if (regroups && regroups_and_extends) {
    lines.push_back(
        difference("workers", std::to_string(before.workers), std::to_string(now.workers)) +
        " (a resume may change the length or the workers, but not both at once)");
  }
  return lines;
}

void take_recorded(config::RunOptions& now, const config::RunOptions& before) {
  const auto recorded = flatten(before);
  each_key(config::fields_of(now).list(), [&](const std::string& key, const Field& field) {
    if (field.may_change == MayChange::ToAuto && field.print() == "auto") {
      Value value;
      value.kind = Value::Kind::Scalar;
      value.text = value_before(recorded, key, "auto");
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
