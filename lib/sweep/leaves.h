// Values of a sweep, taken apart into single keys, each checked against the
// table of a configuration.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "config/run_options.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

class LeafReader {
 public:
  // Problems are appended to `problems`, which must outlive it.
  explicit LeafReader(std::vector<Problem>& problems) : problems_(problems) {}
  LeafReader(const LeafReader&) = delete;
  LeafReader& operator=(const LeafReader&) = delete;

  // {rule: energy, keep: 0.8} of method.rank are two leaves. `place`: of the
  // key, for a message about it.
  void add(
      const std::string& key,
      const Place& place,
      const Value& value,
      Choice& out);
  // All keys of a section; `prefix` is "" or ends with a '.'.
  void
  add_section(const std::string& prefix, const Value& section, Choice& out);

 private:
  // The value as it prints; a problem and "" where the key cannot take it.
  std::string checked(const config::Override& override);

  std::vector<Problem>& problems_;
  config::RunOptions options_;  // where values are tried
  Fields fields_ = fields_of(options_);
};

// "3", or "rule: energy, keep: 0.8"; the same for the same values.
std::string text_of(const Choice& choice);
// Whether `whole` sets all that `part` does, to the same values.
bool contains(const Choice& whole, const Choice& part);

// A key that is varied has its values from one place: a problem for each key
// that has them from two.
void find_repeated_keys(const Sweep& sweep, std::vector<Problem>& problems);

}  // namespace abtrain::sweep
