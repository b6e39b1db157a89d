// A tree of configuration values, each with the place that it came from, and
// problems that point at such places. Independent of any file format.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace abtrain {

// Where a value was written. Line 0 means that the source has no lines (it is a
// command-line option).
struct Location {
  std::string source;  // "run.yaml" or "--set train.steps=3"
  int line = 0;        // from 1
  int column = 0;      // from 1, in characters
  std::string text;    // the whole line
};

struct Entry;

struct Value {
  // Invalid: the value could not be read, and that problem has already been reported.
  enum class Kind { Nothing, Scalar, List, Section, Invalid };
  Kind kind = Kind::Nothing;
  std::string text;            // of a scalar
  bool quoted = false;         // "3" rather than 3
  std::vector<Value> items;    // of a list
  std::vector<Entry> entries;  // of a section, repeated keys included
  Location place;
};

struct Entry {
  std::string key;
  Location place;  // of the key
  Value value;
};

struct Problem {
  Location place;
  std::string key;  // "train.steps"; empty if no key is at fault
  std::string message;
};

// "file:line:column: error: key: message", followed by the line and a caret.
std::string to_text(const Problem& problem);
std::string to_text(const std::vector<Problem>& problems);
// Throws a LocatedError with the text of the problems, if there are any.
void throw_any(const std::vector<Problem>& problems, ErrorKind kind);

// Describes a value for a message: 'abc' (its text), nothing, a list, a section.
std::string describe(const Value& value);

}  // namespace abtrain
