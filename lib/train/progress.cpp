#include "train/progress.h"

#include <vector>

#include "base/error.h"

namespace abtrain::train {

void Progress::archive(state::Archive& archive, double pauses) {
  archive.value("last_loss", last_loss);
  archive.value("rate", rate);
  archive.value("loss_sum", loss_sum);
  archive.value("loss_count", loss_count);
  archive.value("event_step", event_step);
  double shown = event_seconds + pauses;  // a checkpoint stores it with the pauses
  archive.value("event_seconds", shown);
  event_seconds = shown - pauses;
  archive.value("best", best);
}

void Progress::archive_before(state::Archive& archive) {
  std::vector<double> list;
  if (before) {
    list = {before->accuracy, before->loss, before->bytes_per_token, before->regression ? 1.0 : 0};
  }
  archive.value("before", list);
  if (archive.is_loading()) {
    ABT_CHECK(
        list.empty() || list.size() == 4, DamagedData,
        "the checkpoint's value 'before': expected the four numbers of a score, got {}",
        list.size());
    before.reset();
    if (!list.empty()) {
      before = Score{list[0], list[1], list[2], list[3] != 0};
    }
  }
}

}  // namespace abtrain::train
