#include "run/recorder.h"

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
  }
}

void Recorder::synchronised(
    std::int64_t step, const std::string& mode, double seconds) {
  if (log_ != nullptr) {
    log_->event("sync", step, {{"duration", seconds}, {"mode", mode}});
  }
}

}  // namespace abtrain::run
