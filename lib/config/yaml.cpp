#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace abtrain::config {
namespace {

using Kind = Value::Kind;

// Far more than a person writes; anything larger is refused within a second.
constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxValues = 100'000;
constexpr std::size_t kMaxDepth = 32;
// Longer lines are not kept. Every value keeps a copy of its line, so a file of one long line would
// be stored once per value.
constexpr std::size_t kMaxShownLength = 1000;

// The lines of a YAML text; converts positions to Locations.
class Source {
 public:
  Source(const std::string& text, std::string name, bool has_lines)
      : name_(std::move(name)), lines_(split_text(text, '\n')), has_lines_(has_lines) {
    for (std::string& line : lines_) {
      if (!line.empty() && line.back() == '\r') {
        line.pop_back();
      }
    }
    if (lines_.size() > 1 && lines_.back().empty()) {
      lines_.pop_back();
    }
  }
  // `line` and `column` (in bytes) count from 0. A line beyond the last gives the end of the text.
  Location at(std::size_t line, std::size_t column) const {
    if (!has_lines_) {
      return {name_, 0, 0, ""};
    }
    if (line >= lines_.size()) {
      line = lines_.size() - 1;
      column = lines_[line].size();
    }
    const std::string& text = lines_[line];
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(column, text.size()));
    const bool is_long = text.size() > kMaxShownLength;
    const auto characters = is_long ? column : std::count_if(text.begin(), end, begins_character);
    return {
        name_, static_cast<int>(line) + 1, static_cast<int>(characters) + 1,
        is_long ? std::string() : text};
  }
  Location at(const YAML::Mark& mark) const {
    return at(
        static_cast<std::size_t>(std::max(mark.line, 0)),
        static_cast<std::size_t>(std::max(mark.column, 0)));
  }
  // Whether a quote that opens at the mark is closed, since yaml-cpp accepts the end of the text as
  // the end of a quoted scalar. True if no quote opens there (a block scalar).
  bool closes_quote(const YAML::Mark& mark) const {
    auto line = static_cast<std::size_t>(std::max(mark.line, 0));
    auto column = static_cast<std::size_t>(std::max(mark.column, 0));
    if (line >= lines_.size() || column >= lines_[line].size() ||
        (lines_[line][column] != '"' && lines_[line][column] != '\'')) {
      return true;
    }
    const char quote = lines_[line][column];
    for (++column; line < lines_.size(); ++line, column = 0) {
      const std::string& text = lines_[line];
      for (; column < text.size(); ++column) {
        // In double quotes, a backslash escapes the next character; in single quotes, '' stands for
        // one single quote.
        const bool escapes =
            quote == '"' ? text[column] == '\\' : text.compare(column, 2, "''") == 0;
        if (escapes) {
          ++column;
        } else if (text[column] == quote) {
          return true;
        }
      }
    }
    return false;
  }
  const std::vector<std::string>& lines() const {
    return lines_;
  }

 private:
  std::string name_;
  std::vector<std::string> lines_;
  bool has_lines_;
};

// Reports control characters, bytes that are not UTF-8 and tabs in the indentation; returns true if
// there are none.
bool check_text(const std::string& text, const Source& source, std::vector<Problem>& problems) {
  std::size_t line = 0, begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(std::string_view(text).substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    const bool control = (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
    if (length == 0 || control) {
      // Without the line's text, which would garble a terminal.
      Location place = source.at(line, i - begin);
      place.text.clear();
      problems.push_back(
          {place, "", control ? "not a text file: it holds control characters" : "not UTF-8 text"});
      return false;
    }
    i += length;
    if (c == '\n') {
      ++line;
      begin = i;
    }
  }
  bool right = true;
  for (line = 0; line < source.lines().size(); ++line) {
    const std::string& here = source.lines()[line];
    const std::size_t tab = here.find('\t');
    const std::size_t content = here.find_first_not_of(" \t");
    if (tab < content && content != std::string::npos) {
      problems.push_back({source.at(line, tab), "", "a tab in the indentation; use spaces"});
      right = false;
    }
  }
  return right;
}

// Thrown to end parsing at an alias, after the problem was reported.
struct HasAlias {};

// Builds the tree from the parser's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(const Source& source, std::vector<Problem>& problems)
      : source_(source), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) {
      problem(source_.at(mark), "a second document begins; expected only one");
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    add(make(Kind::Nothing, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problem(source_.at(mark), "aliases (*name) are not supported; write the value out");
    throw HasAlias();  // aliases may expand to thousands of values
  }
  void OnScalar(
      const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
      const std::string& text) override {
    if (tag != "?" && tag != "!" && !tag.empty()) {
      refuse(mark, formatted("tags are not supported, got {}", tag));
      return;
    }
    Value value = make(Kind::Scalar, mark);
    value.text = text;
    value.quoted = tag == "!";
    if (value.quoted && !source_.closes_quote(mark)) {
      refuse(mark, "not valid YAML: the quote is not closed");
      return;
    }
    add(std::move(value));
  }
  void OnSequenceStart(
      const YAML::Mark& mark, const std::string&, YAML::anchor_t,
      YAML::EmitterStyle::value) override {
    begin(Kind::List, mark);
  }
  void OnSequenceEnd() override {
    end();
  }
  void OnMapStart(
      const YAML::Mark& mark, const std::string&, YAML::anchor_t,
      YAML::EmitterStyle::value) override {
    begin(Kind::Section, mark);
  }
  void OnMapEnd() override {
    end();
  }
  Value take() {
    return std::move(root_);
  }

 private:
  struct Frame {
    Value value;
    Entry entry;  // the entry whose value is awaited
    bool has_key;
  };

  void begin(Kind kind, const YAML::Mark& mark) {
    if (stack_.size() == kMaxDepth) {
      throw YAML::Exception(mark, formatted("it is nested more than {} deep", kMaxDepth));
    }
    stack_.push_back({make(kind, mark), {}, false});
  }
  Value make(Kind kind, const YAML::Mark& mark) {
    if (++values_ > kMaxValues) {
      throw YAML::Exception(mark, formatted("it has more than {} values", with_commas(kMaxValues)));
    }
    Value value;
    value.kind = kind;
    value.place = source_.at(mark);
    return value;
  }
  void refuse(const YAML::Mark& mark, std::string message) {
    problem(source_.at(mark), std::move(message));
    add(make(Kind::Invalid, mark));
  }
  void problem(const Location& place, std::string message) {
    problems_.push_back({place, "", std::move(message)});
  }
  void end() {
    Value value = std::move(stack_.back().value);
    stack_.pop_back();
    add(std::move(value));
  }
  void add(Value value) {
    if (documents_ > 1) {
      return;
    }
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (Frame& top = stack_.back(); top.value.kind == Kind::List) {
      top.value.items.push_back(std::move(value));
    } else if (!top.has_key) {
      top.entry = {value.text, value.place, {}};
      top.has_key = true;
      if (value.kind != Kind::Scalar && value.kind != Kind::Invalid) {
        problem(value.place, formatted("expected a key, got {}", describe(value)));
      } else if (value.text == "<<" && !value.quoted) {
        problem(value.place, "merge keys (<<) are not supported; use 'extends'");
      }
    } else {
      top.has_key = false;
      if (!top.entry.key.empty() && top.entry.key != "<<") {
        top.entry.value = std::move(value);
        top.value.entries.push_back(std::move(top.entry));
      }
    }
  }

  const Source& source_;
  std::vector<Problem>& problems_;
  std::vector<Frame> stack_;
  Value root_;
  int documents_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

Value parse_yaml(
    const std::string& text, const std::string& name, bool has_lines,
    std::vector<Problem>& problems) {
  constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";
  const std::string body = text.rfind(kByteOrderMark, 0) == 0 ? text.substr(3) : text;
  Value invalid;
  invalid.kind = Kind::Invalid;
  if (body.size() > kMaxBytes) {
    problems.push_back(
        {{name, 0, 0, ""},
         "",
         formatted(
             "expected at most {} bytes, got {}", with_commas(kMaxBytes),
             with_commas(static_cast<std::int64_t>(body.size())))});
    return invalid;
  }
  const Source source(body, name, has_lines);
  if (!check_text(body, source, problems)) {
    return invalid;
  }
  std::istringstream stream(body);
  Builder builder(source, problems);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const HasAlias&) {
    return invalid;
  } catch (const YAML::Exception& error) {
    problems.push_back({source.at(error.mark), "", "not valid YAML: " + error.msg});
    return invalid;
  }
  return builder.take();
}

}  // namespace abtrain::config
