// The score of a model on held-out examples, and its text forms.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace abtrain::train {

struct Score {
  // 0..1; for a text, the share of correct tokens; for a regression R^2, the share of the targets'
  // variance that the outputs explain, which may be negative.
  double accuracy = 0;
  double loss = 0;             // mean cross-entropy or squared error, summed in double
  double bytes_per_token = 0;  // 0: no text
  bool regression = false;

  bool is_text() const {
    return bytes_per_token > 0;
  }
  double bits_per_byte() const;
  // Higher is better, 1 is best: the accuracy; for a regression R^2, which may be
  // negative; for a text 1 / perplexity.
  double quality() const;
};

// {"accuracy", "loss"}; for a regression without prefix also "r2", equal to its accuracy; for a
// text {"bits_per_byte", "perplexity", "loss"}. Each key starts with `prefix`.
nlohmann::ordered_json score_json(const Score& score, const std::string& prefix = "");
// "accuracy 88.71 %, loss 0.3312", "R² 0.8871, loss 0.3312" or "1.8345 bits per
// byte, loss 1.2716".
std::string score_text(const Score& score);

}  // namespace abtrain::train
