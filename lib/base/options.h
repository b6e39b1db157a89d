// A table of the fields of an options struct: key, member, range and help. The
// same table is used to read a section, check it, print it as YAML and document
// it.
//
// A table is bound to one object and must not outlive it:
//   Fields fields_of(TrainOptions& o) {
//     Fields f;
//     f.number("epochs", o.epochs, above_to(0, 100), "length of the run");
//     return f;
//   }
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/interval.h"
#include "base/mapped.h"
#include "base/value.h"

namespace abtrain {

using Complain = std::function<void(const Value& where, std::string message)>;

// The values of an enumeration with their names in a configuration.
template <class E>
using Names = std::vector<std::pair<std::string, E>>;

template <class E>
std::string name_in(const Names<E>& names, const E& value) {
  const auto found = std::ranges::find(names, value, &Names<E>::value_type::second);
  return found == names.end() ? "" : found->first;
}

// When a resumed run may change the value of a key. WithWorkers: if the number of workers changes
// too. WhenLonger: if the run is extended and the number of workers stays. ToAuto: if the new value
// is `auto`.
enum class MayChange { Never, Always, WithWorkers, WhenLonger, ToAuto };

struct Field {
  std::string key;
  std::string wanted;  // "an integer from 1 to 100"
  std::string help;
  // Sets the member, or complains and leaves it unchanged.
  std::function<void(const Value&, const Complain&)> read;
  std::function<std::string()> print;     // as YAML on one line
  std::vector<Field> section;             // the fields of a subsection
  std::vector<std::string> choices = {};  // the words it accepts, if any
  MayChange may_change = MayChange::Never;
  // The key has an effect only with these choices of the key `decided_by` in its section; empty:
  // with all.
  std::vector<std::string> owners = {};
  std::string decided_by = {};
  bool is_section() const {
    return !section.empty();
  }
  // Marks a key that a resumed run may change, always or under the given condition. `Always` suits
  // keys that decide where and how fast the run trains, but not what it learns.
  Field& free(MayChange when = MayChange::Always) {
    may_change = when;
    return *this;
  }
  // Ties this key to these choices of another key in its section. With any other choice it has no
  // effect, so it is neither read nor printed (base/options_apply.h).
  Field& of(std::vector<std::string> these, std::string decider = "name") {
    owners = std::move(these);
    decided_by = std::move(decider);
    return *this;
  }
};

class Fields {
 public:
  using Key = const char*;
  using Help = const char*;
  // Each adds a field, and returns it for marks such as free() and of().
  Field& flag(Key key, bool& member, Help help);
  Field& integer(Key key, std::int64_t& member, Interval range, Help help);
  Field& integer(Key key, std::uint64_t& member, Help help);
  Field& number(Key key, double& member, Interval range, Help help);
  Field& text(Key key, std::string& member, Help help);
  // A string, or `word`, which is stored as nullopt.
  Field& text_or(Key key, const char* word, std::optional<std::string>& member, Help help);
  // A path, in which ~, $NAME and ${NAME} are expanded. path_or() also takes `word`, as text_or()
  // does.
  Field& path(Key key, std::string& member, Help help);
  Field& path_or(Key key, const char* word, std::optional<std::string>& member, Help help);
  // A string that is usable as the name of one folder.
  Field& folder_name(Key key, std::string& member, Help help);
  Field& choice(Key key, std::string& member, std::vector<std::string> names, Help help);
  template <class E>
  Field& choice(Key key, E& member, Names<E> names, Help help);
  // `auto` is stored as nullopt.
  Field& auto_or_integer(Key key, std::optional<std::int64_t>& member, Interval range, Help help);
  Field& auto_or_flag(Key key, std::optional<bool>& member, Help help);
  Field& duration(Key key, Duration& member, Interval range, Help help);
  Field& auto_or_duration(Key key, std::optional<Duration>& member, Interval range, Help help);
  // A list of at least one item; for numbers(), of at least `least` items.
  Field& integers(Key key, std::vector<std::int64_t>& member, Interval each, Help help);
  Field& numbers(
      Key key, std::vector<double>& member, Interval each, Help help, std::size_t least = 1);
  // A list of numbers, which sets `word` to false; or one of `words`, which sets `word` to its
  // value and empties `numbers`.
  Field& numbers_or(
      Key key, Names<bool> words, bool& word, std::vector<double>& numbers, Interval each,
      Help help);
  // `auto` is stored as an empty list.
  Field& auto_or_integers(Key key, std::vector<std::int64_t>& member, Interval each, Help help);
  // A list of strings, which may be empty.
  Field& texts(Key key, std::vector<std::string>& member, Help help);
  // Stored unparsed, for a later reader that knows the allowed values.
  Field& value(Key key, Value& member, Help help);
  Field& section(Key key, Fields fields, Help help);
  // Adds the fields `own`, which have an effect only if the section's key `name` has the value
  // `choice`.
  void include(Fields own, const std::string& choice);

  const std::vector<Field>& list() const {
    return fields_;
  }

 private:
  // Converts a value to a T. If that is not possible, returns false and may set
  // `why` to a remark for the message.
  template <class T>
  using Take = std::function<bool(const Value&, T&, std::string& why)>;
  template <class T>
  using Print = std::function<std::string(const T&)>;
  template <class T>
  Field& add(
      Key key, T& member, std::string wanted, Take<T> take, Print<T> print, Help help,
      std::vector<std::string> choices = {});
  template <class T>
  Field& add_list(
      Key key, std::vector<T>& member, std::size_t least, std::string each, Take<T> take,
      Print<T> print, Help help);
  Field& add_choice(
      Key key, std::vector<std::string> names, std::function<void(const std::string&)> set,
      std::function<std::string()> get, Help help);
  std::vector<Field> fields_;
};

template <class E>
Field& Fields::choice(Key key, E& member, Names<E> names, Help help) {
  const auto set = [&member, names](const std::string& text) {
    member = std::ranges::find(names, text, &Names<E>::value_type::first)->second;
  };
  const auto get = [&member, names] { return name_in(names, member); };
  return add_choice(key, mapped(names, &Names<E>::value_type::first), set, get, help);
}

}  // namespace abtrain
