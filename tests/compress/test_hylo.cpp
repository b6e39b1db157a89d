#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "base/text.h"
#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

ReducerOptions hylo(const std::string& select, const std::string& transport) {
  ReducerOptions options = scheme("hylo");
  options.select = select;
  options.transport = transport;
  return options;
}

TEST(Hylo, KeepsWhatItDoesNotSend) {
  for (const int n : {1, 2, 3, 4, 8}) {
    for (const std::string transport : {"int8", "a2a", "gather"}) {
      for (const std::int64_t rows : {1, 33, 257}) {
        SCOPED_TRACE(abtrain::str(n, " workers, ", transport, rows));
        check_conservation(
            hylo("consensus", transport), one_slot({rows, 41}), n);
      }
    }
    for (const std::string select : {"consensus", "local"}) {
      for (const std::int64_t rows : {1, 33, 64}) {
        SCOPED_TRACE(abtrain::str(n, " workers, ", select, rows));
        check_conservation(
            hylo(select, "int8"), one_slot({rows, 7, 3, 3}), n, 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::compress
