#include "base/options.h"

#include <algorithm>

#include "base/env.h"
#include "base/scalars.h"
#include "base/text.h"

namespace abtrain {
namespace {

using Kind = Value::Kind;

std::string expected(const std::string& wanted, const Value& value, const std::string& why) {
  return formatted(
      "expected {}, got {}{}", wanted, describe(value), why.empty() ? "" : formatted(" ({})", why));
}

// Takes a number that `parse` reads and that is within `range`.
template <class T, class Parse>
auto number_in(Interval range, Parse parse) {
  return [range, parse](const Value& value, T& out, std::string& why) {
    if (value.kind == Kind::Scalar && value.quoted) {
      why = "leave the quotes off";
      return false;
    }
    return value.kind == Kind::Scalar && parse(value.text, out, why) &&
           range.contains(static_cast<double>(out));
  };
}

template <class T = std::int64_t>
auto integer_in(Interval range) {
  return number_in<T>(range, parse_integer<T>);
}

constexpr auto print_whole = [](auto value) { return std::to_string(value); };

auto duration_in(Interval range) {
  return [range](const Value& value, Duration& out, std::string& why) {
    return value.kind == Kind::Scalar && parse_duration(value.text, out, why) &&
           range.contains(out.value);
  };
}

// Other programs' words, in lower case, and abtrain's words for the same choices.
constexpr std::pair<std::string_view, const char*> kWords[] = {
    {"float16", "fp16"},     {"half", "fp16"},
    {"16", "fp16"},          {"16-mixed", "fp16"},
    {"16-true", "fp16"},     {"bfloat16", "bf16"},
    {"bf16-mixed", "bf16"},  {"bf16-true", "bf16"},
    {"float32", "fp32"},     {"float", "fp32"},
    {"32", "fp32"},          {"32-true", "fp32"},
    {"gpu", "cuda"},         {"steplr", "step"},
    {"multisteplr", "step"}, {"constantlr", "constant"},
    {"linearlr", "linear"},  {"cosineannealinglr", "cosine"}};

// If a user gives `word` for a key that offers `offered` but not `word`, the error adds `remark`,
// which says what to use instead.
constexpr struct {
  const char* word;
  const char* offered;
  const char* remark;
} kAbsent[] = {
    {"fp16", "bf16", "fp16 is not supported; use bf16"},
    {"fraction", "ratio", "fraction was removed; use ratio"},
    {"normalized", "match_rms", "normalized was removed; use match_rms or spectral"},
    {"onebit", "twobit", "onebit was removed; use twobit or int2"},
    {"sketch", "int8", "sketch was removed; use int8"}};

// Suggests what to use instead of `word`, which is not one of `names`; "" if nothing is close.
std::string remark_on(const std::string& word, const std::vector<std::string>& names) {
  const std::string typed = lower_case(word);
  const std::string lower = typed.substr(typed.starts_with("torch.") ? 6 : 0);
  const auto* const known =
      std::ranges::find(kWords, lower, &std::pair<std::string_view, const char*>::first);
  const std::string meant = known == std::end(kWords) ? lower : known->second;
  for (const auto& [absent, present, remark] : kAbsent) {
    if (meant == absent && std::ranges::count(names, absent) == 0 &&
        std::ranges::count(names, present) > 0) {
      return remark;
    }
  }
  const std::string near = nearest(meant, names);
  return near.empty() ? "" : formatted("did you mean '{}'?", near);
}

bool is_word(const Value& value, const char* word) {
  return value.kind == Kind::Scalar && value.text == word;
}

// Reads `word` as nullopt, and anything else by `take`.
template <class T, class Take>
auto word_or(const char* word, Take take) {
  return [word, take](const Value& value, std::optional<T>& out, std::string& why) {
    if (is_word(value, word)) {
      out.reset();
      return true;
    }
    return take(value, out.emplace(), why);
  };
}

// Returns why config.yaml and JSON files could not hold this text; "" if they can.
std::string text_fault(const std::string& text) {
  return text.empty() ? "it is empty" : is_utf8(text) ? "" : "it is not UTF-8 text";
}

bool take_text(const Value& value, std::string& out, std::string& why) {
  out = value.text;
  if (value.kind == Kind::Scalar) {
    why = text_fault(out);
  }
  return value.kind == Kind::Scalar && why.empty();
}

bool take_path(const Value& value, std::string& out, std::string& why) {
  std::string text;
  return take_text(value, text, why) && expand_path(text, out, why) &&
         (why = text_fault(out)).empty();
}

std::string folder_name_fault(const std::string& name) {
  constexpr std::size_t kMaxLength = 200;
  if (name == "." || name == "..") {
    return "that already stands for a folder";
  }
  if (name.find_first_of("/\\") != std::string::npos) {
    return "a name cannot contain slashes";
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      return "a name cannot contain control characters";
    }
  }
  if (name.front() == '-' || name.front() == ' ' || name.back() == ' ') {
    return "a name cannot begin with '-' or a space, or end with a space";
  }
  return name.size() > kMaxLength ? formatted("longer than {} bytes", kMaxLength) : "";
}

std::string wanted_duration(Interval range) {
  return formatted("a duration{}, as in 110, 2 epochs or 5 %", range.text());
}

}  // namespace

template <class T>
Field& Fields::add(
    Key key, T& member, std::string wanted, Take<T> take, Print<T> print, Help help,
    std::vector<std::string> choices) {
  const auto read = [&member, wanted, take](const Value& value, const Complain& complain) {
    std::string why;
    T taken{};
    if (take(value, taken, why)) {
      member = std::move(taken);
    } else {
      complain(value, expected(wanted, value, why));
    }
  };
  return fields_.emplace_back(Field{
      key, wanted, help, read, [&member, print] { return print(member); }, {}, std::move(choices)});
}

template <class T>
Field& Fields::add_list(
    Key key, std::vector<T>& member, std::size_t least, std::string each, Take<T> take,
    Print<T> print, Help help) {
  const std::string wanted = "a list, each item " + each;
  const auto read = [&member, least, each, wanted, take](
                        const Value& value, const Complain& complain) {
    if (value.kind != Kind::List || value.items.size() < least) {
      complain(
          value, expected(
                     wanted, value,
                     value.kind == Kind::List     ? "it is empty"
                     : value.kind == Kind::Scalar ? formatted("write [{}]", value.text)
                                                  : ""));
      return;
    }
    std::vector<T> items(value.items.size());
    bool right = true;
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::string why;
      if (!take(value.items[i], items[i], why)) {
        right = false;
        complain(value.items[i], expected(each, value.items[i], why));
      }
    }
    if (right) {
      member = std::move(items);
    }
  };
  const auto print_all = [&member, print] { return "[" + join(mapped(member, print), ", ") + "]"; };
  return fields_.emplace_back(Field{key, wanted, help, read, print_all, {}});
}

Field& Fields::flag(Key key, bool& member, Help help) {
  return add<bool>(
      key, member, "true or false",
      [](const Value& value, bool& out, std::string&) {
        out = is_word(value, "true");
        return !value.quoted && (out || is_word(value, "false"));
      },
      [](bool value) { return std::string(value ? "true" : "false"); }, help, {"true", "false"});
}

Field& Fields::integer(Key key, std::int64_t& member, Interval range, Help help) {
  return add<std::int64_t>(
      key, member, "an integer" + range.text(), integer_in(range), print_whole, help);
}

Field& Fields::integer(Key key, std::uint64_t& member, Help help) {
  return add<std::uint64_t>(
      key, member, "an integer from 0 to 2^64-1", integer_in<std::uint64_t>(Interval{}),
      print_whole, help);
}

Field& Fields::number(Key key, double& member, Interval range, Help help) {
  return add<double>(
      key, member, "a number" + range.text(), number_in<double>(range, parse_number), print_number,
      help);
}

Field& Fields::text(Key key, std::string& member, Help help) {
  return add<std::string>(key, member, "a string", take_text, print_text, help);
}

Field& Fields::text_or(Key key, const char* word, std::optional<std::string>& member, Help help) {
  return add<std::optional<std::string>>(
      key, member, "a string", word_or<std::string>(word, take_text),
      [word](const auto& value) { return print_text(value.value_or(word)); }, help);
}

Field& Fields::path(Key key, std::string& member, Help help) {
  return add<std::string>(key, member, "a path", take_path, print_text, help);
}

Field& Fields::path_or(Key key, const char* word, std::optional<std::string>& member, Help help) {
  return add<std::optional<std::string>>(
      key, member, "a path", word_or<std::string>(word, take_path),
      [word](const auto& value) { return print_text(value.value_or(word)); }, help);
}

Field& Fields::folder_name(Key key, std::string& member, Help help) {
  return add<std::string>(
      key, member, "a folder name",
      [](const Value& value, std::string& out, std::string& why) {
        return take_text(value, out, why) && (why = folder_name_fault(out)).empty();
      },
      print_text, help);
}

Field& Fields::choice(Key key, std::string& member, std::vector<std::string> names, Help help) {
  return add_choice(
      key, std::move(names), [&member](const std::string& name) { member = name; },
      [&member] { return member; }, help);
}

Field& Fields::add_choice(
    Key key, std::vector<std::string> names, std::function<void(const std::string&)> set,
    std::function<std::string()> get, Help help) {
  const std::string wanted = (names.size() > 1 ? "one of " : "") + join(names, ", ");
  const auto read = [names, set, wanted](const Value& value, const Complain& complain) {
    if (value.kind == Kind::Scalar && std::ranges::count(names, value.text) > 0) {
      set(value.text);
    } else {
      complain(value, expected(wanted, value, remark_on(value.text, names)));
    }
  };
  const auto print = [get = std::move(get)] { return print_text(get()); };
  return fields_.emplace_back(Field{key, wanted, help, read, print, {}, names});
}

Field& Fields::auto_or_integer(
    Key key, std::optional<std::int64_t>& member, Interval range, Help help) {
  return add<std::optional<std::int64_t>>(
      key, member, "auto or an integer" + range.text(),
      word_or<std::int64_t>("auto", integer_in(range)),
      [](const auto& value) { return value ? std::to_string(*value) : "auto"; }, help, {"auto"});
}

Field& Fields::auto_or_flag(Key key, std::optional<bool>& member, Help help) {
  return choice<std::optional<bool>>(
      key, member, {{"auto", std::nullopt}, {"true", true}, {"false", false}}, help);
}

Field& Fields::duration(Key key, Duration& member, Interval range, Help help) {
  return add<Duration>(
      key, member, wanted_duration(range), duration_in(range), print_duration, help);
}

Field& Fields::auto_or_duration(
    Key key, std::optional<Duration>& member, Interval range, Help help) {
  return add<std::optional<Duration>>(
      key, member, "auto or " + wanted_duration(range),
      word_or<Duration>("auto", duration_in(range)),
      [](const auto& value) { return value ? print_duration(*value) : "auto"; }, help, {"auto"});
}

Field& Fields::integers(Key key, std::vector<std::int64_t>& member, Interval each, Help help) {
  return add_list<std::int64_t>(
      key, member, 1, "an integer" + each.text(), integer_in(each), print_whole, help);
}

Field& Fields::numbers(
    Key key, std::vector<double>& member, Interval each, Help help, std::size_t least) {
  return add_list<double>(
      key, member, least, "a number" + each.text(), number_in<double>(each, parse_number),
      print_number, help);
}

Field& Fields::numbers_or(
    Key key, Names<bool> words, bool& word, std::vector<double>& numbers, Interval each,
    Help help) {
  Field& field = this->numbers(key, numbers, each, help);
  for (const auto& [name, value] : words) {
    field.choices.push_back(name);
  }
  field.wanted = join(field.choices, ", ") + " or " + field.wanted;
  field.read = [&word, &numbers, words, wanted = field.wanted, names = field.choices,
                list = field.read](const Value& value, const Complain& complain) {
    if (value.kind == Kind::List) {
      bool right = true;
      list(value, [&](const Value& where, std::string message) {
        right = false;
        complain(where, std::move(message));
      });
      word = word && !right;
      return;
    }
    const auto named = std::ranges::find(words, value.text, &Names<bool>::value_type::first);
    if (value.kind != Kind::Scalar || named == words.end()) {
      complain(
          value,
          expected(wanted, value, value.kind == Kind::Scalar ? remark_on(value.text, names) : ""));
      return;
    }
    word = named->second;
    numbers.clear();
  };
  field.print = [&word, &numbers, words, list = field.print] {
    return word || numbers.empty() ? name_in(words, word) : list();
  };
  return field;
}

Field& Fields::auto_or_integers(
    Key key, std::vector<std::int64_t>& member, Interval each, Help help) {
  Field& field = integers(key, member, each, help);
  field.choices = {"auto"};
  field.wanted = "auto or " + field.wanted;
  field.read = [&member, wanted = field.wanted, list = field.read](
                   const Value& value, const Complain& complain) {
    if (is_word(value, "auto")) {
      member.clear();
    } else if (value.kind == Kind::Scalar) {
      complain(value, expected(wanted, value, formatted("write [{}]", value.text)));
    } else {
      list(value, complain);
    }
  };
  field.print = [&member, list = field.print] {
    return member.empty() ? std::string("auto") : list();
  };
  return field;
}

Field& Fields::texts(Key key, std::vector<std::string>& member, Help help) {
  return add_list<std::string>(key, member, 0, "a string", take_text, print_text, help);
}

Field& Fields::value(Key key, Value& member, Help help) {
  const auto read = [&member](const Value& value, const Complain&) { member = value; };
  return fields_.emplace_back(
      Field{key, "a value", help, read, [] { return std::string("..."); }, {}});
}

void Fields::include(Fields own, const std::string& choice) {
  for (Field& field : own.fields_) {
    fields_.push_back(std::move(field.of({choice})));
  }
}

Field& Fields::section(Key key, Fields fields, Help help) {
  return fields_.emplace_back(Field{key, "a section", help, {}, {}, std::move(fields.fields_)});
}

}  // namespace abtrain
