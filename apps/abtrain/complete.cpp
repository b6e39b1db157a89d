// abtrain complete: prints the completions of a command line. The shells' scripts (completion.cpp)
// call it with the words after the program's name:
//   abtrain complete -- WORD...
// The last word, which may be empty, is the one being typed. Each printed line is a candidate for
// that whole word, perhaps followed by a tab and a description. The shell filters the candidates,
// since some shells match more than beginnings. The last line may be a directive, which adds paths:
//   :folders      folders
//   :files GLOB   folders, and files with matching names
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <functional>
#include <iostream>
#include <map>

#include "base/options_apply.h"
#include "base/text.h"
#include "commands.h"
#include "config/run_options.h"
#include "configuration.h"

namespace abtrain::app {

namespace {

struct Candidates {
  std::map<std::string, std::string> words;  // with their descriptions
  std::string directive;

  std::string text() const {
    std::string out;
    for (const auto& [word, help] : words) {
      if (printable(word) == word) {  // else it is the name of an odd file
        out += word + (help.empty() ? "" : "\t" + help) + "\n";
      }
    }
    return directive.empty() ? out : out + directive + "\n";
  }
};

// Names of configurations, and files that may be configurations.
void add_config_names(const std::string& before, Candidates& out) {
  for (const std::string& name : configuration_names()) {
    out.words[before + name];
  }
  out.directive = ":files *.yaml";
}

// A key with its '=' or, once the '=' is typed, a value of the key.
void add_keys(const std::string& before, const std::string& typed, Candidates& out) {
  const std::size_t equals = typed.find('=');
  // In a list of values, completion continues after the last comma.
  const std::string begin = typed.substr(0, typed.find_last_of("=,") + 1);
  config::RunOptions defaults;
  each_key(config::fields_of(defaults).list(), [&](const std::string& name, const Field& field) {
    if (equals == std::string::npos) {
      out.words[before + name + "="] = field.help;
    } else if (typed.substr(0, equals) == name) {
      for (const std::string& choice : field.choices) {
        out.words[before + begin + choice];
      }
    }
  });
}

bool is_word(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_';
  });
}

// The type name of an option determines the completions of its value: "auto|none|FOLDER" means two
// accepted words, or a folder. `before` is the part of the word before the value, such as "--set=".
void add_values(
    const CLI::Option& option, const std::string& before, const std::string& typed,
    Candidates& out) {
  const std::string type = option.check_lname("config") ? "CONFIG" : option.get_type_name();
  for (const std::string& part : split_text(type, '|')) {
    if (is_word(part)) {
      out.words[before + part];
    } else if (part.starts_with("a.b=")) {
      add_keys(before, typed, out);
    } else if (part == "KEY") {
      config::RunOptions defaults;
      each_key(
          config::fields_of(defaults).list(),
          [&](const std::string& name, const Field& field) { out.words[name] = field.help; });
    } else if (part == "CONFIG") {
      add_config_names(before, out);
    } else if (part == "FOLDER" || part == "RUN") {
      out.directive = ":folders";
    } else if (
        part.find("FILE") != std::string::npos || part == "IN" || part == "OUT" ||
        part.ends_with(".yaml")) {
      out.directive = ":files *";
    }
  }
}

void add_options(const CLI::App& command, Candidates& out) {
  for (const CLI::Option* option : command.get_options(std::mem_fn(&CLI::Option::nonpositional))) {
    for (const std::string& name : split_text(option->get_name(false, /*all_options=*/true), ',')) {
      out.words[name] = option->get_description();
    }
  }
}

const CLI::App* command_named(const CLI::App& program, const std::string& name) {
  const auto commands = program.get_subcommands({});
  const auto found = std::ranges::find(commands, name, &CLI::App::get_name);
  return found == commands.end() ? nullptr : *found;
}

// The option of this name, if it takes a value.
const CLI::Option* valued_option(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

const CLI::Option* positional(const CLI::App& command, std::size_t place) {
  const auto all = command.get_options(std::mem_fn(&CLI::Option::get_positional));
  if (place >= all.size()) {
    return !all.empty() && all.back()->get_items_expected_max() > 1 ? all.back() : nullptr;
  }
  return all[place];
}

Candidates candidates(const CLI::App& program, const std::vector<std::string>& words) {
  Candidates out;
  const CLI::App* named = nullptr;
  // If no command is named, `train` is meant.
  const CLI::App* command = command_named(program, "train");
  const CLI::Option* option = nullptr;  // takes the next word as its value
  std::size_t place = 0;               // positionals before the last word
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (option != nullptr) {
      // --config takes the place of the first positional.
      place += option->check_lname("config") ? 1 : 0;
      option = nullptr;
    } else if (word.starts_with('-')) {
      named = command;
      option = valued_option(*command, word);
    } else if (named != nullptr) {
      ++place;
    } else {
      named = command_named(program, word);
      if (named == nullptr && !names_configuration(word)) {
        return out;
      }
      place += named == nullptr ? 1 : 0;  // `abtrain CONFIG` trains
      named = command = named == nullptr ? command : named;
    }
  }
  const std::string& last = words.back();
  const bool dash = last.starts_with('-');
  const std::size_t equals = last.find('=');
  if (option != nullptr) {
    add_values(*option, "", last, out);
  } else if (dash && equals != std::string::npos) {
    option = valued_option(*command, last.substr(0, equals));
    if (option != nullptr) {
      add_values(*option, last.substr(0, equals + 1), last.substr(equals + 1), out);
    }
  } else if (named == nullptr && !dash) {
    for (const CLI::App* each : program.get_subcommands({})) {
      out.words[each->get_name()] = each->get_description();
    }
    if (!last.empty()) {
      add_config_names("", out);
    }
  } else if (positional(*command, place) != nullptr && !dash) {
    add_values(*positional(*command, place), "", last, out);
  } else {
    add_options(*command, out);
    if (named == nullptr) {
      add_options(program, out);
    }
  }
  return out;
}

}  // namespace

int complete(const CLI::App& parser, std::vector<std::string> words) {
  try {
    if (!words.empty() && words.front() == "--") {
      words.erase(words.begin());
    }
    if (words.empty()) {
      words.emplace_back();
    }
    std::cout << candidates(parser, words).text();
  } catch (const std::exception&) {
    // Reports no error, which would garble the command line that is being typed.
  }
  return 0;
}

}  // namespace abtrain::app
