#include "report/formats.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/rows.h"
#include "base/text.h"
#include "report/traits.h"

namespace abtrain::report {

namespace {

using nlohmann::ordered_json;

struct Cell {
  std::string text;
  bool is_best = false;
};

struct TextColumn {
  std::string title;
  bool is_words = false;  // aligned at the left
  std::vector<Cell> cells = {};
};

std::vector<TextColumn> text_columns(
    const Comparison& comparison, const std::vector<Column>& columns) {
  const std::vector<Setting>& settings = comparison.settings;
  std::vector<TextColumn> all;
  const auto add = [&](const std::string& title, bool is_words, auto text) {
    const auto cell = [&](const Setting& setting) {
      const std::string words = text(setting);
      return Cell{words.empty() ? "-" : printable(words)};
    };
    all.push_back({title, is_words, mapped(settings, cell)});
  };
  add("run", true, [](const Setting& s) { return s.name; });
  for (const Trait& trait : shown_traits(settings)) {
    add(trait.key, !trait.is_number, trait.of);
  }
  add("seeds", false, seeds_text);
  for (const Column& column : shown_columns(columns, settings)) {
    const auto cell = [&](const Figure& figure) {
      return Cell{to_text(column, figure), figure.is_best};
    };
    all.push_back({column.title, false, mapped(figures(column, settings), cell)});
  }
  return all;
}

// The shortest text that reads back as the same number.
std::string exact(double value) {
  return std::isfinite(value) ? ordered_json(value).dump() : (value > 0 ? "inf" : "nan");
}

ordered_json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json figure_json(const Column& column, const Figure& figure, const Setting& setting) {
  const auto value = [&](const RunRecord& run) { return number(column.of_run(run)); };
  return {
      {column.is_median ? "median" : "mean", number(figure.value)},
      {"sd", number(figure.spread)},
      {"values", mapped(setting.runs, value)},
      {"best", figure.is_best}};
}

// The first row holds the titles.
std::vector<TextColumn> text_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<TextColumn> all;
  for (std::size_t k = 0; k < rows.front().size(); ++k) {
    TextColumn column{rows.front()[k], /*is_words=*/true};
    for (std::size_t i = 1; i < rows.size(); ++i) {
      column.cells.push_back({rows[i][k]});
    }
    all.push_back(std::move(column));
  }
  return all;
}

bool has_best(const TextColumn& column) {
  return std::ranges::any_of(column.cells, &Cell::is_best);
}

std::string table_text(const std::vector<TextColumn>& table, bool bold) {
  std::vector<std::string> lines(table.front().cells.size() + 1);
  for (const TextColumn& column : table) {
    const bool has_marks = has_best(column);
    std::size_t width = columns_of(column.title);
    for (const Cell& cell : column.cells) {
      width = std::max(width, columns_of(cell.text) + (has_marks ? 1 : 0));
    }
    const auto put = [&](std::string& line, std::string text, bool is_best) {
      const std::string space(width - columns_of(text), ' ');
      if (is_best && bold) {
        text = "\033[1m" + text + "\033[0m";
      }
      line += &column == &table.front() ? "" : "  ";
      line += column.is_words ? text + space : space + text;
    };
    put(lines[0], column.title, false);
    for (std::size_t i = 0; i < column.cells.size(); ++i) {
      const auto& [text, is_best] = column.cells[i];
      put(lines[i + 1], text + (!has_marks ? "" : is_best ? "*" : " "), is_best);
    }
  }
  std::string out;
  for (const std::string& line : lines) {
    out += std::string(line, 0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string markdown_text(const std::vector<TextColumn>& table) {
  std::vector<std::string> lines(table.front().cells.size() + 2, "|");
  for (const TextColumn& column : table) {
    lines[0] += " " + column.title + " |";
    lines[1] += column.is_words ? " --- |" : " ---: |";
    for (std::size_t i = 0; i < column.cells.size(); ++i) {
      const std::string text = replaced(column.cells[i].text, "|", "\\|");
      lines[i + 2] += column.cells[i].is_best ? " **" + text + "** |" : " " + text + " |";
    }
  }
  return join(lines, "\n") + "\n";
}

std::string answer_text(const Comparison& comparison) {
  return comparison.answer.empty() ? "" : comparison.answer + "\n\n";
}

// The text below the table: the verdict, and what was spent on tuning.
std::string words_below(const Comparison& comparison, bool is_markdown) {
  const auto titled = [&](const std::string& title) {
    return is_markdown ? "\n**" + title + "**\n\n" : "\n" + title + "\n";
  };
  const auto listed = [&](const std::vector<std::string>& lines) {
    std::string out;
    for (const std::string& line : lines) {
      out += (is_markdown ? "- " : "  ") + line + "\n";
    }
    return out;
  };
  std::string out;
  if (const std::string note = note_on_cores(comparison.settings); !note.empty()) {
    out += "\n" + note + "\n";
  }
  if (!comparison.verdict.empty()) {
    out += titled("Verdict") + listed(comparison.verdict);
  }
  if (const auto& tuning = comparison.tuning) {
    const auto rows = text_columns(tuning_rows(*tuning));
    const auto left_out = left_out_lines(*tuning);
    out += titled("What each rival was given") +
           (is_markdown ? markdown_text(rows) : table_text(rows, false));
    out += left_out.empty() ? "" : "\n" + listed(left_out);
  }
  return out;
}

auto without_summary(const Comparison& comparison) {
  return comparison.settings | std::views::transform(&Setting::runs) | std::views::join |
         std::views::filter([](const RunRecord& run) { return !run.summary; });
}

ordered_json unfinished_json(const RunRecord& run) {
  return {
      {"run", run.folder},
      {"state", name_of(run.state)},
      {"step", run.step},
      {"steps", run.steps > 0 ? ordered_json(run.steps) : nullptr},
      {"message", run.unfinished}};
}

}  // namespace

std::string note_on_cores(const std::vector<Setting>& settings) {
  std::vector<std::string> names;
  for (const Setting& setting : settings) {
    double least = 1;
    for (const RunRecord& run : setting.runs) {
      if (run.summary && run.summary->beside_others) {
        least = std::min(least, run.summary->core_share.value_or(1));
      }
    }
    if (runs_beside_others(setting)) {
      names.push_back(formatted("{} ({:.0f} %)", printable(setting.name), 100 * least));
    }
  }
  return names.empty() ? ""
                       : formatted(
                             "Beside other programs, workers had a core for only a part of their "
                             "compute time in {}: these times are not reliable and get no mark.",
                             listed(names));
}

std::vector<std::string> unfinished_runs(const Comparison& comparison) {
  return mapped(without_summary(comparison), [](const RunRecord& run) {
    return run.folder + ": " + run.unfinished;
  });
}

std::string as_table(const Comparison& comparison, const std::vector<Column>& columns, bool bold) {
  const std::vector<TextColumn> table = text_columns(comparison, columns);
  std::vector<std::string> notes;
  if (std::ranges::any_of(table, has_best)) {
    notes.push_back("* " + mark_text(columns, comparison.settings));
  }
  // Skips the first column, because names may contain this sign, too.
  if (std::any_of(table.begin() + 1, table.end(), [](const TextColumn& column) {
        return std::ranges::any_of(column.cells, [](const Cell& cell) {
          return cell.text.find("±") != std::string::npos;
        });
      })) {
    notes.emplace_back("± standard deviation over the seeds");
  }
  return answer_text(comparison) + table_text(table, bold) +
         (notes.empty() ? "" : "\n" + join(notes, "; ") + "\n") +
         words_below(comparison, /*is_markdown=*/false);
}

std::string as_markdown(const Comparison& comparison, const std::vector<Column>& columns) {
  return answer_text(comparison) + markdown_text(text_columns(comparison, columns)) +
         words_below(comparison, /*is_markdown=*/true);
}

std::string as_csv(const Comparison& comparison, const std::vector<Column>& columns) {
  std::vector<std::string> header = {"name", "runs", "finished"};
  std::ranges::transform(all_traits(), std::back_inserter(header), &Trait::key);
  for (const Column& column : columns) {
    header.push_back(column.key);
    header.push_back(column.key + "_sd");
  }
  header.insert(header.end(), comparison.varying.begin(), comparison.varying.end());
  std::string out = csv_line(header) + "\r\n";
  for (const Setting& setting : comparison.settings) {
    std::vector<std::string> fields = {
        setting.name, std::to_string(setting.runs.size()), std::to_string(setting.finished())};
    for (const Trait& trait : all_traits()) {
      fields.push_back(trait.of(setting));
    }
    for (const Column& column : columns) {
      const Figure figure = column.figure(setting);
      fields.push_back(figure.value ? exact(*figure.value) : "");
      fields.push_back(figure.spread ? exact(*figure.spread) : "");
    }
    for (const std::string& key : comparison.varying) {
      fields.push_back(setting.runs.front().value_of(key));
    }
    out += csv_line(fields) + "\r\n";
  }
  return out;
}

std::string as_json(const Comparison& comparison, const std::vector<Column>& columns) {
  const std::vector<Setting>& settings = comparison.settings;
  ordered_json rows = ordered_json::array();
  for (const Setting& setting : settings) {
    const auto state = [](const RunRecord& run) { return name_of(run.state); };
    ordered_json keys = ordered_json::object();
    for (const std::string& key : comparison.varying) {
      keys[key] = setting.runs.front().value_of(key);
    }
    rows.push_back(
        {{"name", setting.name},
         {"runs", mapped(setting.runs, &RunRecord::folder)},
         {"seeds", mapped(setting.runs, &RunRecord::seed)},
         {"finished", setting.finished()},
         {"states", mapped(setting.runs, state)},
         {"beside_others", runs_beside_others(setting)},
         {"config", keys}});
    for (const Trait& trait : all_traits()) {
      rows.back()[trait.key] = trait.of(setting);
    }
  }
  for (const Column& column : columns) {
    const std::vector<Figure> all = figures(column, settings);
    for (std::size_t i = 0; i < all.size(); ++i) {
      rows[i][column.key] = figure_json(column, all[i], settings[i]);
    }
  }
  ordered_json json = {
      {"target", number(comparison.target)},
      {"settings", rows},
      {"unfinished", mapped(without_summary(comparison), unfinished_json)},
      {"skipped", comparison.skipped}};
  if (std::ranges::count(columns, Best::Front, &Column::best) > 0) {
    json["verdict"] = comparison.verdict;
  }
  if (comparison.tuning) {
    json["tuning"] = {
        {"settings", comparison.tuning->settings},
        {"rivals", comparison.tuning->rivals},
        {"left_out", comparison.tuning->left_out}};
  }
  return json_text(json);
}

}  // namespace abtrain::report
