#include "methods/method.h"

#include <ATen/ops/empty.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"

namespace abtrain::methods {

void Method::check_replicas(std::int64_t t) {
  if (!replicas_agree(t)) {
    return;
  }
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const at::Tensor& tensor : replicated_state()) {
    const at::Tensor here = tensor.cpu().contiguous();
    XXH3_64bits_update(&state, here.const_data_ptr(), here.nbytes());
  }
  comm::Communicator& group = replicas();
  at::Tensor mine = at::empty({1}, at::kLong);
  *mine.data_ptr<std::int64_t>() =
      static_cast<std::int64_t>(XXH3_64bits_digest(&state));
  at::Tensor all = at::empty({group.size()}, at::kLong);
  group.all_gather(all, mine, comm::Purpose::Metrics).wait();
  const auto* hashes = all.const_data_ptr<std::int64_t>();
  for (int r = 1; r < group.size(); ++r) {
    ABT_CHECK(
        hashes[r] == hashes[0],
        Diverged,
        "step ",
        t,
        ": replicas differ: worker ",
        r,
        " of the group does not hold the same bits as worker 0");
  }
}

}  // namespace abtrain::methods
