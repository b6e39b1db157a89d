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

TEST(DataCheck, NamesTheKeysThatConflict) {
  const std::string bytes = "cifar10";
  const std::string files = "image-folder";
  const std::vector<ConflictCase> cases = {
      {bytes, [](auto&) {}, {}},
      {files, [](auto&) {}, {}},
      {bytes, [](auto& o) { o.mean = {0.5}; }, {"data.mean"}},
      {bytes,
       [](auto& o) {
         o.std = {1, 1};
       },
       {"data.std"}},
      {bytes, [](auto& o) { o.subset = 50'001; }, {"data.subset"}},
      {bytes, [](auto& o) { o.pool = 5; }, {"data.pool"}},
      {bytes, [](auto& o) { o.subset = o.validation = 10; }, {"data.validation"}},
      {bytes,
       [](auto& o) {
         o.standardize = true;
         o.on_device = true;
         o.mean = {0, 0, 0};
       },
       {"data.on_device", "data.mean"}},
      {files,
       [](auto& o) {
         o.subset = 1;
         o.pool = 4;
         o.standardize = true;
         o.on_device = true;
       },
       {"data.subset", "data.pool", "data.standardize", "data.on_device"}},
      {files, [](auto& o) { o.resize = o.image_size - 1; }, {"data.resize"}},
      {files,
       [](auto& o) {
         o.crop_scale = {1, 0.5};
       },
       {"data.crop_scale"}},
      {"gcide", [](auto&) {}, {}},
      {"text", [](auto&) {}, {"data.root"}},
      {"gcide",
       [](auto& o) {
         o.augment = AugmentName::Flip;
         o.erase = 0.5;
         o.subset = 1;
         o.pool = 4;
         o.standardize = true;
         o.mean = {0.5};
         o.std = {0.5};
         o.on_device = true;
         o.vocabulary = 255;
       },
       {"data.augment", "data.erase", "data.subset", "data.pool", "data.standardize", "data.mean",
        "data.std", "data.on_device", "data.vocabulary"}}};
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
