#include "train/trainer.h"

#include "device/stream.h"
#include "train/training_loop.h"

namespace abtrain::train {

TrainResult train_worker(comm::Communicator& world, const TrainInputs& inputs) {
  // On streams of their own, workers that share a GPU do not wait for each
  // other's work.
  const device::OwnStream stream(inputs.device);
  return Trainer(world, inputs).run();
}

}  // namespace abtrain::train
