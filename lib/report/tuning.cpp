#include "report/tuning.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "report/compare.h"

namespace abtrain::report {

namespace {

void add_file(const std::filesystem::path& folder, Tuning& tuning) {
  const auto json = JsonObject::of_file((folder / "tuning.json").string());
  tuning.settings = std::max(tuning.settings, json.integer("/settings", 0));
  const auto place = [](const char* list, std::size_t i, const char* key) {
    return formatted("/{}/{}/{}", list, i, key);
  };
  for (std::size_t i = 0; i < json.list("/rivals").size(); ++i) {
    const auto at = [&](const char* key) { return place("rivals", i, key); };
    Rival rival{
        .sweep = folder.filename().string(),
        .name = json.text(at("name").c_str()),
        .why = json.text(at("why").c_str()),
        .tried = json.integer(at("tried").c_str(), 0),
        .pilots = json.integer(at("pilots").c_str(), 0),
        .pilot_seconds = json.number(at("pilot_seconds").c_str()),
        .chosen = json.text(at("chosen").c_str())};
    if (rival.pilot_seconds < 0) {
      json.complain(at("pilot_seconds"), "a number of at least 0");
    }
    tuning.rivals.push_back(std::move(rival));
  }
  for (std::size_t i = 0; i < json.list("/left_out").size(); ++i) {
    tuning.left_out.push_back(
        {json.text(place("left_out", i, "name").c_str()),
         json.text(place("left_out", i, "why").c_str())});
  }
}

}  // namespace

std::optional<Tuning> read_tuning(const std::vector<Setting>& settings) {
  std::vector<std::filesystem::path> seen;
  std::optional<Tuning> tuning;
  for (const Setting& setting : settings) {
    for (const RunRecord& run : setting.runs) {
      auto place = std::filesystem::absolute(run.folder).lexically_normal();
      // "runs/a/" has an empty last part.
      place = place.has_filename() ? place : place.parent_path();
      const std::filesystem::path folder = place.parent_path();
      if (std::ranges::count(seen, folder) > 0) {
        continue;
      }
      seen.push_back(folder);
      if (is_there((folder / "tuning.json").string())) {
        if (!tuning) {
          tuning.emplace();
        }
        add_file(folder, *tuning);
      }
    }
  }
  return tuning;
}

std::vector<std::vector<std::string>> tuning_rows(const Tuning& tuning) {
  const bool is_one = std::ranges::all_of(tuning.rivals, [&](const Rival& r) {
    return r.sweep == tuning.rivals.front().sweep;
  });
  std::vector<std::vector<std::string>> rows = {
      {"rival",
       "what it is",
       "settings tried",
       "pilot runs",
       "seconds",
       "chosen"}};
  for (const Rival& rival : tuning.rivals) {
    rows.push_back(
        {printable(rival.name),
         printable(rival.why),
         formatted("{}", rival.tried),
         formatted("{}", rival.pilots),
         formatted("{:.1f}", rival.pilot_seconds),
         rival.chosen.empty() ? "-" : printable(rival.chosen)});
  }
  for (std::size_t i = 0; !is_one && i < rows.size(); ++i) {
    rows[i].insert(
        rows[i].begin(),
        i == 0 ? "sweep" : printable(tuning.rivals[i - 1].sweep));
  }
  return rows;
}

std::vector<std::string> left_out_lines(const Tuning& tuning) {
  std::vector<std::string> lines;
  for (const LeftOut& one : tuning.left_out) {
    lines.push_back(printable(one.name + " was left out: " + one.why));
  }
  return lines;
}

}  // namespace abtrain::report
