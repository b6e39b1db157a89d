#include "sweep/sweep_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/options.h"
#include "base/options_apply.h"
#include "base/scalars.h"
#include "config/config.h"
#include "config/yaml.h"
#include "sweep/assignments.h"
#include "sweep/halving_section.h"

namespace abtrain::sweep {

namespace {

namespace fs = std::filesystem;
using Kind = Value::Kind;

constexpr std::int64_t kMaxSeeds = 10000;

// The sections of a sweep file as they were written, and the name of its base.
struct Sections {
  std::string base;
  Value set, grid, list, exclude, seeds, halving;
};

Fields fields_of(Sweep& sweep, Sections& s) {
  Fields f;
  f.path("base", s.base, "the configuration");
  f.folder_name("name", sweep.name, "of the folder that holds the run folders");
  f.path("output", sweep.output, "where that folder is created");
  f.value("set", s.set, "for all points");
  f.value("grid", s.grid, "keys with lists of values");
  f.value("list", s.list, "further points");
  f.value("exclude", s.exclude, "points to leave out");
  f.value("seeds", s.seeds, "of each point");
  f.value("halving", s.halving, "rivals that are tuned first");
  return f;
}

// True if the file has no key `base`, but keys of a configuration.
bool is_configuration(const Value& root) {
  constexpr std::array kOfAConfiguration{"extends", "model", "method", "data", "train", "workers"};
  const auto is_of = [&](const Entry& entry) {
    return std::ranges::count(kOfAConfiguration, entry.key) > 0;
  };
  return std::ranges::count(root.entries, "base", &Entry::key) == 0 &&
         std::ranges::any_of(root.entries, is_of);
}

class SweepReader {
 public:
  explicit SweepReader(const std::vector<std::string>& folders) {
    sweep_.folders = folders;
  }

  void file(const std::string& name) {
    std::vector<std::string> places;
    for (const std::string& folder : sweep_.folders) {
      places.push_back(folder);
      places.push_back(folder + "/sweeps");
    }
    sweep_.file = config::find_config("sweep", name, "", places);
    sweep_.name = fs::path(sweep_.file).stem().string();
    const Value root = config::parse_yaml(
        read_file(sweep_.file, kMaxText, Fifo::Wait), sweep_.file, true, problems());
    Sections sections;
    if (is_configuration(root)) {
      assignments_.problem(
          root.place, "",
          formatted(
              "this is a configuration, not a sweep file; `abtrain {}` trains "
              "it, and `abtrain sweep --config {} --grid KEY=VALUE,...` varies "
              "it",
              sweep_.file, sweep_.file));
    } else if (root.kind == Kind::Section) {
      apply(fields_of(sweep_, sections), root, reading_);
      take(sections);
    } else if (root.kind != Kind::Invalid) {
      assignments_.problem(
          root.kind == Kind::Nothing ? Location{sweep_.file, 1, 1, ""} : root.place, "",
          formatted("expected a sweep, as in 'base: fashion_mnist_mlp', got {}", describe(root)));
    }
  }

  void command_line(const std::string& config, const std::vector<std::string>& grid) {
    sweep_.base = config::find_config("configuration", config, "", sweep_.folders);
    sweep_.name = fs::path(sweep_.base).stem().string() + "_sweep";
    for (const std::string& text : grid) {
      // Read as a YAML flow list, so that values may contain commas.
      const std::size_t equals = text.find('=');
      const std::string as_list =
          equals == std::string::npos
              ? text
              : formatted("{}=[{}]", text.substr(0, equals), text.substr(equals + 1));
      config::Override values = config::parse_override(as_list, "--grid", problems());
      values.value.place.source = "--grid " + text;
      if (!values.key.empty()) {
        sweep_.grid.push_back(choices(values.key, values.value.place, values.value));
      }
    }
  }

  void set_seeds(const std::string& text) {
    const bool is_list = text.find(',') != std::string::npos && !trim(text).starts_with('[');
    seeds(config::parse_yaml(
        is_list ? "[" + text + "]" : text, "--seeds " + text, false, problems()));
  }

  void set_all(const std::vector<std::string>& sets) {
    for (const std::string& text : sets) {
      const config::Override one = config::parse_override(text, "--set", problems());
      if (!one.key.empty()) {
        Choice choice;
        assignments_.add(one.key, one.place, one.value, choice);
        append(choice, sweep_.sets);
        std::ranges::move(choice, std::back_inserter(common_));
      }
    }
  }

  // Sets the names given on the command line; "" keeps the current name. Checks the default name,
  // too: it comes from the file and may be no valid folder name.
  void set_names(const std::string& name, const std::string& output) {
    const auto set = [&](const char* key, const std::string& text, const std::string& source) {
      Sections none;
      const auto own = config::literal_override(key, text, {source, 0, 0, ""});
      apply(fields_of(sweep_, none), config::as_section(own), reading_);
    };
    if (!name.empty()) {
      set("name", name, "--name " + name);
    } else if (!reading_.settings.contains("name")) {
      set("name", sweep_.name, sweep_.source());
    }
    if (!output.empty()) {
      set("output", output, "--output " + output);
    }
  }

  Sweep finish() {
    if (sweep_.halving) {
      give_all(*sweep_.halving, common_, assignments_);
    }
    find_repeated_keys(sweep_, problems());
    if (problems().empty() && sweep_.grid.empty() && sweep_.list.empty() && sweep_.seeds.empty() &&
        !sweep_.halving) {
      assignments_.problem(
          {sweep_.source(), 0, 0, ""}, "",
          "nothing is varied; expected at least one of grid, list, seeds and "
          "halving");
    }
    throw_any(problems(), ErrorKind::Config);
    return std::move(sweep_);
  }

 private:
  std::vector<Problem>& problems() {
    return reading_.problems;
  }
  static void append(const Choice& choice, std::vector<config::Override>& overrides) {
    std::ranges::transform(choice, std::back_inserter(overrides), &Assignment::override);
  }

  void take(const Sections& sections) {
    find_base(sections.base);
    if (is_there(sections.set, "set", Kind::Section)) {
      Choice common;
      assignments_.add_section("", sections.set, common);
      append(common, sweep_.common);
      common_ = std::move(common);
    }
    if (is_there(sections.grid, "grid", Kind::Section)) {
      grid(sections.grid, "");
    }
    items(sections.list, "list", sweep_.list);
    items(sections.exclude, "exclude", sweep_.exclude);
    if (reading_.settings.contains("seeds")) {
      seeds(sections.seeds);
    }
    if (is_there(sections.halving, "halving", Kind::Section)) {
      for (const char* other : {"grid", "list", "exclude"}) {
        if (reading_.settings.contains(other)) {
          assignments_.problem(
              reading_.settings.at(other).place, other,
              "does not go with halving, whose rivals are the points");
        }
      }
      sweep_.halving = read_halving(sections.halving, assignments_);
    }
  }

  void find_base(const std::string& name) {
    const auto set = reading_.settings.find("base");
    if (set == reading_.settings.end()) {
      assignments_.problem(
          {sweep_.file, 0, 0, ""}, "base",
          "is missing; expected the configuration to vary, as in 'base: "
          "fashion_mnist_mlp'");
      return;
    }
    if (set->second.bad) {
      return;
    }
    try {
      const std::string beside = fs::path(sweep_.file).parent_path().string();
      sweep_.base = config::find_config("configuration", name, beside, sweep_.folders);
    } catch (const Error& error) {
      assignments_.problem(set->second.place, "base", error.what());
    }
  }

  // True if a section was given and is not empty. Appends a problem if it is empty or of another
  // kind.
  bool is_there(const Value& value, const std::string& key, Kind kind) {
    const auto set = reading_.settings.find(key);
    if (set == reading_.settings.end() || value.kind == Kind::Invalid) {
      return false;
    }
    const bool is_empty = kind == Kind::List ? value.items.empty() : value.entries.empty();
    if (value.kind == kind && !is_empty) {
      return true;
    }
    assignments_.problem(
        value.kind == Kind::Nothing ? set->second.place : value.place, key,
        formatted(
            "expected {}, got {}",
            kind == Kind::List ? "a list of points, as in '- {workers: 4}'"
            : key == "grid"    ? "keys with lists of values, as in 'workers: "
                                 "[2, 4]'"
                               : "keys with values, as in 'workers: 4'",
            value.kind == kind ? "none" : describe(value)));
    return false;
  }

  // {a: {b: [1, 2]}} means {a.b: [1, 2]}.
  void grid(const Value& section, const std::string& prefix) {
    for (const Entry& entry : section.entries) {
      const std::string key = prefix + entry.key;
      if (entry.value.kind == Kind::Section && !entry.value.entries.empty()) {
        grid(entry.value, key + ".");
      } else {
        sweep_.grid.push_back(choices(key, entry.place, entry.value));
      }
    }
  }

  // The values of a key that the sweep varies; none if there is a problem.
  std::vector<Choice> choices(const std::string& key, const Location& place, const Value& values) {
    if (values.kind == Kind::Invalid) {
      return {};
    }
    if (values.kind != Kind::List || values.items.empty()) {
      assignments_.problem(
          values.kind == Kind::Nothing ? place : values.place, key,
          formatted(
              "expected a list of values, got {}{}",
              values.kind == Kind::List ? "none" : describe(values),
              values.kind == Kind::Scalar ? formatted(" (write [{}])", values.text) : ""));
      return {};
    }
    std::vector<Choice> all;
    std::set<std::string> known;
    for (const Value& item : values.items) {
      Choice choice;
      assignments_.add(key, place, item, choice);
      if (!choice.empty() && !known.insert(text_of(choice)).second) {
        assignments_.problem(item.place, key, "given twice: " + text_of(choice));
      }
      all.push_back(std::move(choice));
    }
    return all;
  }

  void items(const Value& list, const std::string& key, std::vector<Choice>& out) {
    if (!is_there(list, key, Kind::List)) {
      return;
    }
    for (const Value& item : list.items) {
      if (item.kind == Kind::Invalid) {
        continue;
      }
      Choice choice;
      if (item.kind == Kind::Section && !item.entries.empty()) {
        assignments_.add_section("", item, choice);
      } else {
        assignments_.problem(
            item.kind == Kind::Nothing ? list.place : item.place, key,
            formatted(
                "expected keys with values, as in '- {{workers: 4}}', got {}", describe(item)));
      }
      out.push_back(std::move(choice));
    }
  }

  // A number N means the seeds 1, 2, ..., N.
  void seeds(const Value& value) {
    Value list = value;
    if (value.kind == Kind::Scalar) {
      std::int64_t count = 0;
      std::string why;
      if (!parse_integer(value.text, count, why) || count < 1 || count > kMaxSeeds) {
        assignments_.problem(
            value.place, "seeds",
            formatted(
                "expected a list of seeds, or their number, from 1 to {}, got "
                "{}",
                kMaxSeeds, describe(value)));
        return;
      }
      list.kind = Kind::List;
      for (std::int64_t seed = 1; seed <= count; ++seed) {
        Value item = value;
        item.text = std::to_string(seed);
        list.items.push_back(item);
      }
    }
    sweep_.seeds = choices("seed", list.place, list);
  }

  Sweep sweep_;
  Choice common_;  // from `set` and --set
  ReadResult reading_;
  AssignmentReader assignments_{reading_.problems};
};

}  // namespace

Sweep read_sweep(const SweepArgs& args, const std::vector<std::string>& folders) {
  ABT_CHECK(
      args.file.empty() != args.config.empty(), Usage,
      "expected a sweep file, or --config with --grid; got {}",
      args.file.empty() ? "neither" : "both");
  ABT_CHECK(
      args.file.empty() || args.grid.empty(), Usage,
      "--grid goes with --config; a sweep file has its own grid");
  SweepReader reader(folders);
  if (args.file.empty()) {
    reader.command_line(args.config, args.grid);
  } else {
    reader.file(args.file);
  }
  if (!args.seeds.empty()) {
    reader.set_seeds(args.seeds);
  }
  reader.set_all(args.sets);
  reader.set_names(args.name, args.output);
  return reader.finish();
}

}  // namespace abtrain::sweep
