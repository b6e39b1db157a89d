// The keys of local-sgd and diloco in the `method:` section.
#pragma once

#include <cstdint>

namespace abtrain::methods {

// What local-sgd averages besides running statistics.
enum class Averaged { Params, ParamsAndMoments };

struct LocalOptions {
  Averaged average = Averaged::Params;  // local-sgd
  std::int64_t fragments = 1;           // diloco
  std::int64_t delay = 0;               // diloco, in steps
  // diloco: weight of the synchronized fragment in the parameters that a worker continues with.
  double mixing = 1;
};

}  // namespace abtrain::methods
