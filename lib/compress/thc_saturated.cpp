#include "base/error.h"
#include "compress/schemes.h"

namespace abtrain::compress {

std::unique_ptr<Reducer> make_thc_saturated(
    const ReducerOptions&, std::uint64_t /*seed*/) {
  throw Error(ErrorKind::Config, "reducer.name: thc_saturated is not there yet");
}

}  // namespace abtrain::compress
