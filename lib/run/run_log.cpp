#include "run/run_log.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace abtrain::run {

RunLog::RunLog(const std::string& folder, Log& log)
    : log_(log), writer_(folder + "/metrics.jsonl", 0) {}

void RunLog::event(
    const char* name, std::int64_t step, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {
      {"event", name}, {"step", step}, {"seconds", watch_.seconds()}};
  line.update(fields);
  writer_.write(line.dump());
}

void RunLog::progress(
    std::int64_t step,
    std::int64_t total,
    const std::string& phase,
    double loss,
    double examples_per_second) {
  if (!log_.is_live() || watch_.seconds() - last_live_ < 0.2) {
    return;
  }
  last_live_ = watch_.seconds();
  const double left = step > 0
      ? last_live_ / static_cast<double>(step) *
          static_cast<double>(total - step)
      : 0;
  log_.live(
      str("step ",
          step,
          "/",
          total,
          "  ",
          phase,
          "  loss ",
          fixed(loss, 4),
          "  ",
          with_commas(static_cast<std::int64_t>(examples_per_second)),
          " images/s  ",
          human_seconds(left),
          " left"));
}

}  // namespace abtrain::run
