#include "base/text.h"
#include "completion.h"

namespace abtrain::app {

namespace {

constexpr const char* kScript = R"SH(#compdef abtrain
# Completion of abtrain for zsh, made by `abtrain completion zsh`.

_abtrain_configs() {
  local program=${commands[$service]:-$service} folder
  program=${program:A}
  local -a names
  for folder in ${(s.:.)ABTRAIN_CONFIGS} configs ${program:h:h}/share/abtrain/configs ${program:h:h:h}/configs; do
    [[ -d $folder ]] && names+=($folder/**/*.yaml(N:r:s,$folder/,,))
  done
  _alternative 'names:configuration:compadd -a names' 'files:file:_files -g "*.yaml"'
}

_abtrain_keys() {
  local -a keys
  if compset -P 1 '*='; then
    case ${IPREFIX##*--set=} in
@CHOICES@    esac
    (( $#keys )) && _values value $keys
    return
  fi
  keys=(
@KEYS@  )
  _describe -t keys key keys -S =
}

@FUNCTIONS@
# As a file _abtrain in $fpath, this script is the body of that function. Where
# it is sourced, it registers the function for the command.
if [[ ${funcstack[1]-} == _abtrain ]]; then
  _abtrain "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
  compdef _abtrain abtrain
fi
)SH";

// Escapes ':', '[' and ']', which would end the text that they are in.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == ':' || c == '[' || c == ']' || c == '\\' ? "\\" : "";
    out += c;
  }
  return out;
}

std::string function_of(const CommandInfo& command) {
  return "_abtrain" +
         (command.path.empty() ? "" : "_" + join(command.path, "_"));
}

std::string action_of(const OptionInfo& option) {
  std::vector<std::string> actions;
  if (!option.choices.empty()) {
    actions.push_back("(" + join(option.choices, " ") + ")");
  }
  switch (option.completes) {
    case Completes::File:
      actions.emplace_back("_files");
      break;
    case Completes::Folder:
      actions.emplace_back("_files -/");
      break;
    case Completes::Config:
      actions.emplace_back("_abtrain_configs");
      break;
    case Completes::Key:
      actions.emplace_back("_abtrain_keys");
      break;
    case Completes::Nothing:
      break;
  }
  if (actions.size() < 2) {
    return actions.empty() ? " " : actions.front();
  }
  // _arguments evaluates this, and splits its arguments at colons.
  return "{_alternative \"words\\:word\\:" + actions.front() +
         "\" \"paths\\:path\\:" + actions.back() + "\"}";
}

std::string spec_of(const OptionInfo& option) {
  const std::string value = option.value.empty() ? ""
                                                 : ":" + escaped(option.value) +
                                                       ":" + action_of(option);
  if (option.is_positional()) {
    return shell_quoted((option.repeats ? "*" : "") + value);
  }
  const std::string help = "[" + escaped(option.help) + "]" + value;
  const std::string each = option.repeats ? "'*'"
                           : option.names.size() > 1
                               ? "'(" + join(option.names, " ") + ")'"
                               : "";
  const std::string mark = value.empty() ? "" : "=";
  if (option.names.size() == 1) {
    const std::string& name = option.names.front();
    return each + shell_quoted(name + mark + help);
  }
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(name + (name.starts_with("--") ? mark : ""));
  }
  return each + "{" + join(names, ",") + "}" + shell_quoted(help);
}

std::string function_text(const CommandInfo& command) {
  std::string out = function_of(command) + "() {\n";
  if (!command.commands.empty()) {
    out += "  local -a verbs=(\n";
    for (const CommandInfo& below : command.commands) {
      out += "    " +
             shell_quoted(below.path.back() + ":" + escaped(below.help)) + "\n";
    }
    out +=
        "  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
        "    _describe -t commands command verbs\n    return\n  fi\n"
        "  case $words[2] in\n";
    for (const CommandInfo& below : command.commands) {
      out +=
          str("    ",
              below.path.back(),
              ") shift words; (( --CURRENT )); ",
              function_of(below),
              "; return ;;\n");
    }
    if (command.path.empty()) {
      out += str("    -*) _abtrain_", kDefaultCommand, "; return ;;\n");
    }
    out += "  esac\n";
  }
  out += "  _arguments -s";
  for (const OptionInfo& option : command.options) {
    out += " \\\n    " + spec_of(option);
  }
  return out + "\n}\n\n";
}

}  // namespace

std::string zsh_completion(
    const CommandInfo& program,
    const std::vector<KeyInfo>& keys) {
  std::string functions;
  for (const CommandInfo* command : all_commands(program)) {
    functions += function_text(*command);
  }
  std::string names;
  std::string choices;
  for (const KeyInfo& key : keys) {
    names += "    " + shell_quoted(key.name + ":" + escaped(key.help)) + "\n";
    if (!key.choices.empty()) {
      choices += str(
          "      ", key.name, "=) keys=(", join(key.choices, " "), ") ;;\n");
    }
  }
  return filled(
      kScript,
      {{"KEYS", names}, {"CHOICES", choices}, {"FUNCTIONS", functions}});
}

}  // namespace abtrain::app
