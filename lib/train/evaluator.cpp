#include "train/evaluator.h"

#include "base/text.h"
#include "train/norm_statistics.h"

namespace abtrain::train {

Evaluator::Evaluator(
    const TrainInputs& inputs, comm::Communicator& world, at::ScalarType precision)
    : in_(inputs),
      options_(inputs.options),
      world_(world),
      augment_(options_.data, in_.dataset, options_.seed),
      examples_(examples_of(in_)),
      merged_(nn::make_model(options_.model, in_.dataset)) {
  merged_->compute_in({precision});
}

void Evaluator::merge(methods::Method& method, std::int64_t t, bool is_final) {
  method.merge_into(*merged_);
  if (!is_final) {
    renew_statistics(*merged_, t, comm::Purpose::Metrics);
  }
}

Score Evaluator::score(const ExampleSource& examples, double label_smoothing) {
  return evaluate(
      *merged_, examples, augment_, options_.evaluate.batch_size, in_.device, world_,
      label_smoothing);
}

Evaluator::Result Evaluator::scores(
    const std::function<void(const char* what, double loss)>& check) {
  Result result{.test = score(examples_.test)};
  check("test loss", result.test.loss);
  if (options_.evaluate.train) {
    const Score train = score(examples_.train, options_.train.label_smoothing);
    result.train_loss = train.loss + penalty(*merged_, options_.optimizer);
    check(
        formatted("loss over the training {}", data::examples_of(options_.data)).c_str(),
        *result.train_loss);
  }
  if (in_.validation.size() > 0) {
    result.validation = score(examples_.validation);
    check("validation loss", result.validation->loss);
  }
  return result;
}

void Evaluator::forget() {
  for (at::Tensor* const tensor : merged_->tensors()) {
    tensor->reset();
  }
}

// The batches depend only on seed, step and worker. Training uses another loader, so renewals do
// not change its results.
void Evaluator::renew_statistics(nn::Model& model, std::int64_t t, comm::Purpose purpose) {
  if (options_.evaluate.norm_batches == 0 || !model.updates_buffers()) {
    return;
  }
  // Epoch t of a shuffled order, whatever the order of the run is.
  const auto order =
      data::make_shuffle({in_.dataset.train.size(), world_.rank(), world_.size(), options_.seed});
  const auto batches = make_batches(
      examples_.train, augment_, *order, options_.data.batch_size,
      t * data::full_batches(*order, options_.data.batch_size), in_.device);
  collect_statistics(model, *batches, options_.evaluate.norm_batches, world_, purpose);
}

}  // namespace abtrain::train
