#include "train/score.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/text.h"

namespace abtrain::train {

double Score::bits_per_byte() const {
  return loss / std::numbers::ln2 / bytes_per_token;
}

double Score::quality() const {
  return is_text() ? std::exp(-loss) : accuracy;
}

nlohmann::ordered_json score_json(const Score& score, const std::string& prefix) {
  nlohmann::ordered_json json;
  if (score.is_text()) {
    json[prefix + "bits_per_byte"] = score.bits_per_byte();
    json[prefix + "perplexity"] = std::exp(score.loss);
  } else {
    json[prefix + "accuracy"] = score.accuracy;
    if (score.regression && prefix.empty()) {
      json["r2"] = score.accuracy;
    }
  }
  json[prefix + "loss"] = score.loss;
  return json;
}

std::string score_text(const Score& score) {
  if (score.regression) {
    return formatted("R² {:.4f}, loss {:.4g}", score.accuracy, score.loss);
  }
  return score.is_text()
             ? formatted("{:.4f} bits per byte, loss {:.4f}", score.bits_per_byte(), score.loss)
             : formatted("accuracy {:.2f} %, loss {:.4f}", 100 * score.accuracy, score.loss);
}

}  // namespace abtrain::train
