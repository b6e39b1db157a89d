#include "base/text.h"
#include "completion.h"

namespace abtrain::app {

namespace {

constexpr const char* kScript =
    R"SH(# Completion of abtrain for bash, made by `abtrain completion bash`.

# $1: a command, or empty before one is named. Prints its commands and options.
_abtrain_words() {
  case $1 in
@WORDS@  esac
}

# $1: a command and an option, or a positional as #1, #2, ... or #*. Sets kind
# (file, folder, config, key or nothing) and choices; fails where none is taken.
_abtrain_value() {
  kind= choices=
  case $1 in
@VALUES@    *) return 1 ;;
  esac
}

_abtrain_keys='@KEYS@'

# Prints the words that the key $1 accepts, if they are limited.
_abtrain_choices() {
  case $1 in
@CHOICES@  esac
}

# Prints the names of the configurations that the program $1 finds.
_abtrain_configs() {
  local program folder name IFS=:
  program=$(type -P -- "$1") && program=$(readlink -f -- "$program")
  for folder in $ABTRAIN_CONFIGS configs "${program%/*/*}/share/abtrain/configs" \
    "${program%/*/*/*}/configs"; do
    [[ -d $folder ]] || continue
    find -L "$folder" -name '*.yaml' -printf '%P\n' 2>/dev/null
  done | sed 's/\.yaml$//' | sort -u
}

_abtrain() {
  # The words up to the cursor, rejoined: bash splits them at '=' and ':'.
  local -a words=()
  local i word join=
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $join || $word == [=:]* ]] && ((${#words[@]} > 1)); then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    join=
    [[ $word == [=:] ]] && join=yes
  done
  local current=${words[-1]} count=${#words[@]}

  # The command, and the option whose value the word at the cursor is.
  local command= option= kind choices positional=0
  for ((i = 1; i < count - 1; ++i)); do
    word=${words[i]}
    if [[ $option ]]; then
      option=
    elif [[ $word == -* ]]; then
      [[ $command ]] || command=@DEFAULT@
      [[ $word != *=* ]] && _abtrain_value "$command $word" && option=$word
    elif [[ " $(_abtrain_words "$command") " == *" $word "* ]]; then
      command+=${command:+ }$word
    else
      positional=$((positional + 1))
    fi
  done

  local candidates= prefix=$current
  if [[ -z $option && $current == --*=* ]]; then
    option=${current%%=*} prefix=${current#*=}
    _abtrain_value "${command:-@DEFAULT@} $option" || return
  elif [[ $option ]]; then
    _abtrain_value "$command $option"
  elif [[ $current == -* ]]; then
    kind= choices=$(_abtrain_words "${command:-@DEFAULT@}")
    [[ $command ]] || choices+=" $(_abtrain_words '')"
  else
    # A positional value, else a command, else the options.
    _abtrain_value "$command #$((positional + 1))" || _abtrain_value "$command #*" || {
      choices=" $(_abtrain_words "$command")"
      word=${choices%% -*}
      choices=${word:-$choices}
    }
  fi

  case $kind in
    file) mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$prefix"; compgen -f -- "$prefix") ;;
    folder) mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$prefix"; compgen -d -- "$prefix") ;;
    config)
      mapfile -t COMPREPLY < <({
        compgen -W "$(_abtrain_configs "${words[0]}")" -- "$prefix"
        compgen -f -X '!*.yaml' -- "$prefix"
        compgen -d -- "$prefix"
      } | sort -u)
      ;;
    key)
      if [[ $prefix == *=* ]]; then
        word=${prefix%%=*}
        mapfile -t COMPREPLY < <(compgen -P "$word=" -W "$(_abtrain_choices "$word")" -- "${prefix#*=}")
      else
        mapfile -t COMPREPLY < <(compgen -S = -W "$_abtrain_keys" -- "$prefix")
        compopt -o nospace
      fi
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$prefix") ;;
  esac
  [[ $kind == file || $kind == folder || $kind == config ]] && compopt -o filenames
  # Bash replaces only what follows the last '=' or ':'.
  if [[ $COMP_WORDBREAKS == *=* && $prefix == *[=:]* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${prefix%"${prefix##*[=:]}"}"}")
  fi
}

complete -F _abtrain abtrain
)SH";

const char* word_of(Completes completes) {
  switch (completes) {
    case Completes::File:
      return "file";
    case Completes::Folder:
      return "folder";
    case Completes::Config:
      return "config";
    case Completes::Key:
      return "key";
    case Completes::Nothing:
      break;
  }
  return "";
}

std::string value_case(const std::string& names, const OptionInfo& option) {
  return str(
      "    ",
      names,
      ") kind=",
      word_of(option.completes),
      " choices='",
      join(option.choices, " "),
      "' ;;\n");
}

std::string values_of(const CommandInfo& command) {
  std::string out;
  for (const OptionInfo* option : flags_of(command)) {
    if (!option->value.empty()) {
      std::vector<std::string> names;
      for (const std::string& name : option->names) {
        names.push_back("'" + command.name() + " " + name + "'");
      }
      out += value_case(join(names, " | "), *option);
    }
  }
  int place = 0;
  for (const OptionInfo* option : positionals_of(command)) {
    ++place;
    const std::string which = option->repeats ? "*" : std::to_string(place);
    out += value_case("'" + command.name() + " #" + which + "'", *option);
  }
  return out;
}

}  // namespace

std::string bash_completion(
    const CommandInfo& program,
    const std::vector<KeyInfo>& keys) {
  std::string words;
  std::string values;
  for (const CommandInfo* command : all_commands(program)) {
    std::vector<std::string> all;
    for (const CommandInfo& below : command->commands) {
      all.push_back(below.path.back());
    }
    for (const OptionInfo* option : flags_of(*command)) {
      all.insert(all.end(), option->names.begin(), option->names.end());
    }
    words +=
        str("    '", command->name(), "') echo '", join(all, " "), "' ;;\n");
    values += values_of(*command);
  }
  std::vector<std::string> names;
  std::string choices;
  for (const KeyInfo& key : keys) {
    names.push_back(key.name);
    if (!key.choices.empty()) {
      choices +=
          str("    '", key.name, "') echo '", join(key.choices, " "), "' ;;\n");
    }
  }
  return filled(
      kScript,
      {{"WORDS", words},
       {"VALUES", values},
       {"KEYS", join(names, " ")},
       {"CHOICES", choices},
       {"DEFAULT", kDefaultCommand}});
}

}  // namespace abtrain::app
