// A short text that a small network can learn: each token follows from the one
// before it, but for some that are drawn at random.
#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "data/text/text_set.h"
#include "data/text/tokens.h"
#include "toy_run.h"

namespace abtrain::testing {

inline constexpr std::int64_t kToyTokens = 16;

inline data::Dataset toy_text(std::int64_t windows = 256) {
  constexpr std::int64_t kContext = 8;
  constexpr std::int64_t kTest = 32;  // windows
  Random random(98, RandomPurpose::Test);
  std::vector<std::uint8_t> bytes;
  std::uint32_t last = 0;
  for (std::int64_t i = 0; i < (windows + kTest) * kContext + 2; ++i) {
    last = random.uniform() < 0.2F ? random.below(kToyTokens) : (5 * last + 3) % kToyTokens;
    bytes.push_back(static_cast<std::uint8_t>(last));
  }
  const std::int64_t end = windows * kContext + 1;
  const auto text = std::make_shared<const data::Tokens>(std::move(bytes));
  data::Dataset set;
  set.name = "toy text";
  set.classes = kToyTokens;
  set.context = kContext;
  set.train = data::windows_of(text, 0, end, kContext);
  set.test = data::windows_of(text, end, text->size(), kContext);
  return set;
}

// A small gpt in place of the images' network.
inline config::RunOptions toy_text_options(int workers, std::optional<std::int64_t> group_size) {
  config::RunOptions o = toy_options(workers, group_size);
  o.model.name = "gpt-nano";
  o.model.layers = 1;
  o.model.heads = 2;
  o.model.features = 16;
  o.data.batch_size = 4;
  return o;
}

}  // namespace abtrain::testing
