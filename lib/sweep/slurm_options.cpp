#include "sweep/slurm_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "base/scalars.h"

namespace abtrain::sweep {

namespace {

constexpr std::string_view kKeptMark = "#   --";

// Letters of common options, and of options that the batch file may set itself.
constexpr std::array<std::pair<char, std::string_view>, 13> kLetters{
    {{'A', "account"},
     {'a', "array"},
     {'C', "constraint"},
     {'c', "cpus-per-task"},
     {'D', "chdir"},
     {'G', "gpus"},
     {'J', "job-name"},
     {'N', "nodes"},
     {'n', "ntasks"},
     {'o', "output"},
     {'p', "partition"},
     {'q', "qos"},
     {'t', "time"}}};

std::int64_t read_count(const std::string& text, const std::string& option) {
  std::int64_t count = 0;
  std::string why;
  ABT_CHECK(
      parse_integer(text, count, why) && count >= 1, Usage,
      "{}: expected an integer of at least 1, got '{}'", option, printable(text));
  return count;
}

void keep(SlurmOptions& options, const std::string& name, const std::string& value) {
  if (name == "jobs") {
    options.jobs = read_count(value, "--jobs");
  } else if (name == "points-per-job") {
    options.points_per_job = read_count(value, "--points-per-job");
  } else if (name == "launcher") {
    ABT_CHECK(!value.empty(), Usage, "--launcher: expected WORDS, got ''");
    options.launcher = value;
  } else {
    ABT_CHECK(
        name == "sbatch", Usage,
        "expected --jobs, --points-per-job, --launcher or --sbatch, got '--{}'", printable(name));
    options.sbatch.push_back(read_batch_option(value));
  }
}

}  // namespace

std::string BatchOption::line() const {
  // For Slurm '#' starts a comment, and a backslash escapes the next character.
  const std::string text = !value ? ""
                           : value->find_first_of(" '\"#\\") != std::string::npos
                               ? in_quotes(*value)
                               : *value;
  return name.size() == 1 ? formatted("-{}{}{}", name, value ? " " : "", text)
                          : formatted("--{}{}{}", name, value ? "=" : "", text);
}

std::string BatchOption::theme() const {
  if (name == "mem-per-cpu" || name == "mem-per-gpu") {
    return "mem";
  }
  if (name == "gpus" || name == "gpus-per-task" || name == "gpus-per-socket" ||
      (name == "gres" && value.value_or("").starts_with("gpu"))) {
    return "gpus-per-node";
  }
  return name == "no-requeue" ? "requeue" : name;
}

BatchOption read_batch_option(const std::string& text) {
  const std::string_view word = trim(text);
  const bool is_long = word.starts_with("--");
  const std::size_t begin = is_long ? 2 : 1;
  const std::size_t end = is_long ? std::min(word.find_first_of("= "), word.size())
                                  : std::min<std::size_t>(2, word.size());
  ABT_CHECK(
      word.starts_with('-') && end > begin && word[begin] != '-' && word[begin] != '=', Usage,
      "--sbatch: expected an option of sbatch, such as --sbatch=--partition=gpu, got '{}'",
      printable(text));
  ABT_CHECK(
      word.find(" -") == std::string_view::npos, Usage,
      "--sbatch: expected one option, got '{}'; give each option in a --sbatch of its own",
      printable(text));
  BatchOption option{std::string(word.substr(begin, end - begin))};
  if (end < word.size()) {
    const bool has_sign = is_long || word[end] == ' ' || word[end] == '=';
    option.value = trim(word.substr(end + (has_sign ? 1 : 0)));
  }
  const auto letter =
      std::ranges::find(kLetters, option.name.front(), [](const auto& one) { return one.first; });
  if (option.name.size() == 1 && letter != kLetters.end()) {
    option.name = letter->second;
  }
  ABT_CHECK(
      option.name != "array", Usage,
      "--sbatch: the batch file sets --array itself, because its numbers are the points of the "
      "sweep; expected --jobs K in place of '{}', or sbatch --array=... at the submission",
      printable(text));
  return option;
}

bool SlurmOptions::sets(const std::string& name) const {
  return std::ranges::count(sbatch, name, &BatchOption::theme) > 0;
}

std::vector<std::string> SlurmOptions::lines() const {
  std::vector<std::string> out;
  if (jobs) {
    out.push_back(formatted("--jobs={}", *jobs));
  }
  if (points_per_job) {
    out.push_back(formatted("--points-per-job={}", *points_per_job));
  }
  if (launcher) {
    out.push_back("--launcher=" + *launcher);
  }
  for (const BatchOption& option : sbatch) {
    const std::string dashes = option.name.size() == 1 ? "-" : "--";
    out.push_back(formatted(
        "--sbatch={}{}{}", dashes, option.name,
        option.value ? (dashes == "-" ? " " : "=") + *option.value : ""));
  }
  return out;
}

SlurmOptions kept_options(
    const std::string& text, const std::string& sweep, const std::string& path) {
  SlurmOptions kept;
  const std::vector<std::string> lines = split_text(text, '\n');
  if (lines.size() < 2 ||
      lines[1].find(formatted(" of the sweep {}, ", sweep)) == std::string::npos) {
    return kept;
  }
  for (std::size_t i = 0; i < lines.size() && lines[i].starts_with('#'); ++i) {
    const std::string& line = lines[i];
    if (!line.starts_with(kKeptMark)) {
      continue;
    }
    const std::size_t sign = std::min(line.find('='), line.size());
    try {
      keep(
          kept, line.substr(kKeptMark.size(), sign - kKeptMark.size()),
          sign < line.size() ? line.substr(sign + 1) : "");
    } catch (const Error& error) {
      throw Error(error.kind(), formatted("{}:{}: {}", path, i + 1, error.what()));
    }
  }
  return kept;
}

SlurmOptions completed(SlurmOptions given, const SlurmOptions& kept) {
  // If an option is given twice, the last one counts, as for sbatch.
  std::vector<BatchOption> sbatch;
  for (const SlurmOptions* options : {&kept, &std::as_const(given)}) {
    for (const BatchOption& option : options->sbatch) {
      std::erase_if(sbatch, [&](const auto& other) { return other.theme() == option.theme(); });
      sbatch.push_back(option);
    }
  }
  return {
      given.jobs ? given.jobs : kept.jobs,
      given.points_per_job ? given.points_per_job : kept.points_per_job,
      given.launcher ? given.launcher : kept.launcher, std::move(sbatch)};
}

}  // namespace abtrain::sweep
