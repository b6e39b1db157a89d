// Reading a section of a configuration by its table, printing it, listing it.
#pragma once

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
// All full names, "train.steps"; sections are left out.
std::vector<std::string> keys_of(const Fields& fields);

}  // namespace abtrain
