#include "base/value.h"

#include "base/text.h"

namespace abtrain {
namespace {

// Blanks up to `column`, tabs kept so that the caret stands right.
std::string blanks(const std::string& line, int column) {
  std::string out;
  int characters = 1;
  for (const char c : line) {
    if (characters >= column) {
      break;
    }
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      out += c == '\t' ? '\t' : ' ';
      ++characters;
    }
  }
  out.append(column > characters ? column - characters : 0, ' ');
  return out;
}

}  // namespace

std::string to_text(const Problem& problem) {
  const Place& place = problem.place;
  std::string out = place.source;
  if (place.line > 0) {
    out += str(":", place.line, ":", place.column);
  }
  out += ": error: ";
  if (!problem.key.empty()) {
    out += problem.key + ": ";
  }
  out += problem.message;
  if (place.line > 0 && !trim(place.text).empty()) {
    const std::string number = std::to_string(place.line);
    const std::string gutter(number.size(), ' ');
    out += str("\n  ", number, " | ", place.text);
    out += str("\n  ", gutter, " | ", blanks(place.text, place.column), "^");
  }
  return out;
}

std::string to_text(const std::vector<Problem>& problems) {
  std::vector<std::string> parts;
  for (const Problem& problem : problems) {
    parts.push_back(to_text(problem));
  }
  return join(parts, "\n");
}

std::string describe(const Value& value) {
  constexpr std::size_t kLongest = 60;
  switch (value.kind) {
    case Value::Kind::Nothing:
      return "nothing";
    case Value::Kind::List:
      return "a list";
    case Value::Kind::Section:
      return "a section";
    default:
      break;
  }
  const char* quote = value.quoted ? "\"" : "'";
  if (value.text.size() > kLongest) {
    return str(quote, value.text.substr(0, kLongest), "...", quote);
  }
  return str(quote, value.text, quote);
}

}  // namespace abtrain
