#include "config/config.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/options_apply.h"
#include "comm/groups.h"
#include "config/check_options.h"
#include "config/config_search.h"
#include "config/other_words.h"
#include "config/short_run.h"
#include "config/yaml.h"
#include "methods/ab/synchronize.h"
#include "methods/method_kind.h"

namespace abtrain::config {
namespace {

namespace fs = std::filesystem;
using Kind = Value::Kind;

class Reader {
 public:
  Reader(RunOptions& options, const ConfigContext& context)
      : options_(options), fields_(fields_of(options)), context_(context) {}

  void file(const std::string& path) {
    // Each file is read only once, even if two files extend it.
    const std::string identity = real_path(path).string();
    if (!read_.insert(identity).second) {
      return;
    }
    under_way_.push_back(identity);
    Value root =
        parse_yaml(read_file(path, kMaxText, context_.fifo), path, true, reading_.problems);
    const auto of_sweep = std::ranges::find_if(root.entries, [](const Entry& entry) {
      return entry.key == "base" || entry.key == "grid";
    });
    unreadable_ = unreadable_ || root.kind != Kind::Section || of_sweep != root.entries.end();
    if (of_sweep != root.entries.end()) {
      problem(
          of_sweep->place, of_sweep->key,
          formatted(
              "this is a sweep file, not a configuration; `abtrain sweep {}` "
              "trains its points",
              path));
    } else if (root.kind == Kind::Section) {
      extend(root, path);
      files_.push_back(std::move(root));
    } else if (root.kind == Kind::Nothing) {
      problem({path, 1, 1, ""}, "", "the file is empty; expected keys");
    } else if (root.kind == Kind::Scalar || root.kind == Kind::List) {
      problem(
          root.place, "", formatted("expected keys, as in 'workers: 4', got {}", describe(root)));
    }
    under_way_.pop_back();
  }

  void override_by(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const Override override = parse_override(text, "--set", reading_.problems);
      if (!override.key.empty()) {
        overrides_.push_back(as_section(override));
      }
    }
    for (const Override& override : context_.last) {
      overrides_.push_back(as_section(override));
    }
  }

  // Adapts values that depend on how the run is started, and checks for conflicting keys.
  void finish(const std::string& path) {
    apply_all();
    set_workers();
    const auto steps = reading_.settings.find("train.steps");
    if (steps != reading_.settings.end() && is_override(steps->second) && !is_bad("train.steps") &&
        options_.train.steps > 0 && options_.train.seconds == 0) {
      const auto is_given = [&](const std::string& key) {
        const auto set = reading_.settings.find(key);
        return set != reading_.settings.end() &&
               (set->second.bad || (is_override(set->second) && !context_.shortens_all));
      };
      for (std::string& each : fit_warmups(options_, is_given)) {
        note(std::move(each));
      }
    }
    // If a file could not be read, defaults replace its values and would cause false conflicts.
    if (!unreadable_) {
      for (const Conflict& conflict : check(options_)) {
        blame(conflict, path);
      }
    }
    throw_any(reading_.problems, ErrorKind::Config);
  }

 private:
  // Applies all keys that have an effect with the choices made. A key may precede the choice that
  // it belongs to, so a first pass finds the choices.
  void apply_all() {
    RunOptions draft;
    const Fields choices = fields_of(draft);
    ReadResult ignored;
    for (const auto& sections : {files_, overrides_}) {
      for (const Value& section : sections) {
        apply(choices, section, ignored, instead_of);
      }
    }
    const std::map<std::string, Owner> unowned = unowned_keys(choices);
    for (const Value& section : files_) {
      apply(fields_, section, reading_, instead_of, unowned);
    }
    last_of_files_ = reading_.last_order;
    for (const Value& section : overrides_) {
      apply(fields_, section, reading_, instead_of, unowned);
    }
    std::set<std::string> left_out;
    for (const auto& [key, setting] : reading_.unowned) {
      const Owner& owner = unowned.at(key);
      const auto choice = reading_.settings.find(owner.decided_by);
      const bool chosen_later =
          choice != reading_.settings.end() && choice->second.order > setting.order;
      if (!is_override(setting) || chosen_later || context_.shares_overrides) {
        left_out.insert(key);
      } else if (!is_bad(owner.decided_by)) {
        problem(setting.place, key, owner.message);
      }
    }
    if (!left_out.empty()) {
      note(formatted(
          "without effect, because they belong to other choices than this run's: {}",
          join({left_out.begin(), left_out.end()}, ", ")));
    }
  }

  void problem(const Location& place, const std::string& key, std::string message) {
    reading_.problems.push_back({place, key, std::move(message)});
  }

  void note(std::string text) {
    if (context_.notes != nullptr) {
      context_.notes->push_back(std::move(text));
    }
  }
  // Whether the setting comes from the command line or a point of a sweep.
  bool is_override(const ReadResult::Setting& setting) const {
    return setting.order > last_of_files_;
  }

  void set_workers() {
    const auto set = reading_.settings.find("workers");
    const bool is_set = set != reading_.settings.end();
    if (context_.launched == 0) {
      const methods::MethodOptions& method = options_.method;
      if (!is_set && methods::kind_of(method).factors_weights &&
          method.sync != methods::SyncMode::OnlyB && method.group_size.value_or(1) == 1) {
        options_.workers = 2;
      }
      return;
    }
    const std::int64_t before = std::exchange(options_.workers, context_.launched);
    if (!is_set || set->second.bad || before == context_.launched) {
      return;
    }
    if (is_override(set->second)) {
      set->second.bad = true;  // else conflicts with this value would be reported too
      problem(
          set->second.place, "workers",
          formatted(
              "the launcher has started {} processes, got {} (under a "
              "launcher, leave the key out)",
              context_.launched, before));
      return;
    }
    const std::int64_t each = options_.data.batch_size * options_.train.accumulate;
    note(formatted(
        "workers: the {} processes of the launcher instead of {}, so a step "
        "takes {} examples instead of {}",
        context_.launched, before, each * context_.launched, each * before));
    fit_groups(before);
  }

  // If a file's group size fits the file's number of workers but not the launcher's, replaces it by
  // auto.
  void fit_groups(int before) {
    methods::MethodOptions& method = options_.method;
    const auto set = reading_.settings.find("method.group_size");
    const std::optional<std::int64_t> given = method.group_size;
    const int workers = options_.workers;
    if (set != reading_.settings.end() && !set->second.bad && !is_override(set->second) && given &&
        methods::kind_of(method).factors_weights &&
        comm::fits(before, *given, methods::has_one_role(method)) &&
        methods::fit_group_size(method, workers)) {
      note(formatted(
          "method.group_size: auto, so {}, instead of {}, which does not fit {} "
          "workers",
          comm::auto_group_size(workers), *given, workers));
    }
  }

  // Removes `extends` from the section and reads the files that it names.
  void extend(Value& root, const std::string& path) {
    std::vector<Entry> others;
    bool extended = false;
    for (Entry& entry : root.entries) {
      if (entry.key != "extends") {
        others.push_back(std::move(entry));
      } else if (extended) {
        problem(entry.place, "extends", "given twice");
      } else {
        extended = true;
        const bool is_list = entry.value.kind == Kind::List;
        if (is_list && entry.value.items.empty()) {
          problem(entry.value.place, "extends", "expected a file, got none");
        }
        for (const Value& name : is_list ? entry.value.items : std::vector<Value>{entry.value}) {
          extend_by(name, entry.place, path);
        }
      }
    }
    root.entries = std::move(others);
  }

  void extend_by(const Value& name, const Location& key_place, const std::string& path) {
    if (name.kind == Kind::Invalid) {
      return;
    }
    if (name.kind != Kind::Scalar || name.text.empty()) {
      problem(
          name.kind == Kind::Nothing ? key_place : name.place, "extends",
          "expected a file or a list of files, got " + describe(name));
      return;
    }
    const ConfigSearch search =
        search_config(name.text, fs::path(path).parent_path().string(), context_.folders);
    if (search.found.empty()) {
      unreadable_ = true;
      problem(name.place, "extends", search.problem);
      return;
    }
    const std::string identity = real_path(search.found).string();
    const auto begin = std::find(under_way_.begin(), under_way_.end(), identity);
    if (begin != under_way_.end()) {
      std::vector<std::string> circle;
      for (auto file = begin; file != under_way_.end(); ++file) {
        circle.push_back(fs::path(*file).filename().string());
      }
      circle.push_back(circle.front());
      problem(
          name.place, "extends", "the files extend each other in a cycle: " + join(circle, " -> "));
      return;
    }
    file(search.found);
  }

  // Whether a key, or a section that holds it, has a problem.
  bool is_bad(const std::string& key) const {
    return std::ranges::any_of(reading_.settings, [&](const auto& set) {
      return set.second.bad && (key + ".").starts_with(set.first + ".");
    });
  }

  // Reports the conflict at the key that was set last, because that setting caused it.
  void blame(const Conflict& conflict, const std::string& path) {
    const ReadResult::Setting* last = nullptr;
    for (const std::string& key : conflict.keys) {
      if (is_bad(key)) {
        return;  // the key's problem is reported already, and its value is only the default
      }
      const auto set = reading_.settings.find(key);
      if (set != reading_.settings.end() && (last == nullptr || set->second.order > last->order)) {
        last = &set->second;
      }
    }
    const Location whole{path.empty() ? "defaults" : path, 0, 0, ""};
    problem(last == nullptr ? whole : last->place, conflict.keys.front(), conflict.message);
  }

  RunOptions& options_;
  Fields fields_;
  const ConfigContext& context_;
  ReadResult reading_;
  std::vector<Value> files_, overrides_;  // in the order in which they are applied
  int last_of_files_ = 0;                 // the order of the last setting of a file
  bool unreadable_ = false;
  std::set<std::string> read_;
  std::vector<std::string> under_way_;
};

}  // namespace

RunOptions read_config(
    const std::string& path, const std::vector<std::string>& overrides,
    const ConfigContext& context) {
  RunOptions options;
  Reader reader(options, context);
  std::string found;
  if (!path.empty()) {
    found = find_config("configuration", path, "", context.folders);
    std::error_code error;
    if (fs::is_directory(path, error) && context.notes != nullptr) {
      context.notes->push_back(formatted("'{}' is a folder; the configuration is {}", path, found));
    }
    reader.file(found);
  }
  reader.override_by(overrides);
  reader.finish(found);
  return options;
}

std::string to_yaml(const RunOptions& options) {
  RunOptions copy = options;
  return abtrain::to_yaml(fields_of(copy));
}

std::string network_yaml(const RunOptions& options) {
  const auto name_only = [](std::optional<std::string> path) {
    return path ? std::optional(std::filesystem::path(*path).filename().string()) : path;
  };
  nn::ModelOptions model = options.model;
  model.file = name_only(model.file);
  const nn::ModelOptions untrained;
  model.init = untrained.init;
  model.weights = untrained.weights;
  model.adapter = untrained.adapter;
  model.fresh = untrained.fresh;
  model.frozen = untrained.frozen;
  data::DataOptions data = options.data;
  const data::DataOptions unread;
  data.batch_size = unread.batch_size;
  data.augment = unread.augment;
  data.erase = unread.erase;
  data.validation = unread.validation;
  data.shards = unread.shards;
  data.on_device = unread.on_device;
  data.decode_threads = unread.decode_threads;
  data.max_damaged = unread.max_damaged;
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_file = data.root && fs::is_regular_file(*data.root, ignored);
  if (data.test) {
    const fs::path folder =
        is_file ? fs::path(*data.root).parent_path() : fs::path(data.root.value_or("."));
    const fs::path inside = fs::path(*data.test).lexically_relative(folder).lexically_normal();
    const bool lies_inside = data.root && !inside.empty() && *inside.begin() != "..";
    data.test = lies_inside ? inside.string() : name_only(data.test);
  }
  data.root = is_file     ? name_only(data.root)
              : data.root ? std::optional<std::string>(".")
                          : std::nullopt;
  Fields fields;
  fields.section("data", data::fields_of(data), "");
  fields.section("model", nn::fields_of(model), "");
  return abtrain::to_yaml(fields);
}

}  // namespace abtrain::config
