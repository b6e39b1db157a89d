// Completion, as shells use it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "lacks.h"
#include "program.h"
#include "temp_folder.h"

namespace {

using namespace abtrain;

// All that a shell command prints; "FAILED" after it where it fails.
std::string shell(const std::string& command) {
  const Outcome outcome = run_shell(command + " 2>&1");
  return outcome.exit_code == 0 ? outcome.text : outcome.text + "FAILED";
}

bool has(const std::string& program) {
  return shell("command -v " + program + " >/dev/null") == "";
}

// In single quotes.
std::string shell_word(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

// What bash offers for a line, a word each; `words` are cut as bash cuts them.
class BashCompletion : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    script() = replaced(output_of("completion bash"), ABTRAIN_PROGRAM, quick_program());
  }
  static std::string& script() {
    static std::string text;
    return text;
  }
  void SetUp() override {
    folder_.add("script", script());
    folder_.add("configs/mine.yaml", "");
    folder_.add("configs/deep/other.yaml", "");
    folder_.add("here.yaml", "");
    folder_.add("notes.txt", "");
    folder_.add("runs/a/config.yaml", "");
    folder_.add("a=b.yaml", "");
    folder_.add("configs/$(touch x).yaml", "");
  }

  std::set<std::string> offers(const std::string& words) const {
    folder_.add(
        "ask", "cd '" + folder_.path() +
                   "' && source ./script\n"
                   "compopt() { :; }  # only inside a completion\n"
                   "COMP_WORDS=(abtrain " +
                   words +
                   ")\n"
                   "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                   "_abtrain && printf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const std::string text = shell("ABTRAIN_CONFIGS= bash --norc '" + folder_.file("ask") + "'");
    std::set<std::string> out;
    for (const std::string& line : split_text(text, '\n')) {
      if (!line.empty()) {
        out.insert(line);
      }
    }
    return out;
  }
  using Set = std::set<std::string>;
  TempFolder folder_;
};

TEST_F(BashCompletion, CommandsAreThoseOfTheHelp) {
  const std::string help = output_of("--help");
  const std::size_t begin = help.find("Train and look:");
  const std::string list = help.substr(begin, help.find("Examples:") - begin);
  const std::regex row(R"(\n  ([a-z-]+) )");
  Set expected;
  for (std::sregex_iterator it(list.begin(), list.end(), row), end; it != end; ++it) {
    expected.insert((*it)[1]);
  }
  EXPECT_GE(expected.size(), 7U);
  EXPECT_EQ(offers("''"), expected);
  EXPECT_EQ(offers("ev"), Set{"evaluate"});
}

TEST_F(BashCompletion, OptionsAreThoseOfTheCommand) {
  for (const char* command : {"train", "plan", "evaluate", "report", "doctor"}) {
    const std::string help = output_of(std::string(command) + " --help");
    const Set options = offers(std::string(command) + " -");
    EXPECT_TRUE(options.contains("--help"));
    const std::regex option(R"(--[a-z][a-z-]*)");
    for (const std::string& name : options) {
      EXPECT_TRUE(contains(help, name)) << command << " " << name;
    }
    for (std::sregex_iterator it(help.begin(), help.end(), option), end; it != end; ++it) {
      // The help's text may speak of others: those begin its lines.
      const auto at = static_cast<std::size_t>(it->position());
      if (help.rfind("\n  ", at) + 3 == at || help[at - 1] == ',') {
        EXPECT_TRUE(options.contains((*it)[0])) << command << " " << (*it)[0];
      }
    }
  }
  // Without a command they are those of train.
  EXPECT_TRUE(offers("--res") == Set{"--resume"});
  EXPECT_TRUE(offers("plan --res").empty());
}

TEST_F(BashCompletion, ConfigurationsByNameAndPath) {
  const Set all = offers("--config ''");
  for (const char* name : {"mine", "deep/other", "here.yaml", "configs", "runs"}) {
    EXPECT_TRUE(all.contains(name)) << name;
  }
  EXPECT_TRUE(all.contains("fashion_mnist_mlp"));  // beside the program
  EXPECT_FALSE(all.contains("notes.txt"));
  EXPECT_EQ(offers("plan -c deep/"), Set{"deep/other"});
  const Set sizes = offers("plan --same-size-as ''");
  EXPECT_TRUE(sizes.contains("mine") && sizes.contains("runs"));
  EXPECT_EQ(offers("--config = he"), Set{"here.yaml"});
  EXPECT_EQ(offers("--config = a = "), Set{"b.yaml"});
  EXPECT_EQ(offers("--config '\"he'"), Set{"here.yaml"});
}

TEST_F(BashCompletion, KeysAndTheirValues) {
  EXPECT_EQ(offers("train --set train.log_e"), Set{"train.log_every="});
  EXPECT_EQ(offers("--set method.name = ''"), (Set{"ab", "ddp", "local-sgd", "diloco"}));
  EXPECT_EQ(offers("--set method.name = d"), (Set{"ddp", "diloco"}));
  EXPECT_EQ(offers("--set = evaluate.train = t"), Set{"true"});
  EXPECT_EQ(offers("--set seed = 3 --set = devi"), Set{"device="});
  EXPECT_TRUE(offers("--set seed = ''").empty());
  EXPECT_TRUE(offers("--set nonsense = ''").empty());
  // Every key that a configuration has.
  const std::string page = shell("cat '" ABTRAIN_SOURCE_DIR "/docs/config.md'");
  const Set keys = offers("--set ''");
  EXPECT_GT(keys.size(), 100U);
  for (const std::string& key : keys) {
    std::string name = key.substr(0, key.size() - 1);
    for (const char* place : {"method.outer.wire.", "method.full_phase.reducer."}) {
      name = name.starts_with(place) ? "reducer." + name.substr(std::string(place).size()) : name;
    }
    EXPECT_TRUE(contains(page, "\n| `" + name + "` |")) << key;
  }
}

TEST_F(BashCompletion, PositionalsAndWords) {
  EXPECT_EQ(offers("evaluate ru"), Set{"runs"});
  for (const std::string command : {"", "train ", "plan "}) {
    EXPECT_EQ(offers(command + "mi"), Set{"mine"}) << command;
    EXPECT_EQ(offers(command + "mine devi"), Set{"device="}) << command;
    EXPECT_EQ(offers(command + "mine seed = 3 method.name = di"), Set{"diloco"}) << command;
    EXPECT_EQ(offers(command + "-c mine devi"), Set{"device="}) << command;
  }
  EXPECT_EQ(offers("help ge"), Set{"generate"});
  EXPECT_EQ(offers("help optimizer.l"), (Set{"optimizer.l1", "optimizer.lr"}));
  EXPECT_EQ(offers("report runs/a runs/"), Set{"runs/a"});
  EXPECT_EQ(offers("report --sort comm"), Set{"communication_share"});
  EXPECT_EQ(offers("report --where method.name = dil"), Set{"diloco"});
  EXPECT_EQ(offers("completion ''"), (Set{"bash", "zsh", "fish"}));
  EXPECT_TRUE(offers("completion bash z").empty());
  EXPECT_EQ(offers("--resume a"), Set{"auto"});
  EXPECT_EQ(offers("--name ''"), Set{});
  EXPECT_EQ(offers("plan --format ''"), (Set{"table", "json"}));
  EXPECT_EQ(offers("decompose no"), Set{"notes.txt"});
  EXPECT_EQ(offers("sweep --grid devi"), Set{"device="});
  EXPECT_EQ(offers("sweep --grid method.name = ab,d"), (Set{"ab,ddp", "ab,diloco"}));
  // In quotes, bash cuts nothing.
  EXPECT_EQ(offers("--set \"'method.name=di\""), Set{"method.name=diloco"});
  EXPECT_EQ(offers("nonsense ''"), Set{});
  EXPECT_EQ(offers("evaluate runs/a --model no"), Set{"notes.txt"});
}

// Neither the words nor the names of files are executed.
TEST_F(BashCompletion, ExecutesNothing) {
  EXPECT_EQ(offers("--name '$(touch x)' --res"), Set{"--resume"});
  EXPECT_EQ(offers("'$(touch y)' ''"), Set{});
  EXPECT_EQ(offers("'$(touch x)' devi"), Set{"device="});  // a configuration
  EXPECT_EQ(offers("--config '$(to'"), Set{"$(touch x)"});
  EXPECT_EQ(offers("decompose '`touch x`/'"), Set{});
  EXPECT_EQ(offers("--set '$(touch x)' = '$(touch x)'"), Set{});
  EXPECT_FALSE(std::filesystem::exists(folder_.file("x")));
}

// What the scripts ask the program.
TEST(Completion, PrintsCandidatesWithDescriptions) {
  const std::string commands = output_of("complete -- ev");
  EXPECT_TRUE(contains(commands, "evaluate\tmeasure the model of a run"));
  EXPECT_TRUE(contains(commands, "train\t"));  // the shell chooses
  EXPECT_FALSE(contains(commands, "complete\t"));
  EXPECT_FALSE(contains(output_of("--help"), "  complete "));
  EXPECT_EQ(
      output_of("complete -- --set=evaluate.train=t"),
      "--set=evaluate.train=false\n--set=evaluate.train=true\n");
  EXPECT_EQ(output_of("complete -- --resume ''"), "auto\nnone\n:folders\n");
  EXPECT_EQ(output_of("complete decompose ''"), ":files *\n");
  for (const char* words : {"", "--", "nonsense ''", "--set", "-- --nonsense=", "train -x ''"}) {
    EXPECT_EQ(expect_exit(0, std::string("complete ") + words), "") << words;
  }
}

TEST(Completion, ScriptsAreSound) {
  const TempFolder folder;
  const std::string program = ABTRAIN_PROGRAM;
  for (const std::string name : {"bash", "zsh", "fish"}) {
    const std::string text = output_of("completion " + name);
    expect_has(text, "command '" + program + "' complete");
    const std::string file = folder.add(name, text);
    if (has(name)) {
      EXPECT_EQ(shell(name + " -n '" + file + "'"), "") << name;
    }
  }
  // Found in $PATH, the program is called by its name.
  EXPECT_TRUE(contains(
      shell(
          "PATH='" + program.substr(0, program.rfind('/')) + "':\"$PATH\" abtrain completion bash"),
      "command 'abtrain' complete"));
  expect_exit(2, "completion tcsh");
  expect_exit(2, "completion");
}

TEST(FishCompletion, OffersWordsAndFiles) {
  if (!has("fish")) {
    GTEST_SKIP() << "no fish";
  }
  const TempFolder folder;
  folder.add("here.yaml", "");
  folder.add("notes.txt", "");
  folder.add("runs/a/config.yaml", "");
  folder.add("script", output_of("completion fish"));
  const auto offers = [&](const std::string& line) {
    return shell(
        "cd '" + folder.path() + "' && HOME=$PWD fish -c 'source script; " +
        "complete -C $argv[1]' -- " + shell_word(line));
  };
  EXPECT_TRUE(offers("abtrain ev").starts_with("evaluate\tmeasure"));
  EXPECT_EQ(offers("abtrain --set method.name=d"), "method.name=ddp\nmethod.name=diloco\n");
  EXPECT_EQ(offers("abtrain --config=he"), "--config=here.yaml\n");
  EXPECT_FALSE(contains(offers("abtrain plan -c not"), "notes.txt"));
  EXPECT_EQ(offers("abtrain decompose \"no"), "notes.txt\n");
  EXPECT_EQ(offers("abtrain evaluate ru"), "runs/\n");
  EXPECT_TRUE(offers("abtrain --name '(touch x)' --overw").starts_with("--overwrite\t"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("x")));
}

// As zsh takes it: sourced, with or without compinit before, and as a function
// that it loads from $fpath. Each completes a line typed into a terminal.
TEST(ZshCompletion, WorksSourcedAndLoaded) {
  if (!has("zsh")) {
    ABT_LACKS("zsh");
  }
  const TempFolder folder;
  folder.add("functions/_abtrain", output_of("completion zsh"));
  folder.add("here.yaml", "");
  const std::string program = ABTRAIN_PROGRAM;
  const std::string init = "autoload -Uz compinit && compinit -u -D";
  const std::string source = "source <('" + program + "' completion zsh)";
  const std::vector<std::string> setups = {
      init + "; " + source, "zstyle x y; " + source,
      "fpath=('" + folder.file("functions") + "' $fpath); " + init};
  for (const std::string& setup : setups) {
    folder.add(
        "ask",
        "zmodload zsh/zpty\n"
        "cd '" +
            folder.path() +
            "'\n"
            "zpty z zsh -f -i\n"
            "ask() { zpty -w z \"$1\"; zpty -r -m z text \"*$2*\"; }\n"
            "ask 'PS1= TERM=dumb HOME=$PWD; unsetopt zle_bracketed_paste; echo "
            "he\"\"re' here\n"
            "ask " +
            shell_word(setup + "; echo se''t") +
            " set\n"
            "ask 'path=(" +
            program.substr(0, program.rfind('/')) +
            " $path); echo rea''dy' ready\n"
            "zpty -w -n z $'abtrain eva\\t'\n"
            "zpty -r -m z text '*evaluate*' && print -r -- \"${(V)text}\"\n"
            "zpty -w -n z $'\\C-uabtrain --name \\'$(touch x)\\' "
            "--set=method.name=dd\\t'\n"
            "zpty -r -m z text '*=ddp*' && print -r -- \"${(V)text}\"\n"
            "zpty -w -n z $'\\C-uabtrain plan -c her\\t'\n"
            "zpty -r -m z text '*here.yaml*' && print -r -- \"${(V)text}\"\n"
            "zpty -d z\n");
    const std::string text = shell("timeout 30 zsh -f '" + folder.file("ask") + "'");
    EXPECT_TRUE(contains(text, "abtrain evaluate")) << setup << text;
    EXPECT_TRUE(contains(text, "method.name=ddp")) << setup << text;
    EXPECT_TRUE(contains(text, "here.yaml")) << setup << text;
    EXPECT_FALSE(contains(text, "can only be called")) << text;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("x")));
}

// The table of exit codes in docs/commands.md, and the one of the program.
TEST(ExitCodes, AreThoseOfTheDocs) {
  const std::string page = shell("cat '" ABTRAIN_SOURCE_DIR "/docs/commands.md'");
  const std::size_t begin = page.find("## Exit codes");
  const std::string table = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  std::set<int> documented;
  const std::regex row(R"(\n\| ([0-9, ]+) \|)");
  for (std::sregex_iterator it(table.begin(), table.end(), row), end; it != end; ++it) {
    for (const std::string& code : split_text((*it)[1].str(), ',')) {
      documented.insert(std::stoi(code));
    }
  }
  EXPECT_EQ(documented, std::set<int>(kExitCodes.begin(), kExitCodes.end()));
}

}  // namespace
