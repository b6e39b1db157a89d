// How good a model is on held-out examples, and how that is written.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace abtrain::train {

struct Score {
  double accuracy = 0;         // 0..1; of a text, the share of its tokens
  double loss = 0;             // mean cross-entropy, summed in double
  double bytes_per_token = 0;  // 0: images

  bool is_text() const {
    return bytes_per_token > 0;
  }
  double bits_per_byte() const;
  double perplexity() const;
  // 0..1, higher is better: the accuracy; of a text, 1 / perplexity.
  double quality() const;
};

// {"accuracy", "loss"}, or of a text {"bits_per_byte", "perplexity", "loss"},
// each behind `prefix`.
nlohmann::ordered_json score_json(const Score& score, const std::string& prefix = "");
// "accuracy 88.71 %, loss 0.3312", or "1.8345 bits per byte, loss 1.2716".
std::string score_text(const Score& score);

}  // namespace abtrain::train
