// Tables of records that are chosen by their member `name`, one per method,
// optimizer, reducing scheme and so on. A table holds the records, or pointers
// to them:
//   constexpr const MethodKind* kKinds[] = {&kAb, &kDdp};
//   const MethodKind& kind = find_named(kKinds, "ab", "method.name");
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace abtrain {

template <class Record>
constexpr const Record& record_in(const Record& entry) {
  return entry;
}
template <class Record>
constexpr const Record& record_in(const Record* entry) {
  return *entry;
}

// All names, in the table's order.
template <class Table>
std::vector<std::string> names_in(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) {
    names.emplace_back(record_in(entry).name);
  }
  return names;
}

// The record of this name. Throws Error(Config), which begins with `key` and
// lists all names.
template <class Table>
const auto& find_named(const Table& table, const std::string& name, const char* key) {
  for (const auto& entry : table) {
    if (name == record_in(entry).name) {
      return record_in(entry);
    }
  }
  throw Error(
      ErrorKind::Config,
      formatted("{}: expected one of {}; got '{}'", key, join(names_in(table), ", "), name));
}

}  // namespace abtrain
