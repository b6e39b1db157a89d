#include "sweep/method_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/mapped.h"
#include "base/rows.h"
#include "base/text.h"

namespace abtrain::sweep {

namespace {

using nlohmann::ordered_json;
using plan::Bounds;
using Row = MethodTable::Row;

// The upper bound of the cost by which rows are sorted.
double cost_of(const Row& row, bool measured) {
  const plan::Outline& outline = row.outline;
  const auto seconds = measured ? outline.train : outline.communication;
  return seconds.value_or(outline.bytes).most;
}

Bounds per_step(const Bounds& whole, const Row& row) {
  const auto steps = static_cast<double>(row.outline.steps);
  return {whole.least / steps, whole.most / steps};
}

std::string cell(const Bounds& bounds, const auto& text) {
  const std::string least = text(bounds.least);
  const std::string most = text(bounds.most);
  return least == most ? least : least + " to " + most;
}

// The column titles after a row's name.
std::vector<std::string> titles(const MethodTable& table) {
  std::vector<std::string> all = {"sent per step", "sent in all"};
  if (!table.network.empty()) {
    all.emplace_back("on the link");
  }
  if (table.measured) {
    all.emplace_back("training");
  }
  all.insert(all.end(), {"memory", "parameters"});
  return all;
}

std::vector<std::string> cells(const MethodTable& table, const Row& row) {
  const plan::Outline& outline = row.outline;
  const std::string about = outline.estimated ? "~" : "";
  std::vector<std::string> all = {
      about + cell(per_step(outline.bytes, row), human_bytes),
      about + cell(outline.bytes, human_bytes)};
  if (outline.communication) {
    all.push_back(about + cell(*outline.communication, human_seconds));
  }
  if (table.measured) {
    all.push_back(about + cell(*outline.train, human_seconds));
  }
  all.push_back(human_bytes(outline.memory));
  all.push_back(about + cell(outline.stored, [](double count) {
                  return with_commas(static_cast<std::int64_t>(count));
                }));
  return all;
}

std::string grid_text(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t k = 0; k < line.size(); ++k) {
      widths[k] = std::max(widths[k], columns_of(line[k]));
    }
  }
  std::string out;
  for (const auto& line : lines) {
    out += "  " + line[0] + std::string(widths[0] - columns_of(line[0]), ' ');
    for (std::size_t k = 1; k < line.size(); ++k) {
      out += std::string(2 + widths[k] - columns_of(line[k]), ' ') + line[k];
    }
    out += "\n";
  }
  return out;
}

// Returns the notes below the table, which explain its names and figures.
std::string notes_text(const MethodTable& table) {
  const auto has = [&](auto holds) { return std::ranges::any_of(table.rows, holds); };
  std::string out =
      "\n  ddp_NAME averages gradients by the reducer NAME; docs/rivals.md describes the others.\n"
      "  Sent: by one worker, mean over the workers. Memory: of a worker's parameters, gradients, "
      "moments and\n  residuals in a dense step. Parameters: as the final model stores them.\n";
  if (table.measured) {
    out +=
        "  On the link: waiting for it, where computing does not hide it. Training: link, "
        "computing "
        "and\n  decompositions; evaluations and checkpoints are extra.\n";
  } else if (!table.network.empty()) {
    out +=
        "  On the link: the time that the bytes and their latency take. Computing, which can hide "
        "some of it, is\n  left out; --workers-here N measures it for each row.\n";
  }
  if (table.parameters > 0) {
    out += formatted(
        "  The small_... networks have about as many parameters as AB-training stores, {}.\n",
        with_commas(table.parameters));
  }
  if (has([](const Row& row) { return row.outline.estimated; })) {
    out +=
        "  ~ An estimate: the budget rule distributes the ranks by the spectra; here, every layer "
        "has the same ratio.\n  A run may send more or less.\n";
  }
  if (has([](const Row& row) { return row.outline.bytes.least < row.outline.bytes.most; })) {
    out +=
        "  A to B: the ranks follow from the spectra at each decomposition; these are the least "
        "and the most.\n";
  }
  return out;
}

using Said = std::vector<std::pair<std::string, std::string>>;  // a name, and a statement on it

// Lists each statement once, after the names that it applies to; without names if it applies to all
// rows.
std::string said_text(const std::string& title, const Said& said, std::size_t rows) {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const auto& [name, what] : said) {
    auto known = std::ranges::find(all, what, &decltype(all)::value_type::first);
    if (known == all.end()) {
      known = all.insert(known, {what, {}});
    }
    known->second.push_back(name);
  }
  std::string out;
  for (const auto& [what, names] : all) {
    out += "  " + (names.size() < rows ? listed(names) + ": " : "") + what + "\n";
  }
  return out.empty() ? "" : "\n" + title + "\n" + out;
}

ordered_json bounds_json(const Bounds& bounds) {
  return {{"least", bounds.least}, {"most", bounds.most}};
}

}  // namespace

MethodTable method_table(
    const std::string& config, const Sets& sets, const std::optional<plan::TimeRequest>& request,
    const std::vector<std::string>& folders, Log& log) {
  const RivalList list = list_rivals(config, sets, {.plans = true}, folders);
  MethodTable table{
      .configured = list.configured,
      .measured = request && !request->compute,
      .left_out =
          mapped(list.left_out, [](const LeftOut& one) { return std::pair(one.name, one.why); })};
  for (const RivalPlan& rival : list.rivals) {
    if (table.measured) {
      log.live(formatted(
          "measuring {} ({} of {})", rival.name, table.rows.size() + 1, list.rivals.size()));
    }
    table.rows.push_back(
        {rival.name, rival.why, rival.set, plan::outline_of(rival.options, request)});
    if (rival.name == list.configured) {
      const config::RunOptions& o = rival.options;
      table.title = formatted(
          "{}: {} on {}, {} {}", o.name, o.model.name, o.data.name, o.workers,
          o.workers == 1 ? "worker" : "workers");
    }
    if (rival.name.starts_with("small_")) {
      table.parameters = list.parameters;
    }
  }
  log.live("");
  if (request) {
    table.network = plan::link_text(request->network);
  }
  std::ranges::stable_sort(
      table.rows, {}, [&](const Row& row) { return cost_of(row, table.measured); });
  return table;
}

std::string method_table_text(const MethodTable& table) {
  std::string out = table.title + "; as configured: " + table.configured + "\n";
  out += table.network.empty() ? "" : table.network + "\n";
  const auto line = [](const std::string& first, std::vector<std::string> others) {
    others.insert(others.begin(), first);
    return others;
  };
  std::vector<std::vector<std::string>> lines = {line("method", titles(table))};
  for (const Row& row : table.rows) {
    lines.push_back(line(row.name, cells(table, row)));
  }
  Said warnings;
  for (const Row& row : table.rows) {
    for (const std::string& warning : row.outline.warnings) {
      warnings.emplace_back(row.name, warning);
    }
  }
  const std::size_t rows = table.rows.size();
  return out + "\n" + grid_text(lines) + notes_text(table) + said_text("warnings", warnings, rows) +
         said_text("left out", table.left_out, rows + table.left_out.size());
}

ordered_json method_table_json(const MethodTable& table) {
  const auto row_json = [&](const Row& row) {
    const plan::Outline& outline = row.outline;
    ordered_json json = {
        {"name", row.name},
        {"why", row.why},
        {"set", row.set},
        {"steps", outline.steps},
        {"bytes_per_worker", bounds_json(outline.bytes)},
        {"parameters", bounds_json(outline.stored)},
        {"ranks_estimated", outline.estimated},
        {"memory_bytes", outline.memory},
        {"warnings", outline.warnings}};
    if (outline.communication) {
      json["seconds"] = {{"communication", bounds_json(*outline.communication)}};
      if (table.measured) {
        json["seconds"]["train"] = bounds_json(*outline.train);
      }
    }
    return json;
  };
  const auto left_out = [](const auto& one) -> ordered_json {
    return {{"name", one.first}, {"why", one.second}};
  };
  return {
      {"configured", table.configured},
      {"network", table.network.empty() ? ordered_json() : ordered_json(table.network)},
      {"methods", mapped(table.rows, row_json)},
      {"left_out", mapped(table.left_out, left_out)}};
}

}  // namespace abtrain::sweep
