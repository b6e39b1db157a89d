#include "base/text.h"
#include "completion.h"

namespace abtrain::app {

namespace {

constexpr const char* kScript =
    R"SH(# Completion of abtrain for fish, made by `abtrain completion fish`.

# Succeeds if the words before the cursor name this command.
function __abtrain_in
    set -l known @COMMANDS@
    set -l words (commandline -opc)[2..]
    set -l command
    if string match -q -- '-*' "$words[1]"
        set command @DEFAULT@
        set words
    end
    for word in $words
        set -l longer (string join ' ' -- $command $word)
        contains -- $longer $known; or break
        set command $longer
    end
    test "$command" = "$argv"
end

function __abtrain_configs
    set -l program (realpath -- (command -s -- (commandline -opc)[1]) 2>/dev/null)
    set -l place (string replace -r '/[^/]*/[^/]*$' '' -- "$program")
    for folder in (string split ':' -- $ABTRAIN_CONFIGS) configs $place/share/abtrain/configs (string replace -r '/[^/]*$' '' -- "$place")/configs
        test -d "$folder"; and find -L $folder -name '*.yaml' -printf '%P\n' 2>/dev/null
    end | string replace -r '\.yaml$' '' | sort -u
    __fish_complete_suffix .yaml
end

function __abtrain_keys
    set -l word (commandline -ct | string replace -r '^--set=' '')
    switch $word
@CHOICES@        case '*'
@KEYS@    end
end

complete -c abtrain -f
)SH";

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' || c == '\\' ? "\\" : "";
    out += c;
  }
  return out + "'";
}

// The completions of a value: words, paths, or the output of a function.
std::string values_of(const OptionInfo& option) {
  std::string out;
  switch (option.completes) {
    case Completes::File:
      out = " -F";
      break;
    case Completes::Folder:
      out = " -a '(__fish_complete_directories)'";
      break;
    case Completes::Config:
      out = " -a '(__abtrain_configs)'";
      break;
    case Completes::Key:
      out = " -a '(__abtrain_keys)'";
      break;
    case Completes::Nothing:
      break;
  }
  return option.choices.empty()
             ? out
             : out + " -a " + quoted(join(option.choices, " "));
}

std::string line_of(const std::string& condition, const OptionInfo& option) {
  std::string out = "complete -c abtrain -n " + quoted(condition);
  if (option.is_positional()) {
    const std::string values = values_of(option);
    return values.empty() ? "" : out + values + "\n";
  }
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2)
                                  : " -s " + name.substr(1);
  }
  if (!option.value.empty()) {
    // -r lets fish offer files, -x forbids them.
    out += option.completes == Completes::File ? " -r" : " -x";
    out += values_of(option);
  }
  return out + " -d " + quoted(option.help) + "\n";
}

}  // namespace

std::string fish_completion(
    const CommandInfo& program,
    const std::vector<KeyInfo>& keys) {
  std::string lines;
  std::vector<std::string> names;
  for (const CommandInfo* command : all_commands(program)) {
    const std::string condition =
        "__abtrain_in" + (command->path.empty() ? "" : " " + command->name());
    if (!command->path.empty()) {
      names.push_back(quoted(command->name()));
    }
    for (const CommandInfo& below : command->commands) {
      lines +=
          str("complete -c abtrain -n ",
              quoted(condition),
              " -a ",
              below.path.back(),
              " -d ",
              quoted(below.help),
              "\n");
    }
    for (const OptionInfo& option : command->options) {
      lines += line_of(condition, option);
      if (command->path == std::vector<std::string>{kDefaultCommand} &&
          !option.is_positional()) {
        lines += line_of("__abtrain_in", option);
      }
    }
  }
  std::string all;
  std::string choices;
  for (const KeyInfo& key : keys) {
    all +=
        str("            printf '%s=\\t%s\\n' ",
            key.name,
            " ",
            quoted(key.help),
            "\n");
    if (!key.choices.empty()) {
      choices +=
          str("        case '",
              key.name,
              "=*'\n            printf '",
              key.name,
              "=%s\\n' ",
              join(key.choices, " "),
              "\n");
    }
  }
  return filled(
             kScript,
             {{"COMMANDS", join(names, " ")},
              {"DEFAULT", kDefaultCommand},
              {"CHOICES", choices},
              {"KEYS", all}}) +
         lines;
}

}  // namespace abtrain::app
