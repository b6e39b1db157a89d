#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "comm/mpi/collective.h"
#include "error_of.h"

namespace abtrain::comm {
namespace {

// The least that MPI promises, Intel MPI between hosts, UCX, MPICH, Open MPI over TCP; and one
// that is no power of two.
constexpr int kBounds[] = {
    32767, 524287, 8388607, 536870911, std::numeric_limits<int>::max(), 100'000};

TEST(MpiTags, LieBelowTheBoundAndTellCallsApart) {
  for (const int bound : kBounds) {
    const MpiTags tags = MpiTags::below(bound);
    EXPECT_GE(tags.kind_bits, 8) << bound;
    std::set<int> seen;
    for (const std::uint32_t kind : {0u, 1u, 255u}) {
      for (std::uint32_t number = 0; number < MpiTags::kOpenCalls; ++number) {
        for (const int phase : {0, 1}) {
          const int tag = tags.tag(number, kind, phase);
          EXPECT_GE(tag, 0);
          EXPECT_TRUE(seen.insert(tag).second) << number << ' ' << kind << ' ' << phase;
        }
      }
    }
    EXPECT_LE(tags.tag(63, ~0u, 1), bound);
    EXPECT_GT(tags.tag(63, ~0u, 1), bound / 2);  // no bit is left unused
  }
}

TEST(MpiTags, OnlyACallOfTheSameNumberDiffers) {
  for (const int bound : kBounds) {
    const MpiTags tags = MpiTags::below(bound);
    EXPECT_FALSE(tags.differs(tags.tag(7, 3, 1), 7, 3));
    EXPECT_FALSE(tags.differs(tags.tag(7, 3, 0), 7 + MpiTags::kOpenCalls, 3));
    EXPECT_FALSE(tags.differs(tags.tag(8, 5, 0), 7, 3));
    EXPECT_TRUE(tags.differs(tags.tag(7, 5, 0), 7, 3));
    EXPECT_TRUE(tags.differs(tags.tag(7, 5, 1), 7 + MpiTags::kOpenCalls, 3));
  }
}

TEST(MpiTags, ABoundBelowTheStandardsIsRefused) {
  expect_error([] { MpiTags::below(16383); }, ErrorKind::Config, {"16383", "MPI_TAG_UB"});
}

}  // namespace
}  // namespace abtrain::comm
