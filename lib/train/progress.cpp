#include "train/progress.h"

namespace abtrain::train {

void Progress::archive(state::Archive& archive, double pauses) {
  archive.value("last_loss", last_loss);
  archive.value("rate", rate);
  archive.value("loss_sum", loss_sum);
  archive.value("loss_count", loss_count);
  archive.value("event_step", event_step);
  double shown = event_seconds + pauses;  // stored together with the pauses
  archive.value("event_seconds", shown);
  event_seconds = shown - pauses;
  archive.value("best", best);
}

}  // namespace abtrain::train
