#include "report/formats.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace abtrain::report {

namespace {

using nlohmann::ordered_json;

// The text of a column, for people.
struct Cells {
  std::string title;
  std::vector<std::string> texts;
  std::vector<bool> best;
};

std::vector<Cells> cells_of(
    const Comparison& comparison,
    const std::vector<Column>& columns) {
  const std::vector<Setting>& settings = comparison.settings;
  const std::vector<bool> none(settings.size(), false);
  std::vector<Cells> all = {{"run", {}, none}, {"seeds", {}, none}};
  for (const Setting& setting : settings) {
    all[0].texts.push_back(printable(setting.name));
    all[1].texts.push_back(seeds_text(setting));
  }
  for (const Column& column : shown_columns(columns, settings)) {
    Cells cells{column.title, {}, {}};
    for (const Figure& figure : figures(column, settings)) {
      cells.texts.push_back(to_text(column, figure));
      cells.best.push_back(figure.is_best);
    }
    all.push_back(std::move(cells));
  }
  return all;
}

// The number of characters in UTF-8 text.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// The shortest text that reads back as the same number.
std::string exact(double value) {
  return std::isfinite(value) ? ordered_json(value).dump()
                              : (value > 0 ? "inf" : "nan");
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + "\"";
}

ordered_json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? ordered_json(*value)
                                        : ordered_json(nullptr);
}

ordered_json figure_json(
    const Column& column,
    const Figure& figure,
    const Setting& setting) {
  ordered_json values = ordered_json::array();
  for (const RunRecord& run : setting.runs) {
    values.push_back(number(column.of_run(run)));
  }
  return {
      {column.is_median ? "median" : "mean", number(figure.value)},
      {"sd", number(figure.spread)},
      {"values", values},
      {"best", figure.is_best}};
}

}  // namespace

std::vector<std::string> unfinished_runs(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const Setting& setting : comparison.settings) {
    for (const RunRecord& run : setting.runs) {
      if (!run.summary) {
        lines.push_back(run.folder + ": " + run.unfinished);
      }
    }
  }
  return lines;
}

std::string as_table(
    const Comparison& comparison,
    const std::vector<Column>& columns,
    bool bold) {
  std::vector<std::string> lines(comparison.settings.size() + 1);
  bool any_best = false;
  bool any_spread = false;
  bool first = true;
  for (const Cells& cells : cells_of(comparison, columns)) {
    const bool has_best = std::ranges::count(cells.best, true) > 0;
    std::size_t width = width_of(cells.title);
    for (const std::string& text : cells.texts) {
      width = std::max(width, width_of(text) + (has_best ? 1 : 0));
      any_spread |= !first && text.find("±") != std::string::npos;
    }
    any_best |= has_best;
    const auto put = [&](std::string& line, std::string text, bool is_best) {
      const std::string space(width - width_of(text), ' ');
      if (is_best && bold) {
        text = "\033[1m" + text + "\033[0m";
      }
      line += first ? text + space : "  " + space + text;
    };
    put(lines[0], cells.title, false);
    for (std::size_t i = 0; i < cells.texts.size(); ++i) {
      const char* mark = !has_best ? "" : cells.best[i] ? "*" : " ";
      put(lines[i + 1], cells.texts[i] + mark, cells.best[i]);
    }
    first = false;
  }
  std::string out;
  for (const std::string& line : lines) {
    out += std::string(line, 0, line.find_last_not_of(' ') + 1) + "\n";
  }
  std::vector<std::string> notes;
  if (any_best) {
    notes.push_back("* " + mark_text(columns));
  }
  if (any_spread) {
    notes.emplace_back("± standard deviation over the seeds");
  }
  return notes.empty() ? out : out + "\n" + join(notes, "; ") + "\n";
}

std::string as_markdown(
    const Comparison& comparison,
    const std::vector<Column>& columns) {
  std::vector<std::string> lines(comparison.settings.size() + 2, "|");
  for (const Cells& cells : cells_of(comparison, columns)) {
    const bool is_name = lines[0] == "|";
    lines[0] += " " + cells.title + " |";
    lines[1] += is_name ? " --- |" : " ---: |";
    for (std::size_t i = 0; i < cells.texts.size(); ++i) {
      std::string text;
      for (const char c : cells.texts[i]) {
        text += c == '|' ? "\\|" : std::string(1, c);
      }
      lines[i + 2] += cells.best[i] ? " **" + text + "** |" : " " + text + " |";
    }
  }
  return join(lines, "\n") + "\n";
}

std::string as_csv(
    const Comparison& comparison,
    const std::vector<Column>& columns) {
  std::vector<std::string> header = {"name", "runs", "finished"};
  for (const Column& column : columns) {
    header.push_back(column.key);
    header.push_back(column.key + "_sd");
  }
  header.insert(
      header.end(), comparison.varying.begin(), comparison.varying.end());
  std::string out = join(header, ",") + "\r\n";
  for (const Setting& setting : comparison.settings) {
    std::vector<std::string> fields = {
        csv_field(setting.name),
        std::to_string(setting.runs.size()),
        std::to_string(setting.finished())};
    for (const Column& column : columns) {
      const Figure figure = column.figure(setting);
      fields.push_back(figure.value ? exact(*figure.value) : "");
      fields.push_back(figure.spread ? exact(*figure.spread) : "");
    }
    for (const std::string& key : comparison.varying) {
      fields.push_back(csv_field(setting.runs.front().value_of(key)));
    }
    out += join(fields, ",") + "\r\n";
  }
  return out;
}

std::string as_json(
    const Comparison& comparison,
    const std::vector<Column>& columns) {
  const std::vector<Setting>& settings = comparison.settings;
  ordered_json rows = ordered_json::array();
  for (const Setting& setting : settings) {
    ordered_json folders = ordered_json::array();
    ordered_json seeds = ordered_json::array();
    for (const RunRecord& run : setting.runs) {
      folders.push_back(run.folder);
      seeds.push_back(run.seed);
    }
    ordered_json keys = ordered_json::object();
    for (const std::string& key : comparison.varying) {
      keys[key] = setting.runs.front().value_of(key);
    }
    rows.push_back(
        {{"name", setting.name},
         {"runs", folders},
         {"seeds", seeds},
         {"finished", setting.finished()},
         {"config", keys}});
  }
  for (const Column& column : columns) {
    const std::vector<Figure> all = figures(column, settings);
    for (std::size_t i = 0; i < all.size(); ++i) {
      rows[i][column.key] = figure_json(column, all[i], settings[i]);
    }
  }
  const ordered_json json = {
      {"target", number(comparison.target)},
      {"settings", rows},
      {"unfinished", unfinished_runs(comparison)},
      {"skipped", comparison.skipped}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace abtrain::report
