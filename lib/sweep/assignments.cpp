#include "sweep/assignments.h"

#include <algorithm>
#include <set>

#include "base/options_apply.h"
#include "base/text.h"

namespace abtrain::sweep {

namespace {

using Kind = Value::Kind;

// The field with this full name, which must exist.
const Field& find_field(const Fields& all, const std::string& key) {
  const std::vector<Field>* fields = &all.list();
  const Field* found = nullptr;
  for (const std::string& part : split_text(key, '.')) {
    found = &*std::ranges::find(*fields, part, &Field::key);
    fields = &found->section;
  }
  return *found;
}

}  // namespace

void AssignmentReader::add(
    const std::string& key,
    const Location& place,
    const Value& value,
    Choice& out) {
  if (value.kind == Kind::Invalid) {
    return;
  }
  if (value.kind == Kind::Section && !value.entries.empty()) {
    add_section(key + ".", value, out);
    return;
  }
  if (key == "name" || key == "output" || key == "extends") {
    problems_.push_back(
        {place,
         key,
         key == "extends"
             ? "belongs in the configuration that 'base' names"
             : "each point has a folder of its own; set the sweep's name and "
               "output instead"});
    return;
  }
  if (std::ranges::any_of(out, [&](const Assignment& assignment) {
        return assignment.override.key == key;
      })) {
    problems_.push_back({place, key, "given twice"});
    return;
  }
  const std::string text = checked({key, place, value});
  if (!text.empty()) {
    // Later messages point to the value, not to the key.
    out.push_back({{key, value.place, value}, text});
  }
}

void AssignmentReader::add_section(
    const std::string& prefix,
    const Value& section,
    Choice& out) {
  for (const Entry& entry : section.entries) {
    add(prefix + entry.key, entry.place, entry.value, out);
  }
}

std::string AssignmentReader::checked(const config::Override& override) {
  ReadResult reading;
  apply(fields_, as_section(override), reading);
  if (reading.problems.empty()) {
    const Field& field = find_field(fields_, override.key);
    if (!field.is_section()) {
      return field.print();
    }
    problems_.push_back(
        {override.place,
         override.key,
         formatted(
             "expected keys with values, as in '{{{}: ...}}', got none",
             field.section.front().key)});
  }
  std::ranges::move(reading.problems, std::back_inserter(problems_));
  return "";
}

bool contains(const Choice& whole, const Choice& part) {
  return std::ranges::all_of(part, [&](const Assignment& wanted) {
    return std::ranges::any_of(whole, [&](const Assignment& assignment) {
      return assignment.override.key == wanted.override.key &&
             assignment.text == wanted.text;
    });
  });
}

std::string text_of(const Choice& choice) {
  if (choice.size() == 1) {
    return choice.front().text;
  }
  std::set<std::string> parts;  // sorted: the written order is irrelevant
  for (const Assignment& assignment : choice) {
    parts.insert(assignment.override.key + ": " + assignment.text);
  }
  return join({parts.begin(), parts.end()}, ", ");
}

void find_repeated_keys(const Sweep& sweep, std::vector<Problem>& problems) {
  std::set<std::string> varied;
  const auto vary = [&](const std::vector<Choice>& choices) {
    std::set<std::string> own;
    for (const Choice& choice : choices) {
      for (const Assignment& assignment : choice) {
        const std::string& key = assignment.override.key;
        if (own.insert(key).second && !varied.insert(key).second) {
          problems.push_back(
              {assignment.override.place, key, "is already varied"});
        }
      }
    }
  };
  const auto check = [&](const std::vector<config::Override>& overrides) {
    for (const config::Override& one : overrides) {
      if (varied.contains(one.key)) {
        problems.push_back({one.place, one.key, "the sweep varies this key"});
      }
    }
  };
  std::ranges::for_each(sweep.grid, vary);
  vary(sweep.seeds);
  check(sweep.common);
  // An item of the list may override `set`, but `--set` may not set its keys.
  for (const Choice& choice : sweep.list) {
    for (const Assignment& assignment : choice) {
      const std::string& key = assignment.override.key;
      if (key == "seed" && !sweep.seeds.empty()) {
        problems.push_back(
            {assignment.override.place, key, "given in 'seeds' too"});
      }
      varied.insert(key);
    }
  }
  if (sweep.halving) {
    for (const Rival& rival : sweep.halving->rivals) {
      for (const Assignment& assignment : rival.set) {
        varied.insert(assignment.override.key);
      }
    }
  }
  check(sweep.sets);
}

}  // namespace abtrain::sweep
