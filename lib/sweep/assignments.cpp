#include "sweep/assignments.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/options_apply.h"
#include "base/scalars.h"
#include "base/text.h"

namespace abtrain::sweep {

namespace {

using Kind = Value::Kind;

// "x 2", "x0.5"
bool is_factor(const std::string& text) {
  return text.size() > 1 && text[0] == 'x' &&
         (text[1] == ' ' || std::isdigit(static_cast<unsigned char>(text[1])) != 0);
}

}  // namespace

const Field* find_field(const Fields& all, const std::string& key) {
  const std::vector<Field>* fields = &all.list();
  const Field* found = nullptr;
  for (const std::string& part : split_text(key, '.')) {
    const auto field = std::ranges::find(*fields, part, &Field::key);
    if (field == fields->end()) {
      return nullptr;
    }
    found = &*field;
    fields = &found->section;
  }
  return found;
}

void AssignmentReader::add(
    const std::string& key, const Location& place, const Value& value, Choice& out) {
  if (value.kind == Kind::Invalid) {
    return;
  }
  if (value.kind == Kind::Section && !value.entries.empty()) {
    add_section(key + ".", value, out);
    return;
  }
  if (key == "name" || key == "output" || key == "extends") {
    problem(
        place, key,
        key == "extends" ? "belongs in the configuration that 'base' names"
                         : "each point has a folder of its own; set the sweep's name and "
                           "output instead");
    return;
  }
  if (std::ranges::any_of(
          out, [&](const Assignment& assignment) { return assignment.override.key == key; })) {
    problem(place, key, "given twice");
    return;
  }
  const std::string text = checked({key, place, value});
  if (!text.empty()) {
    // Later messages point to the value, not to the key.
    out.push_back({{key, value.place, value}, text});
  }
}

void AssignmentReader::add_section(const std::string& prefix, const Value& section, Choice& out) {
  for (const Entry& entry : section.entries) {
    add(prefix + entry.key, entry.place, entry.value, out);
  }
}

Move AssignmentReader::move(const Value& section) {
  Move move;
  const auto add_all = [&](const auto& self, const std::string& prefix, const Value& at) -> void {
    for (const Entry& entry : at.entries) {
      const std::string key = prefix + entry.key;
      const std::string& text = entry.value.text;
      if (entry.value.kind == Kind::Section) {
        self(self, key + ".", entry.value);
      } else if (entry.value.kind != Kind::Scalar || !is_factor(text)) {
        add(key, entry.place, entry.value, move.set);
      } else {
        Move::Factor factor{key, 0, entry.value.place};
        std::string why;
        const Field* field = find_field(fields_, key);
        if (field == nullptr || field->is_section() || !field->choices.empty()) {
          problem(entry.place, key, "expected a key with a number, which 'x 2' multiplies");
        } else if (
            !parse_number(std::string(trim(text.substr(1))), factor.factor, why) ||
            !(factor.factor > 0)) {
          problem(
              factor.place, key,
              formatted("expected a factor above 0, as in 'x 2' or 'x 0.5'; got '{}'", text));
        } else {
          move.factors.push_back(factor);
        }
      }
    }
  };
  add_all(add_all, "", section);
  return move;
}

void AssignmentReader::read(const Fields& fields, const Value& section) {
  ReadResult reading;
  apply(fields, section, reading);
  std::ranges::move(reading.problems, std::back_inserter(problems_));
}

std::string AssignmentReader::checked(const config::Override& override) {
  const std::size_t before = problems_.size();
  read(fields_, as_section(override));
  if (problems_.size() > before) {
    return "";
  }
  const Field& field = *find_field(fields_, override.key);
  if (!field.is_section()) {
    return field.print();
  }
  problem(
      override.place, override.key,
      formatted(
          "expected keys with values, as in '{{{}: ...}}', got none", field.section.front().key));
  return "";
}

bool contains(const Choice& whole, const Choice& part) {
  return std::ranges::all_of(part, [&](const Assignment& wanted) {
    return std::ranges::any_of(whole, [&](const Assignment& assignment) {
      return assignment.override.key == wanted.override.key && assignment.text == wanted.text;
    });
  });
}

std::string text_of(const Choice& choice) {
  if (choice.size() == 1) {
    return choice.front().text;
  }
  std::set<std::string> parts;  // sorted: the order in which they were written does not matter
  for (const Assignment& assignment : choice) {
    parts.insert(assignment.override.key + ": " + assignment.text);
  }
  return join({parts.begin(), parts.end()}, ", ");
}

void find_repeated_keys(const Sweep& sweep, std::vector<Problem>& problems) {
  std::set<std::string> varied;
  const auto vary = [&](const std::vector<Choice>& choices) {
    std::set<std::string> own;
    for_each_assignment(choices, [&](const Assignment& one) {
      const std::string& key = one.override.key;
      if (own.insert(key).second && !varied.insert(key).second) {
        problems.push_back({one.override.place, key, "is already varied"});
      }
    });
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
  // An item of the list may override `set`, but `--set` may not set a key of an item.
  for_each_assignment(sweep.list, [&](const Assignment& one) {
    if (one.override.key == "seed" && !sweep.seeds.empty()) {
      problems.push_back({one.override.place, "seed", "given in 'seeds' too"});
    }
    varied.insert(one.override.key);
  });
  check(sweep.sets);
}

}  // namespace abtrain::sweep
