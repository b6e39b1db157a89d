#include "comm/communicator.h"

namespace abtrain::comm {

const char* name_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::Gradient:
      return "gradient";
    case Purpose::Sync:
      return "sync";
    case Purpose::Factors:
      return "factors";
    case Purpose::Orders:
      return "orders";
    case Purpose::Metrics:
      return "metrics";
  }
  return "?";
}

}  // namespace abtrain::comm
