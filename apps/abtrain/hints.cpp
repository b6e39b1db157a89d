#include "hints.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "base/options_apply.h"
#include "base/text.h"
#include "config/other_words.h"
#include "config/run_options.h"

namespace abtrain::app {

namespace {

// Options of other programs, and abtrain's options for the same purpose; see also
// config/other_words.h.
constexpr std::pair<const char*, const char*> kElsewhere[] = {
    {"-v", "--version"},          {"-V", "--version"},           {"--cfg", "--config"},
    {"--conf", "--config"},       {"--config-name", "--config"}, {"--checkpoint", "--resume"},
    {"--output-dir", "--output"}, {"--save-dir", "--output"}};

// Options of earlier versions that environment variables have replaced.
constexpr const char* kProcesses[] = {
    "--rank", "--processes", "--local-rank", "--local-processes", "--meet-at"};

// The option with dashes in place of underscores, and without a value.
std::string spelled(const std::string& option) {
  std::string out = option.substr(0, option.find('='));
  std::ranges::replace(out, '_', '-');
  return out;
}

// The value given with an option: `--lr=0.1` or `--lr 0.1`.
std::string value_of(const std::string& option, const std::vector<std::string>& words) {
  if (const std::size_t equals = option.find('='); equals != option.npos) {
    return option.substr(equals + 1);
  }
  const auto at = std::ranges::find(words, option);
  const bool has_value = at < words.end() - 1 && !at[1].starts_with('-') && !at[1].empty();
  return has_value ? at[1] : "...";
}

}  // namespace

std::string key_named(std::string word) {
  std::ranges::replace(word, '-', '_');
  config::RunOptions defaults;
  std::string found;
  for (const std::string& key : keys_of(config::fields_of(defaults))) {
    const bool matches = key == word || key == word + ".name" || key.ends_with("." + word);
    if (matches && (found.empty() || key.size() < found.size())) {
      found = key;
    }
  }
  return found;
}

std::string advice_on(
    const CLI::App& command, const std::string& option, const std::vector<std::string>& words) {
  const auto question = [](const std::string& meant) {
    return meant.empty() ? "" : formatted("did you mean {}?", meant);
  };
  std::vector<std::string> names;
  for (const CLI::Option* each : command.get_options()) {
    for (const std::string& name : each->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  const std::string given = spelled(option);
  for (const auto& [other, meant] : kElsewhere) {
    if (given == other &&
        (std::ranges::count(names, meant) > 0 || given == "-v" || given == "-V")) {
      return question(meant);
    }
  }
  const bool trains = command.get_name() == "train" || command.get_name() == "sweep";
  if (trains && std::ranges::count(kProcesses, given) > 0) {
    return "set variables instead, as torchrun does: RANK=0 WORLD_SIZE=2 MASTER_ADDR=host0 "
           "MASTER_PORT=29500 abtrain ...";
  }
  // A single letter is close to every other letter.
  if (given.size() <= 2) {
    return "";
  }
  if (std::ranges::count(names, "--set") > 0) {
    const std::string word = given.substr(2);
    const std::optional<Instead> instead = config::instead_of(word);
    const std::string key = instead ? instead->key : key_named(word);
    if (!key.empty()) {
      const bool has_overrides = command.get_option_no_throw("overrides") != nullptr;
      return question((has_overrides ? "" : "--set ") + key + "=" + value_of(option, words));
    }
    if (instead) {
      return advice(*instead);
    }
  }
  return question(nearest(given, names));
}

}  // namespace abtrain::app
