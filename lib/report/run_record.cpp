#include "report/run_record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/options_apply.h"
#include "config/config.h"
#include "data/known_sets.h"
#include "run_folder/checkpoint.h"

namespace abtrain::report {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string data_name(const data::DataOptions& options) {
  const data::KnownSet set = data::find_set(options.name);
  const bool is_brought = set.has_files() || set.train_files.empty();
  const fs::path root = options.root.value_or("");
  const fs::path place = root.has_filename() ? root : root.parent_path();
  return is_brought && options.root ? options.name + " " + place.filename().string() : options.name;
}

void read_config_of(RunRecord& run) {
  const std::string path = run.folder + "/config.yaml";
  ABT_CHECK(is_known_there(path), MissingInput, "{}: it has no config.yaml", run.folder);
  config::RunOptions options = config::read_config(path);
  run.name = options.name;
  run.seed = options.seed;
  run.data = data_name(options.data);
  run.steps = options.train.seconds > 0 ? 0 : options.train.steps;
  const Fields fields = config::fields_of(options);
  each_key(in_use(fields.list()), [&](const std::string& key, const Field& field) {
    const bool is_own = key == "name" || key == "seed" || key == "output";
    (is_own ? run.own_keys : run.keys).emplace_back(key, field.print());
  });
}

constexpr std::string_view kSpectrum = "\"singular_values\":{";

// Returns the line without its singular values, which are most of its bytes: only the first and the
// last decomposition of a run are read in full.
std::string without_spectra(std::string_view line) {
  std::string out;
  for (std::size_t at; (at = line.find(kSpectrum)) != std::string_view::npos;) {
    const std::size_t end = line.find('}', at);
    if (end == std::string_view::npos) {
      break;
    }
    out += line.substr(0, at + kSpectrum.size());
    line.remove_prefix(end);
  }
  return out += line;
}

std::optional<SpectrumSample> spectrum_of(const JsonObject& event, const ordered_json& layer) {
  const auto values = layer.find("singular_values");
  if (values == layer.end() || !values->is_object() || values->empty()) {
    return {};
  }
  const auto numbers = [&](const char* key) {
    return event.member<std::vector<double>>(
        *values, key, "/layers", "lists of numbers as index and value of singular_values");
  };
  SpectrumSample spectrum{numbers("index"), numbers("value")};
  if (spectrum.index.size() != spectrum.value.size()) {
    event.complain("/layers", "as many singular values as indices");
  }
  return spectrum;
}

Decomposition decomposition(const JsonObject& event) {
  Decomposition cut{event.number("/step"), {}};
  for (const ordered_json& layer : event.list("/layers")) {
    constexpr const char* kWanted = "a name, m, n and rank of each layer";
    const auto number = [&](const char* key) {
      return event.member<double>(layer, key, "/layers", kWanted);
    };
    cut.layers.push_back(
        {event.member<std::string>(layer, "name", "/layers", kWanted), number("m"), number("n"),
         number("rank"), spectrum_of(event, layer)});
  }
  return cut;
}

// Converts a number of steps, which a damaged file may give as 1e308.
std::int64_t count_of(double steps) {
  return std::llround(std::clamp(steps, 0.0, 1e15));
}

struct Line {
  std::ptrdiff_t number = 0;  // from 1
  std::string_view text;
};

void read_metrics(RunRecord& run, Spectra spectra) {
  using enum run_folder::RunState;
  const std::string path = run.folder + "/metrics.jsonl";
  if (!is_known_there(path)) {
    // Only a run that has not trained yet may lack its metrics.jsonl.
    ABT_CHECK(
        run.state != Finished && run.state != Stopped, MissingInput, "{}: it has no metrics.jsonl",
        run.folder);
    return;
  }
  const std::string text = read_file(path, kMaxLines);
  std::vector<Line> cuts;  // lines with decompositions
  double vnmse = 0;
  int estimates = 0;
  std::size_t begin = 0;
  for (std::ptrdiff_t number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      // In an unfinished run the last line is still being written, or was cut
      // off when the run was killed.
      if (run.summary) {
        damaged(path, number, "the line is cut off");
      }
      break;
    }
    const Line line{number, std::string_view(text).substr(begin, end - begin)};
    begin = end + 1;
    const JsonObject event(path, number, without_spectra(line.text));
    const std::string kind = event.text("/event");
    run.step = count_of(event.maybe("/step").value_or(0));
    if (kind == "evaluate") {
      run.evaluations.push_back(
          {score_of(event), event.number("/step"), event.number("/train_seconds"),
           event.number("/bytes_per_worker")});
    } else if (kind == "decompose") {
      run.decompositions.push_back(decomposition(event));
      cuts.push_back(line);
    } else if (const auto value = event.maybe("/vnmse"); kind == "compression" && value) {
      vnmse += *value;
      ++estimates;
    }
  }
  if (estimates > 0) {
    run.vnmse = vnmse / estimates;
  }
  for (const std::size_t i : {std::size_t{0}, cuts.size() - 1}) {
    if (spectra == Spectra::Read && i < cuts.size() &&
        cuts[i].text.find(kSpectrum) != std::string_view::npos) {
      run.decompositions[i] = decomposition(JsonObject(path, cuts[i].number, cuts[i].text));
    }
  }
}

// Runs of one worker, and runs of earlier versions, have no waiting times.
void read_waiting(const JsonObject& file, Summary& summary) {
  const double train = summary.train_seconds;
  if (file.find("/by_worker") == nullptr || file.list("/by_worker").empty() || !(train > 0)) {
    return;
  }
  // The same limits as for warnings during a run (train/waiting.h). In a shorter run, chance
  // decides who is slowest.
  constexpr double kSlow = 0.1;
  constexpr double kLeastSeconds = 5;
  const ordered_json& workers = file.list("/by_worker");
  double& mean = summary.waiting_share.emplace(0);
  double& most = summary.waiting_max.emplace(0);
  const auto slowest = file.integer("/slowest_worker", 0, std::ssize(workers) - 1);
  std::string host;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    constexpr const char* kWanted = "a host and the seconds of waiting of each worker";
    const auto waiting = file.member<double>(workers[i], "waiting", "/by_worker", kWanted);
    const auto name = file.member<std::string>(workers[i], "host", "/by_worker", kWanted);
    most = std::max(most, waiting / train);
    mean += waiting / train / static_cast<double>(workers.size());
    host = static_cast<std::int64_t>(i) == slowest ? name : host;
  }
  const double others = static_cast<double>(workers.size()) - 1;
  if (train >= kLeastSeconds && others > 0 && mean * (others + 1) / others > kSlow) {
    summary.slowest = formatted("worker {} on {}", slowest, host);
  }
}

void read_summary(RunRecord& run) {
  const JsonObject file = JsonObject::of_file(run.folder + "/summary.json");
  const double steps = std::max(1.0, file.number("/steps"));
  const double train = file.number("/seconds/train");
  const double communication = file.number("/seconds/communication");
  Summary summary;
  static_cast<Score&>(summary) = score_of(file);
  summary.loss = file.maybe("/loss");
  summary.compression_ratio = file.maybe("/compression_ratio");
  summary.parameters = file.maybe("/parameters/stored");
  summary.bytes = file.number("/traffic/bytes_per_worker");
  summary.vs_fp32 = file.maybe("/traffic/vs_fp32");
  summary.train_seconds = train;
  summary.ms_per_step = 1e3 * train / steps;
  summary.communication_share = train > 0 ? communication / train : 0;
  read_waiting(file, summary);
  summary.core_share = file.maybe("/core_share");
  summary.beside_others = value_in<bool>(file.all(), "beside_others");
  summary.sent_bits = 8 * summary.bytes / (steps * file.number("/parameters/dense"));
  if (const auto encode = file.maybe("/reducer/encode_seconds")) {
    summary.encode_ms = 1e3 * *encode / steps;
    summary.decode_ms = 1e3 * file.number("/reducer/decode_seconds") / steps;
    if (train > 0) {
      summary.coding_share = (*summary.encode_ms + *summary.decode_ms) / summary.ms_per_step;
    }
  }
  run.summary = summary;
  run.steps = count_of(steps);
}

// "killed at step 41 of 60: process 7 on host; --resume auto continues from
// step 40".
void describe_unfinished(RunRecord& run, const std::string& about) {
  const auto saved = run_folder::list_checkpoints(run.folder);
  if (run.steps == 0 && !saved.empty()) {
    run.steps = saved.front().run_steps;
  }
  run.unfinished = formatted(
      "{}{}{}{}", run.progress(), about.empty() ? "" : ": ", about,
      run.state == run_folder::RunState::Running || saved.empty()
          ? ""
          : formatted("; --resume auto continues from step {}", saved.front().step));
}

}  // namespace

WhichScore Score::which() const {
  return accuracy ? &Score::accuracy : r2 ? &Score::r2 : &Score::bits_per_byte;
}

double Score::quality() const {
  const double value = (this->*which()).value_or(0);
  return which() == &Score::bits_per_byte ? -value : value;
}

bool Score::reaches(double target) const {
  const std::optional<double>& value = this->*which();
  return value && (which() == &Score::bits_per_byte ? *value <= target : *value >= target);
}

std::string Score::text() const {
  return accuracy ? formatted("{:.2f} %", 100 * *accuracy)
         : r2     ? formatted("R² {:.4f}", *r2)
                  : formatted("{:.4f} bits per byte", bits_per_byte.value_or(0));
}

Score score_of(const JsonObject& json, const std::string& begin) {
  const auto maybe = [&](const char* key) { return json.maybe((begin + key).c_str()); };
  if (const auto bits = maybe("bits_per_byte")) {
    return {.bits_per_byte = bits, .perplexity = maybe("perplexity")};
  }
  if (const auto r2 = maybe("r2")) {
    return {.r2 = r2};
  }
  return {.accuracy = json.number((begin + "accuracy").c_str())};
}

std::string RunRecord::progress() const {
  return summary ? name_of(state)
                 : formatted(
                       "{} at step {}{}", name_of(state), step,
                       steps > 0 ? formatted(" of {}", steps) : "");
}

std::string RunRecord::value_of(const std::string& key) const {
  for (const KeyValues* list : {&keys, &own_keys}) {
    const auto found = std::ranges::find(*list, key, &KeyValues::value_type::first);
    if (found != list->end()) {
      return found->second;
    }
  }
  return "";
}

RunRecord read_run(const std::string& folder, Spectra spectra) {
  RunRecord run;
  run.folder = folder;
  read_config_of(run);
  const run_folder::RunStatus status = run_folder::status_of(folder);
  run.state = status.state;
  if (run.state == run_folder::RunState::Finished) {
    read_summary(run);
  }
  read_metrics(run, spectra);
  if (status.exit_code == static_cast<int>(ErrorKind::Diverged)) {
    run.diverged_at = status.step.value_or(run.step);
  }
  if (!run.summary) {
    describe_unfinished(run, status.about);
  }
  return run;
}

}  // namespace abtrain::report
