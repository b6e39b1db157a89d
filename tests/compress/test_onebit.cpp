#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "base/text.h"
#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

const ReducerOptions kOptions = scheme("onebit");

// A tensor that fills blocks, one that does not, a small one.
std::vector<Slot> three_slots() {
  return {{"a", 0, {64, 128}}, {"b", 8192, {37, 41}, 1}, {"c", 9709, {5}, 2}};
}

TEST(OneBit, KeepsWhatItDoesNotSend) {
  for (const int n : {1, 2, 3, 4, 8}) {
    for (const std::int64_t numel : {1, 33, 4097, 40001}) {
      SCOPED_TRACE(abtrain::str(n, " workers, ", numel));
      check_conservation(kOptions, one_slot({numel}), n);
    }
  }
}

TEST(OneBit, BytesOfManyTensors) {
  for (const double mebibytes : {0.0, 0.01}) {
    ReducerOptions options = kOptions;
    options.bucket_mb = mebibytes;
    run_steps(options, three_slots(), 3, 9, normal_gradients(9714));
  }
}

TEST(OneBit, ResidualsAreBounded) {
  check_bounded(kOptions, one_slot({301}), 4, normal_gradients(301));
  check_bounded(kOptions, one_slot({301}), 3, normal_gradients(301, 1.0));
}

}  // namespace
}  // namespace abtrain::compress
