#include "base/named.h"
#include "error_of.h"

#include <gtest/gtest.h>

namespace abtrain {
namespace {

struct Record {
  const char* name;
  int value;
};

constexpr Record kOne{"one", 1}, kTwo{"two", 2};
constexpr Record kRecords[] = {kOne, kTwo};
constexpr const Record* kPointers[] = {&kTwo, &kOne};

TEST(Named, FindsRecordsAndPointersToThem) {
  EXPECT_EQ(find_named(kRecords, "two", "key").value, 2);
  EXPECT_EQ(&find_named(kPointers, "one", "key"), &kOne);
  EXPECT_EQ(names_in(kRecords), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(names_in(kPointers), (std::vector<std::string>{"two", "one"}));
}

TEST(Named, NamesTheKeyAndAllNames) {
  EXPECT_EQ(
      error_of([&] { find_named(kPointers, "three", "section.name"); }),
      Thrown(78, "section.name: expected one of two, one; got 'three'"));
}

}  // namespace
}  // namespace abtrain
