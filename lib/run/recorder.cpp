#include "run/recorder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace abtrain::run {

using nlohmann::ordered_json;

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
  }
  return list;
}

void Recorder::decomposed(
    std::int64_t step,
    const std::vector<methods::LayerRank>& layers,
    double seconds) {
  if (log_ != nullptr) {
    log_->event(
        "decompose",
        step,
        {{"duration", seconds}, {"layers", layers_json(layers)}});
    if (std::ranges::all_of(
            layers, [](const auto& layer) { return layer.rank == 0; })) {
      log_->log().warning(
          "step ",
          step,
          ": no layer was factored: by method.rank none would become smaller");
    }
  }
}

void Recorder::synchronised(
    std::int64_t step, const std::string& mode, double seconds) {
  if (log_ != nullptr) {
    log_->event("sync", step, {{"duration", seconds}, {"mode", mode}});
  }
}

void Recorder::compressed(
    std::int64_t step, const compress::Evaluation& e) {
  vnmse_sum_ += e.vnmse;
  vnmse_count_ += 1;
  if (log_ != nullptr) {
    log_->event(
        "compression",
        step,
        {{"vnmse", e.vnmse},
         {"residual_norm", e.residual_norm},
         {"payload_bits", e.payload_bits},
         {"sent_bits", e.sent_bits},
         {"encode_ms", 1e3 * e.costs.encode},
         {"collective_ms", 1e3 * e.costs.collective},
         {"decode_ms", 1e3 * e.costs.decode}});
  }
}

}  // namespace abtrain::run
