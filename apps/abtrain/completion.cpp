// abtrain completion: scripts with which bash, zsh and fish ask the program (complete.cpp) for
// candidates. Typed text goes into the call only as quoted arguments, and candidates are never
// evaluated.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/env.h"
#include "base/text.h"
#include "choice_option.h"
#include "commands.h"

namespace abtrain::app {

namespace {

// In each script, @PROGRAM@ stands for the program.

// Bash splits words at '=' and ':' if COMP_WORDBREAKS has them, and replaces only the text after
// the last of them. `head` is the text before, which it keeps.
constexpr const char* kBash =
    R"SH(# Completion of abtrain for bash, made by `abtrain completion bash`.
_abtrain() {
  local breaks=${COMP_WORDBREAKS//[^:=]/} word head joins= path line
  local -a words=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    [[ ($joins || $word == [$breaks]*) && $words ]] || words+=('')
    head=${words[-1]}
    words[-1]+=${word#[\"\']}
    [[ $word == +([$breaks]) ]] && joins=yes head=${words[-1]} || joins=
  done
  word=${words[-1]} path=$word COMPREPLY=()
  [[ $word == --*=* ]] && path=${word#*=}
  while IFS= read -r line; do
    if [[ $line == :files\ * || $line == :folders ]]; then
      compopt -o filenames
      mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
        compgen -P "${word%"$path"}" -d -- "$path"
        compgen -P "${word%"$path"}" -f -X "!${line#:files }" -- "$path"
      )
    elif [[ $line == "$word"* ]]; then
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <(command @PROGRAM@ complete -- "${words[@]}" 2>/dev/null)
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
  COMPREPLY=("${COMPREPLY[@]#"$head"}")
}
complete -F _abtrain abtrain
)SH";

// As a file _abtrain in $fpath, the script is the body of that function. If it is sourced, it
// registers the function for the command.
constexpr const char* kZsh = R"SH(#compdef abtrain
# Completion of abtrain for zsh, made by `abtrain completion zsh`.
_abtrain() {
  local line ret=1
  local -a found space paths
  for line in "${(@f)$(command @PROGRAM@ complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $line in
      :folders) paths=(-/) ;;
      :files\ *) paths=(-g "${line#* }") ;;
      ?*) line=${line//\\/\\\\} found+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
  done
  [[ ${found[1]-} == *=(|:*) ]] && space=(-S '')
  (( $#found )) && _describe -t values value found "${space[@]}" && ret=0
  if (( $#paths )); then
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    _files "${paths[@]}" && ret=0
  fi
  return ret
}
if [[ ${funcstack[1]-} == _abtrain ]]; then
  _abtrain "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
  compdef _abtrain abtrain
fi
)SH";

constexpr const char* kFish =
    R"SH(# Completion of abtrain for fish, made by `abtrain completion fish`.
function __abtrain
    set -l word (commandline -ct)
    set -l typed (commandline -opc)[2..] (string trim -l -c '"\'' -- "$word")
    set -l option (string match -r -- '^--[^=]*=' "$word")
    set -l path (string replace -- "$option" '' "$word")
    for line in (command @PROGRAM@ complete -- $typed 2>/dev/null)
        if string match -q -r '^:(files |folders$)' -- $line
            set -l glob (string replace ':files ' '' -- $line)
            for name in (complete -C "'' $path" | string replace -r '\t.*' '')
                string match -q '*/' -- $name; or string match -q -- $glob $name
                and printf '%s\n' "$option$name"
            end
        else
            printf '%s\n' $line
        end
    end
end
complete -c abtrain -f -a '(__abtrain)'
)SH";

// Quotes a text in single quotes, in a way that all three shells read.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' || c == '\\' ? formatted("'\\{}'", c) : std::string(1, c);
  }
  return out + "'";
}

}  // namespace

Command add_completion(CLI::App& parser, const std::string& called) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = *parser.add_subcommand(
      "completion", "print a script that completes commands, options and keys");
  one_of(
      command.add_option("shell", *shell, "the shell to print the script for"),
      {"bash", "zsh", "fish"})
      ->required();
  command.footer(
      "Examples:\n"
      "  source <(abtrain completion bash)\n"
      "  abtrain completion fish "
      ">~/.config/fish/completions/abtrain.fish\n");
  return {&command, [shell, called] {
            const char* script = *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish;
            // The program's name as it was called, or its path if it was called by one.
            const bool is_name = called.find('/') == std::string::npos;
            std::cout
                << replaced(
                       script, "@PROGRAM@",
                       quoted(is_name ? called : env("ABTRAIN_LAUNCHER").value_or(program_path())))
                << std::flush;
            return 0;
          }};
}

}  // namespace abtrain::app
