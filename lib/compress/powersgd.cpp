#include "base/error.h"
#include "compress/schemes.h"

namespace abtrain::compress {

std::unique_ptr<Reducer> make_powersgd(
    const ReducerOptions&, std::uint64_t /*seed*/) {
  throw Error(ErrorKind::Config, "reducer.name: powersgd is not there yet");
}

}  // namespace abtrain::compress
