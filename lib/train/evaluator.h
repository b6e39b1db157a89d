// Evaluates a run's merged model, together with the other workers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "data/augment.h"
#include "methods/method.h"
#include "train/batches.h"
#include "train/evaluation.h"
#include "train/train_inputs.h"

namespace abtrain::train {

class Evaluator {
 public:
  struct Result {
    Score test = {};
    std::optional<double> train_loss = {};  // if evaluate.train is set
    std::optional<Score> validation = {};   // if examples are held out
  };

  // `world` and `inputs` must outlive this object.
  Evaluator(const TrainInputs& inputs, comm::Communicator& world, at::ScalarType precision);

  const data::Augment& augment() const {
    return augment_;
  }
  const RunExamples& examples() const {
    return examples_;
  }
  // Merges what all workers have trained in t steps into one model, without changing theirs, and
  // renews its running statistics. After the last step (`is_final`), these are up to date already.
  // Collective, like scores() and renew_statistics().
  void merge(methods::Method& method, std::int64_t t, bool is_final);
  // Returns the merged model; merge() must not be called afterwards.
  std::unique_ptr<nn::Model> take() {
    return std::move(merged_);
  }
  // Scores the merged model. `check` gets the name and value of each loss.
  Result scores(const std::function<void(const char* what, double loss)>& check);
  // Drops the merged model's tensors. They are shared with the trained model, which frees dense
  // weights when it factors them.
  void forget();
  // The cost of renew_statistics(), in steps: a forward pass is about a third of a step.
  double steps_of_renewal(const nn::Model& model) const {
    const auto batches = static_cast<double>(options_.evaluate.norm_batches);
    return model.updates_buffers() ? batches / (3 * static_cast<double>(options_.train.accumulate))
                                   : 0;
  }
  // Renews the running statistics after t steps, with evaluate.norm_batches batches.
  void renew_statistics(nn::Model& model, std::int64_t t, comm::Purpose purpose);

 private:
  // The score of the merged model.
  Score score(const ExampleSource& examples, double label_smoothing = 0);

  const TrainInputs& in_;
  const config::RunOptions& options_;
  comm::Communicator& world_;
  data::Augment augment_;
  RunExamples examples_;
  std::unique_ptr<nn::Model> merged_;
};

}  // namespace abtrain::train
