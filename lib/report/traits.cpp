#include "report/traits.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/mapped.h"
#include "base/text.h"

namespace abtrain::report {

namespace {

std::string steps_text(const Setting& setting) {
  const auto known =
      std::ranges::find_if(setting.runs, [](const RunRecord& run) { return run.steps > 0; });
  return known == setting.runs.end() ? "" : std::to_string(known->steps);
}

// "finished", "running at step 40 of 60", "2 finished, 1 killed".
std::string state_text(const Setting& setting) {
  const RunRecord& first = setting.runs.front();
  if (setting.runs.size() == 1) {
    return first.progress();
  }
  std::map<run_folder::RunState, int> counts;
  for (const RunRecord& run : setting.runs) {
    ++counts[run.state];
  }
  if (counts.size() == 1) {
    return name_of(first.state);
  }
  return join(
      mapped(
          counts, [](const auto& of) { return formatted("{} {}", of.second, name_of(of.first)); }),
      ", ");
}

// Lists each worker that is slow in one of the runs, once.
std::string slowest_text(const Setting& setting) {
  std::set<std::string> names;
  for (const RunRecord& run : setting.runs) {
    if (run.summary && !run.summary->slowest.empty()) {
      names.insert(run.summary->slowest);
    }
  }
  return join({names.begin(), names.end()}, ", ");
}

}  // namespace

std::vector<Trait> all_traits() {
  return {
      {.key = "data",
       .help = "the data set",
       .of = [](const Setting& s) { return s.runs.front().data; }},
      {.key = "model",
       .help = "the model's family",
       .of = [](const Setting& s) { return s.runs.front().value_of("model.name"); }},
      {.key = "method",
       .help = "how the workers train together",
       .of = [](const Setting& s) { return s.runs.front().value_of("method.name"); }},
      {.key = "steps", .help = "steps of the whole run", .is_number = true, .of = steps_text},
      {.key = "state",
       .help = "whether the runs have finished; of one that has not, its last "
               "step",
       .of = state_text},
      {.key = "slowest",
       .help = "the worker and the host for which the others wait more than a "
               "tenth of the time",
       .of = slowest_text}};
}

std::vector<Trait> shown_traits(const std::vector<Setting>& settings) {
  std::vector<Trait> traits = all_traits();
  std::erase_if(traits, [&](const Trait& trait) {
    const auto words = mapped(settings, trait.of);
    std::set<std::string> values(words.begin(), words.end());
    values.erase("");
    return trait.key == "state"     ? values == std::set<std::string>{"finished"}
           : trait.key == "slowest" ? values.empty()
                                    : values.size() < 2;
  });
  return traits;
}

}  // namespace abtrain::report
