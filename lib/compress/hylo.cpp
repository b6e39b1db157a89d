#include "base/error.h"
#include "compress/schemes.h"

namespace abtrain::compress {

std::unique_ptr<Reducer> make_hylo(
    const ReducerOptions&, std::uint64_t /*seed*/) {
  throw Error(ErrorKind::Config, "reducer.name: hylo is not there yet");
}

}  // namespace abtrain::compress
