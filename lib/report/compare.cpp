#include "report/compare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/mapped.h"
#include "base/text.h"
#include "base/threads.h"
#include "report/select.h"

namespace abtrain::report {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The name of a sweep's point, as "rank=8,seed=3-1f0c66ad", without the hash.
// Other names are returned unchanged.
std::string without_hash(const std::string& name) {
  constexpr std::size_t kDigits = 8;
  const std::size_t dash = name.rfind('-');
  const bool is_point = dash != std::string::npos && name.find('=') < dash &&
                        name.size() == dash + 1 + kDigits &&
                        name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
  return is_point ? name.substr(0, dash) : name;
}

// The name without its seed: with seed 3, the stem of "topk_3", "topk,seed=3" and "topk_seed3" is
// "topk".
std::string stem(const RunRecord& run) {
  const std::string seed = std::to_string(run.seed);
  const std::string whole = without_hash(run.name);
  if (!whole.ends_with(seed)) {
    return whole;
  }
  std::string name = whole.substr(0, whole.size() - seed.size());
  constexpr std::string_view kSeparators = "_-.,";
  for (const std::string_view word : {"seed", "seed=", "seed_", "seed-"}) {
    if (name.ends_with(word)) {
      name.resize(name.size() - word.size());
      break;
    }
  }
  const std::size_t last = name.find_last_not_of(kSeparators);
  const bool is_apart = last != std::string::npos && last + 1 < name.size();
  return is_apart ? name.substr(0, last + 1) : whole;
}

// The stem that all runs of the setting share; "" if they differ.
std::string common_stem(const Setting& setting) {
  const std::string first = stem(setting.runs.front());
  const bool is_common =
      std::ranges::all_of(setting.runs, [&](const RunRecord& run) { return stem(run) == first; });
  return is_common ? first : "";
}

bool repeats_a_seed(const std::vector<RunRecord>& runs) {
  std::set<std::uint64_t> seeds;
  return !std::ranges::all_of(
      runs, [&](const RunRecord& r) { return seeds.insert(r.seed).second; });
}

// Groups runs with the same configuration, apart from seed, name and output, into settings without
// names.
std::vector<Setting> grouped(std::vector<RunRecord> runs) {
  std::map<KeyValues, std::vector<RunRecord>> same;
  for (RunRecord& run : runs) {
    same[run.keys].push_back(std::move(run));
  }
  std::vector<Setting> settings;
  for (auto& [keys, members] : same) {
    // If a seed occurs twice, something outside the configuration differed between the runs: their
    // names tell them apart.
    const bool by_name = repeats_a_seed(members);
    std::map<std::string, std::vector<RunRecord>> named;
    for (RunRecord& run : members) {
      named[by_name ? stem(run) : ""].push_back(std::move(run));
    }
    for (auto& [name, repeats] : named) {
      std::ranges::stable_sort(repeats, {}, &RunRecord::seed);
      settings.push_back({"", std::move(repeats)});
    }
  }
  return settings;
}

// Keys with values that differ among the settings that have them. `settings`: a list of settings,
// or of references to them.
std::vector<std::string> varying_keys(const auto& settings) {
  std::vector<std::string> keys;
  std::map<std::string, std::set<std::string>> values;
  for (const Setting& setting : settings) {
    for (const auto& [key, value] : setting.runs.front().keys) {
      if (values[key].empty()) {
        keys.push_back(key);
      }
      values[key].insert(value);
    }
  }
  std::erase_if(keys, [&](const std::string& key) { return values[key].size() == 1; });
  return keys;
}

// "group_size=2 keep=0.8": only the last part of a key if that is unambiguous.
std::string by_its_keys(const Setting& setting, const std::vector<std::string>& varying) {
  const auto tail = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  const auto part = [&](const std::string& key) {
    const bool is_clear = tail(key) != "name" && std::ranges::count(varying, tail(key), tail) == 1;
    return (is_clear ? tail(key) : key) + "=" + setting.runs.front().value_of(key);
  };
  std::vector<std::string> own = varying;
  std::erase_if(
      own, [&](const std::string& key) { return setting.runs.front().value_of(key).empty(); });
  return join(mapped(own, part), " ");
}

// "first_sweep/rank=8": the folder that holds the setting's runs, and their
// stem.
std::string with_folder(const Setting& setting) {
  const std::filesystem::path folder = setting.runs.front().folder;
  return (folder.parent_path().filename() / common_stem(setting)).string();
}

// Gives the settings distinct names: from the names of their runs, else from differences in their
// configurations, else from their folders.
void name_settings(std::vector<Setting>& settings) {
  const auto unclear_ones = [&] {
    std::map<std::string, int> count;
    for (const Setting& setting : settings) {
      ++count[setting.name];
    }
    std::vector<std::reference_wrapper<Setting>> found;
    for (Setting& setting : settings) {
      if (setting.name.empty() || count[setting.name] > 1) {
        found.emplace_back(setting);
      }
    }
    return found;
  };
  const auto rename_unclear = [&](const auto& name) {
    for (Setting& setting : unclear_ones()) {
      setting.name = name(setting);
    }
  };
  rename_unclear(common_stem);
  const auto unclear = unclear_ones();
  // A single unclear setting is described by what differs among all settings.
  const auto varying = unclear.size() < 2 ? varying_keys(settings) : varying_keys(unclear);
  rename_unclear([&](const Setting& s) {
    constexpr std::size_t kMaxLength = 60;
    std::string keys = by_its_keys(s, varying);
    return keys.size() <= kMaxLength || common_stem(s).empty() ? keys : with_folder(s);
  });
  rename_unclear([](const Setting& s) { return stem(s.runs.front()) + ", ..."; });
  rename_unclear([](const Setting& s) { return s.runs.front().folder; });
}

using RunOrError = std::variant<RunRecord, Error>;

// Reads with several threads, since files on a network disk have high latency.
std::vector<RunOrError> read_all(const std::vector<std::string>& folders, Spectra spectra) {
  constexpr std::size_t kMaxThreads = 8;
  std::vector<RunOrError> readings(folders.size());
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  for_each_on_threads(std::min(cores, kMaxThreads), folders.size(), [&](std::size_t i) {
    try {
      readings[i] = read_run(folders[i], spectra);
    } catch (const Error& error) {
      readings[i] = error;
    }
  });
  return readings;
}

// Whether both folders hold the results of one run: a repetition takes another time.
bool is_copy(const RunRecord& a, const RunRecord& b) {
  return a.summary && b.summary && a.name == b.name && a.seed == b.seed && a.keys == b.keys &&
         a.summary->train_seconds == b.summary->train_seconds && a.summary->loss == b.summary->loss;
}

std::string first_line(const std::string& message) {
  const auto lines = split_text(message, '\n');
  // A configuration's message may list several problems, each followed by its
  // source line and a caret.
  const auto others = std::ranges::count_if(
      lines, [](const std::string& line) { return line.find(": error: ") != std::string::npos; });
  return lines.front() + (others > 1 ? formatted(" (and {} more)", others - 1) : "");
}

}  // namespace

std::size_t Setting::finished() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(runs, [](const RunRecord& run) { return run.summary.has_value(); }));
}

bool Setting::has_diverged() const {
  return std::ranges::any_of(
      runs, [](const RunRecord& run) { return run.diverged_at.has_value(); });
}

std::vector<double> Setting::values(
    const std::function<std::optional<double>(const RunRecord&)>& of_run) const {
  std::vector<double> values;
  for (const RunRecord& run : runs) {
    if (const auto value = of_run(run)) {
      values.push_back(*value);
    }
  }
  return values;
}

std::vector<std::vector<std::size_t>> by_data(const std::vector<Setting>& settings) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    groups[settings[i].runs.front().data].push_back(i);
  }
  const auto members = std::views::values(groups);
  return {members.begin(), members.end()};
}

bool runs_beside_others(const Setting& setting) {
  return std::ranges::any_of(
      setting.runs, [](const RunRecord& run) { return run.summary && run.summary->beside_others; });
}

void add_name(NamesByReason& all, const std::string& reason, const std::string& name) {
  auto group = std::ranges::find(all, reason, &NamesByReason::value_type::first);
  if (group == all.end()) {
    group = all.insert(group, {reason, {}});
  }
  group->second.push_back(name);
}

double quality_of(const Setting& setting) {
  const std::vector<double> qualities = setting.values(of_summary(&Summary::quality));
  return qualities.empty() || setting.has_diverged() ? -kInfinite : mean(qualities);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> standard_deviation(const std::vector<double>& values) {
  if (values.size() < 2) {
    return {};
  }
  const auto count = static_cast<double>(values.size());
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  return std::sqrt(sum / (count - 1));
}

double at_arrival(const RunRecord& run, std::optional<double> target, double Evaluation::*figure) {
  const auto there = std::ranges::find_if(
      run.evaluations, [&](const Evaluation& e) { return target && e.reaches(*target); });
  return run.diverged_at || there == run.evaluations.end() ? kInfinite : (*there).*figure;
}

Comparison compare(
    const std::vector<std::string>& paths, std::optional<double> target, Spectra spectra,
    const std::vector<Condition>& where) {
  FoundRuns found = find_runs(paths);
  std::vector<RunRecord> runs;
  std::vector<std::string> skipped = std::move(found.without);
  ErrorKind kind = ErrorKind::MissingInput;
  for (RunOrError& reading : read_all(found.folders, spectra)) {
    if (const auto* error = std::get_if<Error>(&reading)) {
      kind = skipped.empty() ? error->kind() : kind;
      skipped.push_back(first_line(error->what()));
      continue;
    }
    RunRecord& run = std::get<RunRecord>(reading);
    const auto original =
        std::ranges::find_if(runs, [&](const RunRecord& other) { return is_copy(run, other); });
    if (original != runs.end()) {
      skipped.push_back(formatted("{}: a copy of {}", run.folder, original->folder));
    } else {
      runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) {
    throw LocatedError(kind, join(skipped, "\n"));
  }
  keep_matching(runs, where);
  std::vector<Setting> settings = grouped(std::move(runs));
  std::vector<std::string> varying = varying_keys(settings);
  name_settings(settings);
  const auto arrival = [&](const RunRecord& run) {
    return at_arrival(run, target, &Evaluation::seconds);
  };
  std::ranges::sort(settings, {}, [&](const Setting& s) {
    return std::tuple(
        s.runs.front().data, s.finished() == 0, s.has_diverged(), median(s.values(arrival)),
        -quality_of(s), s.name);
  });
  return {target, std::move(settings), std::move(varying), std::move(skipped)};
}

}  // namespace abtrain::report
