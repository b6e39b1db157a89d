#include "comm/groups.h"

#include <gtest/gtest.h>

#include <string>

#include "base/conflict.h"
#include "error_of.h"

namespace abtrain::comm {
namespace {

std::string refusal(int workers, std::optional<std::int64_t> size, bool only_b) {
  try {
    make_groups(workers, size, only_b);
  } catch (const ConflictError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Config);
    EXPECT_EQ(error.conflict().keys.front(), "method.group_size");
    return error.what();
  }
  ADD_FAILURE() << size.value_or(0) << " was accepted for " << workers;
  return {};
}

TEST(Groups, ContiguousRanksFirstHalfTrainsA) {
  const Groups groups = make_groups(8, 2, false);
  EXPECT_EQ(groups.count, 4);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(groups.group_of(rank), rank / 2);
    EXPECT_EQ(groups.role_of(rank), rank < 4 ? Role::A : Role::B);
  }
}

TEST(Groups, EverySizeIsRightOrRefused) {
  for (int workers = 1; workers <= 24; ++workers) {
    for (int size = 1; size <= workers + 1; ++size) {
      for (const bool only_b : {false, true}) {
        const bool fits = workers % size == 0 && (only_b || workers / size >= 2);
        if (!fits) {
          refusal(workers, size, only_b);
          continue;
        }
        const Groups groups = make_groups(workers, size, only_b);
        int trained_a = 0;
        for (int rank = 0; rank < workers; ++rank) {
          trained_a += groups.role_of(rank) == Role::A;
        }
        EXPECT_EQ(trained_a, only_b ? 0 : workers / size / 2 * size);
        EXPECT_EQ(groups.count * groups.group_size, workers);
      }
    }
  }
}

TEST(Groups, AutoIsAsFewGroupsAsFit) {
  EXPECT_EQ(make_groups(8, {}, false).group_size, 4);
  EXPECT_EQ(make_groups(2, {}, false).group_size, 1);
  EXPECT_EQ(make_groups(8, {}, true).group_size, 4);
  EXPECT_EQ(make_groups(3, {}, false).group_size, 1);
  EXPECT_EQ(make_groups(9, {}, false).group_size, 3);
  EXPECT_EQ(make_groups(35, {}, false).group_size, 7);
  const Groups one = make_groups(1, {}, true);
  EXPECT_EQ(one.group_size, 1);
  EXPECT_EQ(one.count, 1);
  EXPECT_EQ(one.role_of(0), Role::B);
}

TEST(Groups, ARefusalSaysWhatFits) {
  expect_has(refusal(8, 3, false), "3 does not fit 8 workers");
  expect_has(refusal(8, 3, false), "sizes that fit: 1, 2, 4");
  expect_has(refusal(6, 4, false), "sizes that fit: 1, 2, 3");
  expect_has(refusal(8, 8, false), "only-b");
  expect_has(refusal(1, {}, false), "only-b");
  expect_has(refusal(1, {}, false), "two workers or more");
  expect_has(refusal(9, 4, true), "sizes that fit: 1, 3, 9");
  for (const std::int64_t size : {0, -2}) {
    expect_has(refusal(8, size, false), "sizes that fit: 1, 2, 4");
  }
}

}  // namespace
}  // namespace abtrain::comm
