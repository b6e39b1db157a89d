// abtrain help: the options of a command, or keys of a configuration with their default, range and
// meaning, as in docs/config.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/options_apply.h"
#include "base/text.h"
#include "commands.h"
#include "config/other_words.h"
#include "config/run_options.h"
#include "hints.h"

namespace abtrain::app {

namespace {

// The text in lines of at most 80 columns, each indented.
std::string paragraph(const std::string& text) {
  const std::string indent(4, ' ');
  return indent + replaced(wrapped(text, 80 - indent.size()), "\n", "\n" + indent) + "\n";
}

const char* on_resume(MayChange when) {
  switch (when) {
    case MayChange::Never:
      return "";
    case MayChange::Always:
      return "A resumed run may change it.";
    case MayChange::WithWorkers:
      return "A resumed run may change it along with its workers.";
    case MayChange::WhenLonger:
      return "A resumed run may change it when it is extended.";
    case MayChange::ToAuto:
      return "A resumed run may change it to auto.";
  }
  return "";
}

std::string text_of(const std::string& name, const Field& field) {
  const std::string resume = on_resume(field.may_change);
  const std::string section = name.substr(0, name.size() - field.key.size());
  const std::string owners =
      field.owners.empty()
          ? ""
          : formatted("Only with {}{} {}.", section, field.decided_by, join(field.owners, ", "));
  std::string text = formatted("{} = {}\n", name, field.print());
  for (const std::string& each :
       {std::string(field.help), "Expected: " + field.wanted + ".", owners, resume}) {
    text += each.empty() ? "" : paragraph(each);
  }
  return text;
}

// The text on the key of this name, or on the keys of the section; "" if there is none. `train.`
// means the section train, because `train` is a command.
std::string text_of_keys(const std::string& word) {
  config::RunOptions defaults;
  const Fields fields = config::fields_of(defaults);
  const std::string prefix = word.ends_with('.') ? word : word + ".";
  std::string out;
  for (const Field& section : fields.list()) {
    if (section.is_section() && prefix == section.key + ".") {
      out = formatted("{}: {}\n\n", section.key, section.help);
    }
  }
  each_key(fields.list(), [&](const std::string& name, const Field& field) {
    if (name == word || name.starts_with(prefix)) {
      out += text_of(name, field);
    }
  });
  return out;
}

std::string advice_on(const std::string& word, std::vector<std::string> known) {
  if (const std::optional<Instead> instead = config::instead_of(word)) {
    return "; " + advice(*instead);
  }
  std::string meant = key_named(word);
  if (meant.empty()) {
    config::RunOptions defaults;
    for (const std::string& key : keys_of(config::fields_of(defaults))) {
      known.push_back(key);
      known.push_back(key.substr(0, key.rfind('.')));
    }
    meant = nearest(word, known);
  }
  return meant.empty() ? "" : formatted("; did you mean '{}'?", meant);
}

}  // namespace

Command add_help(CLI::App& parser, const std::vector<std::string>& verbs) {
  auto word = std::make_shared<std::string>();
  CLI::App& command =
      *parser.add_subcommand("help", "print the options of a command, or what a key means");
  command
      .add_option(
          "what", *word,
          "a command, a key such as optimizer.lr, or a section of keys (train. and evaluate. with "
          "a dot)")
      ->type_name(join(verbs, "|") + "|KEY");
  return {&command, [word, verbs] {
            const std::string text = text_of_keys(*word);
            ABT_CHECK(
                !text.empty(), Usage, "'{}' is neither a command nor a key of a configuration{}",
                *word, advice_on(*word, verbs));
            print(text);
            return 0;
          }};
}

}  // namespace abtrain::app
