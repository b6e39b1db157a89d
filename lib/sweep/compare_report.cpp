// The table and the JSON of a comparison.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "sweep/compare.h"

namespace abtrain::sweep {

namespace {

using nlohmann::ordered_json;
using Get = std::function<std::optional<double>(const RunRecord&)>;

// Of the finished runs that have the figure, ascending.
std::vector<double> values_of(const Setting& setting, const Get& get) {
  std::vector<double> values;
  for (const RunRecord& run : setting.runs) {
    if (const auto value = get(run); run.finished && value) {
      values.push_back(*value);
    }
  }
  std::ranges::sort(values);
  return values;
}

template <class T>
Get member(T RunRecord::*which) {
  return [which](const RunRecord& run) -> std::optional<double> {
    return run.*which;
  };
}

// Share of the training time.
std::optional<double> coding(const RunRecord& run) {
  if (!run.encode_ms || !run.decode_ms || run.ms_per_step <= 0) {
    return {};
  }
  return (*run.encode_ms + *run.decode_ms) / run.ms_per_step;
}

std::size_t finished(const Setting& setting) {
  return static_cast<std::size_t>(
      std::ranges::count_if(setting.runs, &RunRecord::finished));
}

// A median, and "-" where there is none.
std::string
shown(const std::vector<double>& values, double unit, int decimals) {
  return values.empty() ? "-" : fixed(median(values) / unit, decimals);
}

std::string out_of(std::size_t some, std::size_t all) {
  return str(some, " of ", all);
}

std::string accuracies(const Setting& setting) {
  const auto values = values_of(setting, member(&RunRecord::accuracy));
  if (values.size() < 2) {
    return shown(values, 0.01, 2);
  }
  return str(
      shown(values, 0.01, 2),
      " (",
      fixed(100 * values.front(), 2),
      " to ",
      fixed(100 * values.back(), 2),
      ")");
}

std::string time_to_target(const Setting& setting) {
  const std::size_t all = setting.runs.size();
  const std::string share = setting.arrived == all
                                ? ""
                                : str(" (", out_of(setting.arrived, all), ")");
  return (std::isinf(setting.seconds) ? "not reached"
                                      : fixed(setting.seconds, 1) + " s") +
         share;
}

struct Column {
  std::string title;
  std::function<std::string(const Setting&)> cell;
};

std::vector<Column> columns_of(
    const std::vector<Setting>& settings,
    std::optional<double> target) {
  std::vector<Column> columns;
  columns.push_back({"run", [](const Setting& s) { return s.name; }});
  columns.push_back({"seeds", [](const Setting& s) {
                       const std::size_t all = s.runs.size();
                       return finished(s) == all ? std::to_string(all)
                                                 : out_of(finished(s), all);
                     }});
  columns.push_back({"accuracy, %", accuracies});
  if (target) {
    columns.push_back(
        {str("to ", shown({*target}, 0.01, 2), " %"), time_to_target});
    columns.push_back({"steps", [](const Setting& s) {
                         return std::isinf(s.steps) ? "-" : fixed(s.steps, 0);
                       }});
    columns.push_back({"MB", [](const Setting& s) {
                         return std::isinf(s.bytes) ? "-"
                                                    : fixed(s.bytes / 1e6, 1);
                       }});
  }
  const auto add = [&](const char* title, Get get, double unit, int decimals) {
    columns.push_back({title, [=](const Setting& s) {
                         return shown(values_of(s, get), unit, decimals);
                       }});
  };
  add("ms a step", member(&RunRecord::ms_per_step), 1, 1);
  add("bits sent", member(&RunRecord::sent_bits), 1, 2);
  add("communicating, %", member(&RunRecord::communicating), 0.01, 1);
  add("coding, %", coding, 0.01, 1);
  if (std::ranges::any_of(settings, [](const Setting& s) {
        return !values_of(s, member(&RunRecord::vnmse)).empty();
      })) {
    columns.push_back({"vNMSE", [](const Setting& s) {
                         const auto v = values_of(s, member(&RunRecord::vnmse));
                         return v.empty()
                                    ? "-"
                                    : str(std::setprecision(3), median(v));
                       }});
  }
  return columns;
}

}  // namespace

std::string comparison_table(
    const std::vector<Setting>& settings,
    std::optional<double> target) {
  std::string out;
  std::vector<std::string> lines(settings.size() + 1);
  bool first = true;
  for (const Column& column : columns_of(settings, target)) {
    std::vector<std::string> cells = {column.title};
    for (const Setting& setting : settings) {
      cells.push_back(column.cell(setting));
    }
    std::size_t width = 0;
    for (const std::string& cell : cells) {
      width = std::max(width, cell.size());
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(width - cells[i].size(), ' ');
      lines[i] += first ? cells[i] + space : "  " + space + cells[i];
    }
    first = false;
  }
  for (const std::string& line : lines) {
    out += line + "\n";
  }
  for (const Setting& setting : settings) {
    for (const RunRecord& run : setting.runs) {
      if (!run.finished) {
        out += str(
            run.folder,
            ": no summary.json: it goes on still, was stopped or has failed\n");
      }
    }
  }
  return out;
}

ordered_json comparison_json(
    const std::vector<Setting>& settings,
    std::optional<double> target) {
  const auto number = [](double value) {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
  };
  const auto maybe = [&](const std::vector<double>& values) {
    return values.empty() ? ordered_json(nullptr) : number(median(values));
  };
  ordered_json rows = ordered_json::array();
  for (const Setting& s : settings) {
    ordered_json folders = ordered_json::array();
    ordered_json seeds = ordered_json::array();
    for (const RunRecord& run : s.runs) {
      folders.push_back(run.folder);
      seeds.push_back(run.seed);
    }
    const auto accuracy = values_of(s, member(&RunRecord::accuracy));
    ordered_json row = {
        {"name", s.name},
        {"runs", folders},
        {"seeds", seeds},
        {"finished", finished(s)},
        {"accuracy",
         {{"median", maybe(accuracy)},
          {"low",
           maybe({accuracy.begin(), accuracy.begin() + !accuracy.empty()})},
          {"high",
           maybe({accuracy.end() - !accuracy.empty(), accuracy.end()})}}}};
    if (target) {
      row["to_target"] = {
          {"reached_by", s.arrived},
          {"seconds", number(s.seconds)},
          {"steps", number(s.steps)},
          {"bytes", number(s.bytes)}};
    }
    row["ms_per_step"] = maybe(values_of(s, member(&RunRecord::ms_per_step)));
    row["bytes"] = maybe(values_of(s, member(&RunRecord::bytes)));
    row["sent_bits"] = maybe(values_of(s, member(&RunRecord::sent_bits)));
    row["communication_share"] =
        maybe(values_of(s, member(&RunRecord::communicating)));
    row["encode_ms"] = maybe(values_of(s, member(&RunRecord::encode_ms)));
    row["decode_ms"] = maybe(values_of(s, member(&RunRecord::decode_ms)));
    row["coding_share"] = maybe(values_of(s, coding));
    row["vnmse"] = maybe(values_of(s, member(&RunRecord::vnmse)));
    rows.push_back(row);
  }
  return {
      {"target", target ? ordered_json(*target) : ordered_json(nullptr)},
      {"settings", rows}};
}

}  // namespace abtrain::sweep
