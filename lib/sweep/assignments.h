// Splits the values of a sweep into single keys and checks each of them against the table of
// configuration keys.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/options.h"
#include "config/run_options.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

class AssignmentReader {
 public:
  // Appends problems to `problems`, which must outlive the reader.
  explicit AssignmentReader(std::vector<Problem>& problems) : problems_(problems) {}
  AssignmentReader(const AssignmentReader&) = delete;
  AssignmentReader& operator=(const AssignmentReader&) = delete;

  // Appends the assignments in `value` to `out`: for method.rank, {rule: energy, keep: 0.8} holds
  // two. `place`: where the key is written, for error messages.
  void add(const std::string& key, const Location& place, const Value& value, Choice& out);
  // Adds all keys of a section; `prefix` is "" or ends with a '.'.
  void add_section(const std::string& prefix, const Value& section, Choice& out);
  // Reads `section` into the options of `fields`.
  void read(const Fields& fields, const Value& section);
  // Reads a step of a rival's tuning: {a.b: 3, c.d: x 2}, where x 2 doubles the rival's value.
  Move move(const Value& section);
  void problem(const Location& place, const std::string& key, std::string text) {
    problems_.push_back({place, key, std::move(text)});
  }

 private:
  // Returns the value in its printed form; if the key cannot take it, appends a problem and returns
  // "".
  std::string checked(const config::Override& override);

  std::vector<Problem>& problems_;
  config::RunOptions options_;  // receives the values, to check them
  Fields fields_ = fields_of(options_);
};

// The field with this full name, or null.
const Field* find_field(const Fields& all, const std::string& key);

// "3", or "rule: energy, keep: 0.8"; equal choices have equal texts.
std::string text_of(const Choice& choice);
// True if `whole` sets every key that `part` sets, to the same value.
bool contains(const Choice& whole, const Choice& part);

void for_each_assignment(const std::vector<Choice>& choices, const auto& visit) {
  for (const Choice& choice : choices) {
    std::ranges::for_each(choice, visit);
  }
}

// Appends a problem for each key that is varied twice (by grid or `seeds`), or that is varied and
// set by `set` or `--set`. Only items of `list` may override `set`.
void find_repeated_keys(const Sweep& sweep, std::vector<Problem>& problems);

}  // namespace abtrain::sweep
