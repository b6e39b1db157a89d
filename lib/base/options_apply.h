// Reads, prints and lists a section of a configuration according to its table.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/value.h"

namespace abtrain {

// The result of reading: the problems, and the place where each key was last set.
struct ReadResult {
  struct Setting {
    Location place;
    int order = 0;  // later settings have larger numbers
    bool bad = false;
  };
  // A key that was ignored because it belongs to another choice, such as another optimizer.
  struct Unowned {
    std::string key;
    Setting setting;
  };
  int last_order = 0;
  std::vector<Problem> problems;
  std::map<std::string, Setting> settings;
  std::vector<Unowned> unowned;
};

// Why a key has no effect: it belongs to choices of the key `decided_by` that were not made.
struct Owner {
  std::string decided_by;
  std::string message;  // "belongs to thc and thc-saturated, but reducer.name is plain"
};
// All keys without effect, by full name.
std::map<std::string, Owner> unowned_keys(const Fields& fields);
// The fields that have an effect.
std::vector<Field> in_use(const std::vector<Field>& fields);

// Advice on a word that is not a key: the key to use instead (empty: there is none), and a remark.
struct Instead {
  std::string key;
  std::string remark;
  // The value with which the word is ignored, because it changes nothing; *: any value.
  std::string harmless = {};
};
using FindInstead = std::function<std::optional<Instead>(const std::string& name)>;
// Returns advice for an error message, such as "use 'optimizer.lr'" or "abtrain has none; ...".
std::string advice(const Instead& instead);

// Sets the members that `section` names, except for the keys in `unowned`. Reports unknown and
// repeated keys as problems; for an unknown key, adds the advice of `find`, or else the most
// similar key.
void apply(
    const Fields& fields, const Value& section, ReadResult& reading, const FindInstead& find = {},
    const std::map<std::string, Owner>& unowned = {});
// Returns every key that has an effect, as YAML that reads back to equal values.
std::string to_yaml(const Fields& fields);
// Visits each key in the order of the table, with its full name, such as
// "train.steps". Sections themselves are not visited. `prefix`: the section
// that contains the fields, such as "train".
void each_key(
    const std::vector<Field>& fields,
    const std::function<void(const std::string& name, const Field&)>& visit,
    const std::string& prefix = "");
// The full names of all keys.
std::vector<std::string> keys_of(const Fields& fields);

}  // namespace abtrain
