#include "train/trainer.h"

#include "comm/run_workers.h"
#include "device/stream.h"
#include "train/training_loop.h"

namespace abtrain::train {

TrainResult train_worker(comm::Communicator& world, const TrainInputs& inputs) {
  // On streams of their own, workers that share a GPU do not wait for each
  // other's work.
  const device::OwnStream stream(inputs.device);
  return Trainer(world, inputs).run();
}

std::vector<TrainResult> train_threads(TrainInputs inputs) {
  const config::RunOptions& options = inputs.options;
  device::CaptureTurn turn;
  inputs.turn = &turn;
  std::vector<TrainResult> results(static_cast<std::size_t>(options.workers));
  comm::run_workers(
      static_cast<int>(options.workers),
      options.train.timeout,
      [&](comm::Communicator& world) {
        results[static_cast<std::size_t>(world.rank())] =
            train_worker(world, inputs);
      });
  return results;
}

}  // namespace abtrain::train
