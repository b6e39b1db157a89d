#include "sweep/compare.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "run/config.h"

namespace abtrain::sweep {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void
damaged(const std::string& path, std::ptrdiff_t line, const std::string& what) {
  throw LocatedError(
      ErrorKind::DamagedData, str(path, ":", line, ": error: ", what));
}

// A JSON object of a file. `line`: where it begins.
class Object {
 public:
  Object(std::string path, std::ptrdiff_t line, const std::string& text)
      : path_(std::move(path)), line_(line) {
    try {
      json_ = json::parse(text);
    } catch (const json::parse_error& error) {
      const auto end = text.begin() + static_cast<std::ptrdiff_t>(
                                          std::min(error.byte, text.size()));
      damaged(
          path_,
          line_ + std::count(text.begin(), end, '\n'),
          "expected a JSON object, this is damaged or cut off");
    }
    if (!json_.is_object()) {
      damaged(path_, line_, "expected a JSON object");
    }
  }

  const json* find(const char* pointer) const {
    const json::json_pointer place(pointer);
    return json_.contains(place) ? &json_.at(place) : nullptr;
  }
  std::optional<double> maybe(const char* pointer) const {
    const json* value = find(pointer);
    return value != nullptr && value->is_number()
               ? std::optional(value->get<double>())
               : std::nullopt;
  }
  double number(const char* pointer) const {
    const std::optional<double> value = maybe(pointer);
    if (!value) {
      complain(pointer, "a number");
    }
    return *value;
  }
  std::string text(const char* pointer) const {
    const json* value = find(pointer);
    if (value == nullptr || !value->is_string()) {
      complain(pointer, "a text");
    }
    return value->get<std::string>();
  }

 private:
  [[noreturn]] void complain(const std::string& pointer, const char* wanted)
      const {
    std::string key = pointer.substr(1);
    std::ranges::replace(key, '/', '.');
    const json* value = find(pointer.c_str());
    damaged(
        path_,
        line_,
        str(key,
            ": expected ",
            wanted,
            ", got ",
            value == nullptr ? "nothing" : value->dump()));
  }

  std::string path_;
  std::ptrdiff_t line_;
  json json_;
};

void read_config_of(RunRecord& run) {
  const std::string path = run.folder + "/config.yaml";
  ABT_CHECK(
      fs::exists(path),
      MissingInput,
      run.folder,
      ": expected a run folder with config.yaml and metrics.jsonl");
  run::RunOptions options = run::read_config(path);
  run.name = options.name;
  run.seed = options.seed;
  const run::RunOptions defaults;
  options.name = defaults.name;
  options.seed = defaults.seed;
  options.output = defaults.output;
  run.setting = run::to_yaml(options);
}

void read_metrics(RunRecord& run, std::optional<double> target) {
  const std::string path = run.folder + "/metrics.jsonl";
  const std::string text = read_file(path);
  double vnmse = 0;
  int evaluations = 0;
  std::size_t begin = 0;
  // What follows the last newline is still being written, or was torn.
  for (std::ptrdiff_t line = 1; begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      break;
    }
    const Object event(path, line, text.substr(begin, end - begin));
    begin = end + 1;
    const std::string kind = event.text("/event");
    if (kind == "evaluate" && target && !run.arrival &&
        event.number("/accuracy") >= *target) {
      run.arrival = {
          event.number("/train_seconds"),
          event.number("/step"),
          event.number("/bytes_per_worker")};
    }
    if (const auto value = event.maybe("/vnmse");
        kind == "compression" && value) {
      vnmse += *value;
      ++evaluations;
    }
  }
  if (evaluations > 0) {
    run.vnmse = vnmse / evaluations;
  }
}

void read_summary(RunRecord& run) {
  const std::string path = run.folder + "/summary.json";
  if (!fs::exists(path)) {
    return;
  }
  const Object summary(path, 1, read_file(path));
  const double steps = std::max(1.0, summary.number("/steps"));
  const double train = summary.number("/seconds/train");
  run.finished = true;
  run.accuracy = summary.number("/accuracy");
  run.ms_per_step = 1e3 * train / steps;
  run.communicating =
      train > 0 ? summary.number("/seconds/communication") / train : 0;
  run.bytes = summary.number("/traffic/bytes_per_worker");
  run.sent_bits = 8 * run.bytes / (steps * summary.number("/parameters/dense"));
  if (const auto encode = summary.maybe("/reducer/encode_seconds")) {
    run.encode_ms = 1e3 * *encode / steps;
    run.decode_ms = 1e3 * summary.number("/reducer/decode_seconds") / steps;
  }
}

// "topk_3" of seed 3 is "topk".
std::string stem(const RunRecord& run) {
  const std::string seed = std::to_string(run.seed);
  std::string name = run.name;
  if (!name.ends_with(seed)) {
    return name;
  }
  name.resize(name.size() - seed.size());
  const std::size_t last = name.find_last_not_of("_-.");
  const bool is_apart = last != std::string::npos && last + 1 < name.size();
  return is_apart ? name.substr(0, last + 1) : run.name;
}

bool repeats_a_seed(const std::vector<RunRecord>& runs) {
  std::set<std::uint64_t> seeds;
  return !std::ranges::all_of(
      runs, [&](const RunRecord& r) { return seeds.insert(r.seed).second; });
}

Setting make_setting(std::vector<RunRecord> runs) {
  std::ranges::stable_sort(runs, {}, &RunRecord::seed);
  Setting setting;
  setting.name = stem(runs.front());
  if (!std::ranges::all_of(runs, [&](const RunRecord& run) {
        return stem(run) == setting.name;
      })) {
    setting.name += ", ...";
  }
  const auto over_runs = [&](double Arrival::*what) {
    std::vector<double> values;
    for (const RunRecord& run : runs) {
      values.push_back(
          run.arrival ? (*run.arrival).*what
                      : std::numeric_limits<double>::infinity());
    }
    return median(std::move(values));
  };
  setting.seconds = over_runs(&Arrival::seconds);
  setting.steps = over_runs(&Arrival::step);
  setting.bytes = over_runs(&Arrival::bytes);
  setting.arrived = static_cast<std::size_t>(std::ranges::count_if(
      runs, [](const RunRecord& run) { return run.arrival.has_value(); }));
  setting.runs = std::move(runs);
  return setting;
}

// Of the finished runs; below all others where there are none.
double accuracy(const Setting& setting) {
  std::vector<double> values;
  for (const RunRecord& run : setting.runs) {
    if (run.finished) {
      values.push_back(run.accuracy);
    }
  }
  return values.empty() ? -1 : median(std::move(values));
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

RunRecord read_run(const std::string& folder, std::optional<double> target) {
  RunRecord run;
  run.folder = folder;
  read_config_of(run);
  read_metrics(run, target);
  read_summary(run);
  return run;
}

std::vector<std::string> find_runs(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::set<std::string> known;
  const auto is_run = [](const fs::path& path) {
    return fs::exists(path / "config.yaml");
  };
  const auto add = [&](const fs::path& path) {
    if (known.insert(fs::canonical(path).string()).second) {
      found.push_back(path.string());
    }
  };
  for (const std::string& path : paths) {
    if (is_run(path)) {
      add(path);
      continue;
    }
    std::vector<fs::path> inside;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (is_run(entry.path())) {
        inside.push_back(entry.path());
      }
    }
    ABT_CHECK(
        !inside.empty(),
        MissingInput,
        path,
        ": expected a run folder, with config.yaml and metrics.jsonl, or a "
        "folder that holds some");
    std::ranges::sort(inside);
    std::ranges::for_each(inside, add);
  }
  return found;
}

std::vector<Setting> group_runs(std::vector<RunRecord> runs) {
  std::map<std::string, std::vector<RunRecord>> same;
  for (RunRecord& run : runs) {
    same[run.setting].push_back(std::move(run));
  }
  std::vector<Setting> settings;
  for (auto& [setting, members] : same) {
    if (!repeats_a_seed(members)) {
      settings.push_back(make_setting(std::move(members)));
      continue;
    }
    // The same runs in other surroundings: their names tell them apart.
    std::map<std::string, std::vector<RunRecord>> named;
    for (RunRecord& run : members) {
      named[stem(run)].push_back(std::move(run));
    }
    for (auto& [name, repeats] : named) {
      settings.push_back(make_setting(std::move(repeats)));
    }
  }
  std::ranges::sort(settings, [](const Setting& a, const Setting& b) {
    return std::tuple(a.seconds, -accuracy(a), a.name) <
           std::tuple(b.seconds, -accuracy(b), b.name);
  });
  std::map<std::string, int> names;
  for (const Setting& setting : settings) {
    ++names[setting.name];
  }
  for (Setting& setting : settings) {
    if (names[setting.name] > 1) {
      setting.name = setting.runs.front().folder;
    }
  }
  return settings;
}

}  // namespace abtrain::sweep
