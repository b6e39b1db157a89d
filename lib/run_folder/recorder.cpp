#include "run_folder/recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"

namespace abtrain::run_folder {

using nlohmann::ordered_json;

namespace {

// Prints six digits of each singular value, about the accuracy to which it is known.
ordered_json values_json(const linalg::ValueSample& sample) {
  ordered_json values = ordered_json::array();
  for (const double value : sample.value) {
    values.push_back(std::stod(formatted("{:.6g}", value)));
  }
  return {{"index", sample.index}, {"value", values}};
}

}  // namespace

ordered_json layers_json(const std::vector<methods::LayerRank>& layers) {
  ordered_json list = ordered_json::array();
  for (const methods::LayerRank& l : layers) {
    list.push_back(
        {{"name", l.name},
         {"m", l.m},
         {"n", l.n},
         {"rank", l.rank},
         {"energy", l.energy},
         {"first_energy", l.first_energy}});
    if (l.grid > 1) {
      list.back()["blocks"] = l.grid;
    }
  }
  return list;
}

void Recorder::decomposed(
    std::int64_t step, const std::vector<methods::LayerRank>& layers, double seconds) {
  if (log_ != nullptr) {
    ordered_json list = layers_json(layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      list[i]["singular_values"] = values_json(layers[i].values);
    }
    log_->event("decompose", step, {{"duration", seconds}, {"layers", list}});
    if (std::ranges::all_of(layers, [](const auto& layer) { return layer.rank == 0; })) {
      log_->log().warning(
          "step {}: no layer was factored: with this method.rank none would be "
          "smaller",
          step);
    }
  }
}

void Recorder::synchronized(std::int64_t step, const std::string& mode, double seconds) {
  if (log_ != nullptr) {
    log_->event("sync", step, {{"duration", seconds}, {"mode", mode}});
  }
}

void Recorder::compressed(std::int64_t step, const compress::Evaluation& e) {
  sums_.vnmse += e.vnmse;
  sums_.vnmse_count += 1;
  if (log_ != nullptr) {
    log_->event(
        "compression", step,
        {{"vnmse", e.vnmse},
         {"residual_norm", e.residual_norm},
         {"payload_bits", e.payload_bits},
         {"sent_bits", e.sent_bits},
         {"encode_ms", 1e3 * e.costs.encode},
         {"collective_ms", 1e3 * e.costs.collective},
         {"decode_ms", 1e3 * e.costs.decode}});
  }
}

}  // namespace abtrain::run_folder
