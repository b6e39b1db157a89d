// Writes a method's events to the run's log, and adds up SVD times and compression errors.
#pragma once

#include "methods/method.h"
#include "run_folder/run_log.h"

namespace abtrain::run_folder {

class Recorder : public methods::Observer {
 public:
  struct Sums {
    double svd = 0;    // seconds in singular value decompositions
    double vnmse = 0;  // compression errors of gradients (compress::Evaluation)
    double vnmse_count = 0;
  };

  // `log`: null on all workers but worker 0.
  explicit Recorder(RunLog* log) : log_(log) {}
  void decomposed(
      std::int64_t step, const std::vector<methods::LayerRank>& layers, double seconds) override;
  void synchronized(std::int64_t step, const std::string& mode, double seconds) override;
  void compressed(std::int64_t step, const compress::Evaluation& evaluation) override;
  void add_svd_seconds(double seconds) override {
    sums_.svd += seconds;
  }
  // The sums of this worker.
  const Sums& sums() const {
    return sums_;
  }

 private:
  RunLog* log_;
  Sums sums_;
};

// [{"name", "m", "n", "rank", "energy", "first_energy"}, ...], for metrics and
// summary.
nlohmann::ordered_json layers_json(const std::vector<methods::LayerRank>& layers);

}  // namespace abtrain::run_folder
