#include "train/run_differences.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "base/options_apply.h"
#include "base/scalars.h"
#include "base/text.h"
#include "config/config.h"

namespace abtrain::train {

namespace {

// Keys that may differ: they decide where and how fast a run trains, not what
// it learns.
constexpr auto kFree = std::to_array<std::string_view>(
    {"name",
     "output",
     "workers",
     "device",
     "comm",
     "data.root",
     "data.test",
     "data.prefetch",
     "data.on_device",
     "data.decode_threads",
     "data.max_damaged",
     "train.threads",
     "train.timeout",
     "train.log_every",
     "train.tensorboard",
     "train.check_replicas",
     "checkpoint.every",
     "checkpoint.keep",
     "evaluate.every",
     "evaluate.batch_size",
     "evaluate.train",
     "evaluate.norm_batches"});

// If the number of workers changes, groups and batches may change as well.
constexpr auto kFreeWithWorkers = std::to_array<std::string_view>(
    {"method.group_size", "data.batch_size", "train.accumulate"});

std::map<std::string, std::string> flatten(config::RunOptions options) {
  std::map<std::string, std::string> all;
  each_key(
      config::fields_of(options).list(),
      [&](const std::string& key, const Field& field) {
        all[key] = field.print();
      });
  return all;
}

constexpr auto kLength =
    std::to_array<std::string_view>({"train.steps", "train.epochs"});

// The length in steps that a printed value gives as a share of the run, or else
// nothing.
std::optional<std::int64_t> share_in_steps(
    const std::string& printed,
    std::int64_t run_steps) {
  Duration length;
  std::string ignored;
  if (!parse_duration(printed, length, ignored) ||
      length.unit != Duration::Unit::Percent) {
    return std::nullopt;
  }
  return length.in_steps({0, run_steps});
}

}  // namespace

std::vector<std::string> differences(
    const config::RunOptions& before,
    const config::RunOptions& now,
    std::int64_t extended) {
  const bool regroups = before.workers != now.workers;
  const bool is_longer = extended > 0 && !regroups;
  const auto old_values = flatten(before);
  std::vector<std::string> lines;
  for (const auto& [key, value] : flatten(now)) {
    const bool is_free =
        std::ranges::find(kFree, key) != kFree.end() ||
        (is_longer && std::ranges::find(kLength, key) != kLength.end()) ||
        (regroups &&
         std::ranges::find(kFreeWithWorkers, key) != kFreeWithWorkers.end());
    const auto old_value = old_values.find(key);
    if (is_free || old_value == old_values.end() ||
        old_value->second == value) {
      continue;
    }
    const auto share = share_in_steps(old_value->second, extended);
    if (!is_longer || !share ||
        value != print_duration(Duration::steps(static_cast<double>(*share)))) {
      lines.push_back(
          formatted("  {}: {} there, {} now", key, old_value->second, value));
    }
  }
  return lines;
}

std::string shares_in_steps(
    const config::RunOptions& options,
    std::int64_t run_steps) {
  std::vector<std::string> words;
  for (const auto& [key, value] : flatten(options)) {
    const auto steps = share_in_steps(value, run_steps);
    if (key.starts_with("method.") && steps.value_or(0) > 0) {
      words.push_back(formatted("{}={}", key, *steps));
    }
  }
  return join(words, " ");
}

}  // namespace abtrain::train
