#include "train/norm_statistics.h"

#include "methods/average.h"

namespace abtrain::train {

void collect_statistics(
    nn::Model& model, data::BatchSource& batches, std::int64_t count, comm::Communicator& world,
    comm::Purpose purpose) {
  if (!model.updates_buffers()) {
    return;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    data::Batch batch;
    batches.next(batch);
    model.collect_statistics(batch.inputs, k);
  }
  // All workers have equally many batches, so the mean of their means is the mean over all batches.
  methods::average_buffers(model, world, purpose);
}

}  // namespace abtrain::train
