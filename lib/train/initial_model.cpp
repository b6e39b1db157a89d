#include "train/initial_model.h"

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "weights/model_file.h"

namespace abtrain::train {

InitialModel::InitialModel(
    const config::RunOptions& options, const nn::InputShape& shape, int takers)
    : model_(nn::make_model(options.model, shape)), takers_(takers) {
  const nn::ModelOptions& o = options.model;
  if (!o.weights || !o.fresh.empty()) {
    model_->initialize(o.init, options.seed);
  }
  if (o.weights) {
    try {
      weights::load_model(*o.weights, *model_, o.fresh);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Config) {
        throw;
      }
      throw Error(
          error.kind(), formatted(
                            "model.weights: {}{}", error.what(),
                            error.kind() == ErrorKind::DamagedData
                                ? "\nmodel.fresh names layers that are not taken from the "
                                  "file"
                                : ""));
    }
    const at::NoGradGuard no_grad;
    for (const nn::NamedWeight& w : model_->weights()) {
      if (w.weight->is_factored()) {
        w.weight->set_dense(w.weight->merged());
      }
    }
  }
}

void InitialModel::copy_into(nn::Model& model) {
  const std::lock_guard lock(mutex_);
  ABT_ASSERT(takers_ > 0, "more workers than announced");
  model.copy_from(*model_);
  if (--takers_ == 0) {
    model_.reset();
  }
}

}  // namespace abtrain::train
