#include "report/tuning.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/mapped.h"
#include "base/text.h"
#include "report/compare.h"

namespace abtrain::report {

namespace {

std::optional<Question> question_of(const JsonObject& json) {
  const auto seconds = json.maybe("/seconds");
  if (!seconds) {
    return std::nullopt;  // a file of an earlier version
  }
  return Question{
      *seconds, json.text("/link/bandwidth"), json.text("/link/latency"),
      json.integer("/link/nodes", 0)};
}

void add_file(const std::filesystem::path& folder, Tuning& tuning) {
  const auto json = JsonObject::of_file((folder / "tuning.json").string());
  const auto question = question_of(json);
  tuning.question = tuning.rivals.empty() || question == tuning.question ? question : std::nullopt;
  tuning.settings = std::max(tuning.settings, json.integer("/settings", 0));
  for (std::size_t i = 0; i < json.list("/rivals").size(); ++i) {
    const auto at = [&](const char* key) { return formatted("/rivals/{}/{}", i, key); };
    const double seconds = json.number(at("pilot_seconds").c_str());
    if (seconds < 0) {
      json.complain(at("pilot_seconds"), "a number of at least 0");
    }
    tuning.rivals.push_back(
        {{"sweep", folder.filename().string()},
         {"name", json.text(at("name").c_str())},
         {"why", json.text(at("why").c_str())},
         {"tried", json.integer(at("tried").c_str(), 0)},
         {"pilots", json.integer(at("pilots").c_str(), 0)},
         {"pilot_seconds", seconds},
         {"chosen", json.text(at("chosen").c_str())}});
  }
  for (std::size_t i = 0; i < json.list("/left_out").size(); ++i) {
    const auto at = [&](const char* key) { return formatted("/left_out/{}/{}", i, key); };
    const bool has_kind = json.find(at("kind").c_str()) != nullptr;  // else an earlier version
    tuning.left_out.push_back(
        {{"name", json.text(at("name").c_str())},
         {"why", json.text(at("why").c_str())},
         {"kind", has_kind ? json.text(at("kind").c_str()) : "other"}});
  }
}

// A text from one of the lists, safe to show.
std::string shown(const nlohmann::ordered_json& one, const char* key) {
  return printable(one.at(key).get<std::string>());
}

}  // namespace

std::optional<Tuning> read_tuning(const std::vector<Setting>& settings) {
  std::set<std::filesystem::path> seen;
  std::optional<Tuning> tuning;
  for (const Setting& setting : settings) {
    for (const RunRecord& run : setting.runs) {
      auto place = std::filesystem::absolute(run.folder).lexically_normal();
      // "runs/a/" has an empty last part.
      place = place.has_filename() ? place : place.parent_path();
      const std::filesystem::path folder = place.parent_path();
      if (seen.insert(folder).second && is_there((folder / "tuning.json").string())) {
        add_file(folder, tuning ? *tuning : tuning.emplace());
      }
    }
  }
  return tuning;
}

std::vector<std::vector<std::string>> tuning_rows(const Tuning& tuning) {
  std::vector<std::vector<std::string>> rows = {
      {"sweep", "rival", "what it is", "settings tried", "pilot runs", "seconds", "chosen"}};
  std::set<std::string> sweeps;
  for (const auto& rival : tuning.rivals) {
    const std::string chosen = shown(rival, "chosen");
    sweeps.insert(rival.at("sweep"));
    rows.push_back(
        {shown(rival, "sweep"), shown(rival, "name"), shown(rival, "why"), rival.at("tried").dump(),
         rival.at("pilots").dump(), formatted("{:.1f}", rival.at("pilot_seconds").get<double>()),
         chosen.empty() ? "-" : chosen});
  }
  for (auto& row : rows) {
    row.erase(row.begin(), row.begin() + (sweeps.size() < 2 ? 1 : 0));
  }
  return rows;
}

bool is_partial(const Tuning& tuning) {
  return std::ranges::any_of(
      tuning.left_out, [](const auto& one) { return one.at("why") == kNotAsked; });
}

std::vector<std::string> left_out_lines(const Tuning& tuning) {
  NamesByReason groups;
  for (const auto& one : tuning.left_out) {
    add_name(groups, shown(one, "why"), shown(one, "name"));
  }
  return mapped(groups, [](const auto& group) {
    const auto& [why, names] = group;
    return formatted("{} {} left out: {}", listed(names), names.size() == 1 ? "was" : "were", why);
  });
}

}  // namespace abtrain::report
