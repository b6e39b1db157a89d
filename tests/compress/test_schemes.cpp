#include "compress/schemes.h"

#include <optional>

#include "base/named.h"
#include "base/text.h"
#include "compress/invariants.h"
#include "error_of.h"

namespace abtrain::compress {
namespace {

Conflicts conflicts_of(
    const ReducerOptions& options, const std::string& section, std::int64_t members) {
  Conflicts out;
  check(options, section, members, out);
  return out;
}

// Their values stand in docs/config.md, which tests/config compares with the records.
TEST(Schemes, HaveTheDefaultsOfTheirRecords) {
  for (const Scheme* scheme : schemes()) {
    SCOPED_TRACE(scheme->name);
    const ReducerOptions options = options_of(scheme->name);
    EXPECT_EQ(plain_dtype(options), scheme->dtype);
    EXPECT_EQ(has_error_feedback(options), scheme->error_feedback);
    EXPECT_EQ(min_numel(options), scheme->min_numel);
    EXPECT_EQ(compresses(options), std::string(scheme->name) != "plain");
    EXPECT_TRUE(conflicts_of(options, "reducer", 127).empty());
  }
}

TEST(Schemes, WhatIsSetIsTaken) {
  for (const std::string& name : names_in(schemes())) {
    SCOPED_TRACE(name);
    for (const char* dtype : {"fp32", "fp16", "bf16"}) {
      EXPECT_STREQ(dtype_name(plain_dtype(options_of(name, {{"dtype", dtype}}))), dtype);
    }
    EXPECT_TRUE(has_error_feedback(options_of(name, {{"error_feedback", "true"}})));
    EXPECT_FALSE(has_error_feedback(options_of(name, {{"error_feedback", "false"}})));
    EXPECT_EQ(min_numel(options_of(name, {{"min_numel", "7"}})), 7);
  }
}

// auto: 64 elements per chunk, or 128 with less than one bit per element. Here
// one chunk is sent, with the norms of all.
TEST(Schemes, AutoChunksFollowTheBits) {
  const auto payload = [](double bits, std::optional<std::int64_t> chunk) {
    ReducerOptions options = scheme("topk-chunked");
    options.bits = bits;
    options.chunk = chunk;
    return volume_of(options, one_slot({193})).payload_bits;
  };
  for (const double bits : {0.3, 0.99, 1.0, 2.0}) {
    EXPECT_EQ(payload(bits, 64), 16 * (4 + 64)) << bits;
    EXPECT_EQ(payload(bits, 128), 16 * (2 + 128)) << bits;
    EXPECT_EQ(payload(bits, {}), payload(bits, bits < 1 ? 128 : 64)) << bits;
  }
}

TEST(Schemes, AnUnknownNameIsRefused) {
  const Thrown wanted = {
      static_cast<int>(ErrorKind::Config),
      "reducer.name: expected one of " + join(names_in(schemes()), ", ") + "; got 'planar'"};
  const ReducerOptions options = options_of("planar");
  EXPECT_EQ(error_of([&] { make_reducer(options, 1); }), wanted);
  EXPECT_EQ(error_of([&] { conflicts_of(options, "reducer", 1); }), wanted);
}

struct ConflictCase {
  std::string name;
  Words words;
  std::int64_t members;
  std::string wanted;  // "KEYS: MESSAGE" of each, without the section (workers has none)
};

const std::vector<ConflictCase> kConflicts = {
    {"plain", {{"error_feedback", "false"}, {"block", "1000"}}, 4, ""},
    {"twobit",
     {{"error_feedback", "false"}},
     4,
     "error_feedback name: twobit sends so little of each gradient that it "
     "only works with what it left out before: expected true"},
    {"int8", {{"error_feedback", "false"}}, 4, ""},
    {"sparseloco",
     {{"error_feedback", "false"}},
     4,
     "error_feedback name: sparseloco sends so little of each gradient that it "
     "only works with what it left out before: expected true"},
    {"topk", {{"bits", "48"}}, 4, ""},
    {"topk",
     {{"bits", "48.5"}},
     4,
     "bits name: expected at most 48, at which topk sends everything (a 16-bit value and a 32-bit "
     "index per element); got 48.5"},
    {"topk-chunked", {{"bits", "0.26"}}, 4, ""},
    {"topk-chunked",
     {{"bits", "0.125"}},
     4,
     "bits name: the norms of chunks of 128 alone take 0.125 bits per "
     "element; expected more, got 0.125"},
    {"thc", {{"block", "512"}}, 4, ""},
    {"thc", {{"block", "1000"}}, 4, "block name: expected a power of two, got 1000"},
    {"thc-saturated", {{"block", "1000"}}, 4, "block name: expected a power of two, got 1000"},
    {"thc", {}, 2184, ""},
    {"thc",
     {{"block", "1000"}},
     2185,
     "name workers: thc sums the codes of at most 2184 workers, but a group has 2185; expected "
     "fewer, or another reducer\n"
     "block name: expected a power of two, got 1000"},
    {"thc-saturated", {}, 4096, ""},
    {"thc-saturated",
     {},
     4097,
     "name workers: thc-saturated sums the codes of at most 4096 workers, but a group has 4097; "
     "expected fewer, or another reducer"},
    {"twobit", {}, 4096, ""},
    {"twobit",
     {},
     4097,
     "name workers: twobit sums the codes of at most 4096 workers, but a group has 4097; expected "
     "fewer, or another reducer"},
    {"hylo", {{"transport", "gather"}}, 4096, ""},
    {"hylo",
     {{"transport", "a2a"}},
     4097,
     "name workers: hylo sums the codes of at most 4096 workers, but a group has 4097; expected "
     "fewer, or another reducer"},
    {"int4", {}, 65536, ""},
    {"hylo", {{"transport", "a2a"}}, 128, ""},
    {"hylo", {{"transport", "gather"}}, 128, ""},
    {"hylo",
     {},
     128,
     "transport name: int8 holds the sum of at most 127 workers' codes, but a "
     "group has 128; expected a2a or gather"},
    {"hylo",
     {{"transport", "int8"}},
     200,
     "transport name: int8 holds the sum of at most 127 workers' codes, but a "
     "group has 200; expected a2a or gather"},
    {"threshold", {{"error_feedback", "true"}}, 200, ""},
    {"threshold", {{"transport", "gather"}}, 128, ""},
    {"threshold",
     {{"transport", "a2a"}},
     4,
     "transport name: threshold takes auto, gather and int8, got a2a"},
    {"threshold",
     {{"transport", "int8"}},
     128,
     "transport name: int8 holds the sum of at most 127 workers' codes, but a "
     "group has 128; expected auto or gather"},
    {"ternary", {{"error_feedback", "false"}}, 200, ""},
    {"ternary",
     {{"error_feedback", "true"}, {"transport", "a2a"}},
     4,
     "error_feedback name: ternary's random error is larger than the values it "
     "encodes, so residuals would grow without bound; expected auto or false\n"
     "transport name: ternary takes auto, gather and int8, got a2a"},
};

TEST(Schemes, FindTheirConflicts) {
  for (const std::string section : {"reducer", "method.full_phase.reducer"}) {
    for (const ConflictCase& c : kConflicts) {
      std::vector<std::string> found;
      for (const Conflict& conflict :
           conflicts_of(options_of(c.name, c.words), section, c.members)) {
        std::vector<std::string> keys;
        for (const std::string& key : conflict.keys) {
          ASSERT_TRUE(key == "workers" || key.starts_with(section + ".")) << key;
          keys.push_back(key == "workers" ? key : key.substr(section.size() + 1));
        }
        found.push_back(join(keys, " ") + ": " + conflict.message);
      }
      EXPECT_EQ(join(found, "\n"), c.wanted) << c.name;
    }
  }
}

}  // namespace
}  // namespace abtrain::compress
