#include "data/data_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace abtrain::data {
namespace {

struct ConflictCase {
  std::string set;
  std::function<void(DataOptions&)> change;
  std::vector<std::string> keys;  // the first one of each conflict
};

// Further conflicts, with their messages: tests/config/test_config_conflicts.cpp.
TEST(DataCheck, NamesTheKeysThatConflict) {
  const std::string bytes = "cifar10";
  const std::string files = "image-folder";
  const std::vector<ConflictCase> cases = {
      {bytes, [](auto&) {}, {}},
      {files, [](auto&) {}, {}},
      {bytes, [](auto& o) { o.subset = o.validation = 10; }, {"data.validation"}},
      {files, [](auto& o) { o.resize = o.image_size - 1; }, {"data.resize"}},
      {"gcide", [](auto&) {}, {}},
      {"text", [](auto&) {}, {"data.root"}},
      {"gcide", [](auto& o) { o.vocabulary = 255; }, {"data.vocabulary"}}};
  for (const ConflictCase& c : cases) {
    DataOptions options;
    options.name = c.set;
    c.change(options);
    std::vector<std::string> keys;
    for (const Conflict& conflict : check(options)) {
      keys.push_back(conflict.keys.front());
    }
    EXPECT_EQ(keys, c.keys) << c.set;
  }
}

TEST(DataCheck, RefusesAnUnknownSet) {
  DataOptions options;
  options.name = "mnist";
  try {
    check(options);
    FAIL() << "a data set was made up";
  } catch (const ConflictError& error) {
    EXPECT_EQ(error.conflict().keys, std::vector<std::string>{"data.name"});
  }
}

}  // namespace
}  // namespace abtrain::data
