#include "base/error.h"
#include "commands.h"

namespace abtrain::app {

int run_plan(const PlanArgs&) {
  throw Error(ErrorKind::Usage, "plan: not in this build");
}

}  // namespace abtrain::app
