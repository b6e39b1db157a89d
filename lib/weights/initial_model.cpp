#include "weights/initial_model.h"

#include <ATen/core/grad_mode.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/files.h"
#include "weights/adapter.h"
#include "weights/model_file.h"

namespace abtrain::weights {

namespace {

// `hash`: the hash of the model's other inputs, which is included.
std::string hash_of_tensors(const nn::Model& model, std::uint64_t hash) {
  for (const at::Tensor* const tensor : model.tensors()) {
    if (tensor->defined()) {
      const at::Tensor rows = tensor->contiguous();
      hash = XXH3_64bits_withSeed(rows.const_data_ptr(), rows.nbytes(), hash);
    }
  }
  return hash_text(hash);
}

}  // namespace

std::unique_ptr<nn::Model> make_initial_model(
    const config::RunOptions& options, const data::ExampleShape& shape) {
  const nn::ModelOptions& o = options.model;
  std::unique_ptr<nn::Model> model = nn::make_model(o, shape);
  if (!o.weights || !o.fresh.empty()) {
    model->initialize(o.init, options.seed);
  }
  if (o.file) {
    check_finite(*model, *o.file);
  }
  if (o.weights) {
    try {
      load_model(*o.weights, *model, o.fresh);
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
    for (const nn::NamedWeight& w : model->weights()) {
      if (w.weight->is_factored()) {
        w.weight->set_dense(w.weight->merged());
      }
    }
  }
  if (config::keeps_base(options)) {
    // The adapter's files are hashed, because its tensors are read only below.
    model->set_base(hash_of_tensors(*model, o.adapter ? hash_of_adapter(*o.adapter) : 0));
  }
  if (o.adapter) {
    load_adapter(*o.adapter, *model);
    if (!config::trains_adapters(options)) {
      const at::NoGradGuard no_grad;
      for (const nn::NamedWeight& w : model->weights()) {
        if (w.weight->rest.defined()) {
          w.weight->set_dense(w.weight->merged());
          w.weight->rest.reset();
          w.weight->scale = 1;
          w.weight->set_adapts(false);
        }
      }
    }
  }
  return model;
}

}  // namespace abtrain::weights
