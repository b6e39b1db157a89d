#include "base/value.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"

namespace abtrain {
namespace {

// The part of the line around place.column, with a caret below that column.
std::string line_and_caret(const Location& place) {
  constexpr int kBefore = 60, kShown = 100;
  const int first = place.column > kShown ? place.column - kBefore : 1;
  std::string shown = first > 1 ? "..." : "";
  std::string below = first > 1 ? "   " : "";
  int column = 0;
  for (const char c : place.text) {
    column += begins_character(c) ? 1 : 0;
    if (column >= first + kShown) {
      shown += "...";
      break;
    }
    if (column >= first) {
      shown += c;
      if (column < place.column && begins_character(c)) {
        below += c == '\t' ? '\t' : ' ';  // keeps the caret in its column
      }
    }
  }
  const std::string number = std::to_string(place.line);
  return formatted(
      "\n  {} | {}\n  {} | {}^", number, shown, std::string(number.size(), ' '), below);
}

}  // namespace

std::string to_text(const Problem& problem) {
  const Location& place = problem.place;
  const bool has_line = place.line > 0;
  return formatted(
      "{}{}: error: {}{}{}{}", place.source,
      has_line ? formatted(":{}:{}", place.line, place.column) : "", problem.key,
      problem.key.empty() ? "" : ": ", problem.message,
      has_line && !trim(place.text).empty() ? line_and_caret(place) : "");
}

std::string to_text(const std::vector<Problem>& problems) {
  constexpr std::size_t kMax = 20;  // nobody reads more
  std::vector<std::string> parts;
  std::set<std::string> given;  // one fault may be found at several values
  for (const Problem& problem : problems) {
    std::string text = to_text(problem);
    if (given.insert(text).second && parts.size() < kMax) {
      parts.push_back(std::move(text));
    }
  }
  if (given.size() > kMax) {
    parts.push_back(formatted("and {} more", given.size() - kMax));
  }
  return join(parts, "\n");
}

void throw_any(const std::vector<Problem>& problems, ErrorKind kind) {
  if (!problems.empty()) {
    throw LocatedError(kind, to_text(problems));
  }
}

std::string describe(const Value& value) {
  constexpr std::size_t kMaxLength = 60;
  if (value.kind != Value::Kind::Scalar && value.kind != Value::Kind::Invalid) {
    return value.kind == Value::Kind::List      ? "a list"
           : value.kind == Value::Kind::Section ? "a section"
                                                : "nothing";
  }
  const char* quote = value.quoted ? "\"" : "'";
  std::size_t length = std::min(kMaxLength, value.text.size());
  while (length > 0 && length < value.text.size() && !begins_character(value.text[length])) {
    --length;
  }
  std::string shown = value.text.substr(0, length);
  for (char& c : shown) {
    c = c == '\n' || c == '\t' ? ' ' : c;  // a message must be one line
  }
  return formatted("{}{}{}{}", quote, shown, length < value.text.size() ? "..." : "", quote);
}

}  // namespace abtrain
