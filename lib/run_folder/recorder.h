// Writes a method's events to the run's log, and adds up its SVD time.
#pragma once

#include "methods/method.h"
#include "run_folder/run_log.h"

namespace abtrain::run_folder {

class Recorder : public methods::Observer {
 public:
  // `log` may be null: only worker 0 writes.
  explicit Recorder(RunLog* log) : log_(log) {}
  void decomposed(
      std::int64_t step,
      const std::vector<methods::LayerRank>& layers,
      double seconds) override;
  void synchronized(std::int64_t step, const std::string& mode, double seconds)
      override;
  void compressed(std::int64_t step, const compress::Evaluation& evaluation)
      override;
  void add_svd_seconds(double seconds) override {
    svd_ += seconds;
  }
  // Seconds spent in singular value decompositions.
  double svd() const {
    return svd_;
  }
  // Sum and number of the vNMSE evaluations so far.
  double vnmse_sum() const {
    return vnmse_sum_;
  }
  double vnmse_count() const {
    return vnmse_count_;
  }

 private:
  RunLog* log_;
  double svd_ = 0;
  double vnmse_sum_ = 0;
  double vnmse_count_ = 0;
};

// [{"name", "m", "n", "rank", "energy", "first_energy"}, ...], for metrics and
// summary.
nlohmann::ordered_json layers_json(
    const std::vector<methods::LayerRank>& layers);

}  // namespace abtrain::run_folder
