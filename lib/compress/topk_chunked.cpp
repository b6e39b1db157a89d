#include "base/error.h"
#include "compress/schemes.h"

namespace abtrain::compress {

std::unique_ptr<Reducer> make_topk_chunked(
    const ReducerOptions&, std::uint64_t /*seed*/) {
  throw Error(ErrorKind::Config, "reducer.name: topk_chunked is not there yet");
}

}  // namespace abtrain::compress
