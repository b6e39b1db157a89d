#include "train/checkpoint_model.h"

#include <ATen/Parallel.h>

#include "base/error.h"
#include "comm/run_workers.h"
#include "train/about_model.h"
#include "train/resume.h"
#include "train/setup.h"
#include "train/trainer.h"
#include "weights/export.h"
#include "weights/initial_model.h"
#include "weights/model_file.h"

namespace abtrain::train {

void save_model_of(
    const run_folder::Checkpoint& checkpoint, const config::RunOptions& options,
    const std::string& path, Log& log) {
  const std::string change = weights::change_of_model_file(checkpoint.model_file, options);
  ABT_CHECK(change.empty(), Config, "{}: {}", checkpoint.folder, change);
  data::Dataset dataset = load_data(options.data, options.workers, log);
  const data::Examples validation =
      data::take_validation(dataset, options.data.validation, options.seed);
  at::set_num_threads(threads_per_worker(options, options.workers));
  const std::unique_ptr<nn::Model> base =
      config::keeps_base(options) ? weights::make_initial_model(options, dataset) : nullptr;
  const auto initialize = [&](nn::Model& model) {
    if (base != nullptr) {
      model.copy_from(*base);
    } else {
      model.initialize(nn::InitName::Zeros, 0);  // the checkpoint has all weights
    }
  };
  const TrainInputs inputs{
      .options = options,
      .dataset = dataset,
      .validation = validation,
      .device = at::kCPU,
      .initialize = initialize,
      .resume = &checkpoint};
  comm::run_workers(
      static_cast<int>(options.workers), options.train.timeout, [&](comm::Communicator& world) {
        Trainer trainer(world, inputs);
        const auto model = trainer.model_of_checkpoint();
        if (world.rank() == 0) {
          weights::save_model(
              path, *model,
              {.names = options.model.names,
               .about = about_model(options, dataset, checkpoint.model_file)});
        }
      });
}

}  // namespace abtrain::train
