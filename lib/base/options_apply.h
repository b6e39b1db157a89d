// Reading a section of a configuration by its table, printing it, listing it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/value.h"

namespace abtrain {

// What reading has found: problems, and the place where each key was last set.
struct Reading {
  struct Setting {
    Place place;
    int order = 0;  // later settings have larger numbers
    bool bad = false;
  };
  int last_order = 0;
  std::vector<Problem> problems;
  std::map<std::string, Setting> settings;
};

// Sets the members named in `section`; unknown and repeated keys are problems.
void apply(const Fields& fields, const Value& section, Reading& reading);
// Every key, as YAML that reads back to equal values.
std::string to_yaml(const Fields& fields);
// Each key in the order of the table, by its full name, "train.steps"; sections
// are left out. `prefix`: the section that the fields are in, "train".
void each_key(
    const std::vector<Field>& fields,
    const std::function<void(const std::string& name, const Field&)>& visit,
    const std::string& prefix = "");
// All full names.
std::vector<std::string> keys_of(const Fields& fields);

}  // namespace abtrain
