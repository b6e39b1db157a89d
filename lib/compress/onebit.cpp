#include "base/error.h"
#include "compress/schemes.h"

namespace abtrain::compress {

std::unique_ptr<Reducer> make_onebit(
    const ReducerOptions&, std::uint64_t /*seed*/) {
  throw Error(ErrorKind::Config, "reducer.name: onebit is not there yet");
}

}  // namespace abtrain::compress
