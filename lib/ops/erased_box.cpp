#include "ops/erased_box.h"

#include "kernels/images/erased_box.h"

namespace abtrain::ops {

Box draw_erased(Random& random, std::int64_t height, std::int64_t width) {
  const kernels::Box box = kernels::draw_erased_box(random, height, width);
  return {box.top, box.left, box.height, box.width};
}

}  // namespace abtrain::ops
