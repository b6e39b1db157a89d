// abtrain complete: what may stand at the end of a command line. The shells'
// scripts (completion.cpp) call it, with the words after the program's name:
//   abtrain complete -- WORD...
// The last word, which may be empty, is the one being typed. Each line that is
// printed is a candidate for all of it, perhaps with a tab and a description.
// The shell chooses those that match what is typed: some match more than
// beginnings. The last line may be a directive, which adds paths:
//   :folders      folders
//   :files GLOB   folders, and the files whose names match
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "base/options_apply.h"
#include "base/text.h"
#include "command_line.h"
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

// Configurations by their names, and files that may be some.
void add_config_names(const std::string& before, Candidates& out) {
  for (const std::string& name : configuration_names()) {
    out.words[before + name];
  }
  out.directive = ":files *.yaml";
}

// A key with its '=', or the value of the key whose '=' is typed.
void add_keys(const std::string& before, const std::string& typed, Candidates& out) {
  const std::size_t equals = typed.find('=');
  // A list of values goes on after its last comma.
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

// `before` is what precedes the value in its word, such as "--set=".
void add_values(
    const OptionInfo& option, const std::string& before, const std::string& typed,
    Candidates& out) {
  for (const std::string& choice : option.choices) {
    out.words[before + choice];
  }
  switch (option.completes) {
    case Completes::Key:
      add_keys(before, typed, out);
      break;
    case Completes::Config:
      add_config_names(before, out);
      break;
    case Completes::File:
      out.directive = ":files *";
      break;
    case Completes::Folder:
      out.directive = ":folders";
      break;
    case Completes::Nothing:
      break;
  }
}

void add_options(const CommandInfo& command, Candidates& out) {
  for (const OptionInfo& option : command.options) {
    for (const std::string& name : option.names) {
      out.words[name] = option.help;
    }
  }
}

const CommandInfo* command_named(const CommandInfo& program, const std::string& name) {
  const auto found = std::ranges::find(program.commands, name, &CommandInfo::name);
  return found == program.commands.end() ? nullptr : &*found;
}

// The option of this name, if it takes a value.
const OptionInfo* valued_option(const CommandInfo& command, const std::string& name) {
  for (const OptionInfo& option : command.options) {
    if (!option.value.empty() && std::ranges::count(option.names, name) > 0) {
      return &option;
    }
  }
  return nullptr;
}

const OptionInfo* positional(const CommandInfo& command, std::size_t place) {
  const auto& all = command.positionals;
  if (place >= all.size()) {
    return !all.empty() && all.back().repeats ? &all.back() : nullptr;
  }
  return &all[place];
}

Candidates candidates(const CommandInfo& program, const std::vector<std::string>& words) {
  Candidates out;
  const CommandInfo* named = nullptr;
  // Where no command is named, the options are those of train.
  const CommandInfo* command = command_named(program, "train");
  const OptionInfo* option = nullptr;  // the one whose value comes next
  std::size_t place = 0;               // positionals before the last word
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (option != nullptr) {
      // An option may take the place of the first positional.
      place += std::ranges::count(option->names, "--config") > 0 ? 1 : 0;
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
    for (const CommandInfo& each : program.commands) {
      out.words[each.name] = each.help;
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
    std::cout << candidates(describe_parser(parser), words).text();
  } catch (const std::exception&) {
    // Whatever goes wrong, a line that is being typed is no place to say so.
  }
  return 0;
}

}  // namespace abtrain::app
