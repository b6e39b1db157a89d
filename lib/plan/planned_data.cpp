#include "plan/planned_data.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/run_length.h"

namespace abtrain::plan {

PlannedData planned_data(const data::DataOptions& options) {
  try {
    return {data::dataset_shape(options), ""};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::MissingInput || data::is_arrays(options)) {
      throw;
    }
  }
  if (!data::is_text(options)) {
    const std::int64_t side = options.image_size;
    return {{{3, side, side, 1000}, 1'281'167, 50'000}, "ImageNet's"};
  }
  constexpr double kBytes = 40e6;  // about the size of the data set gcide
  const double windows = kBytes / options.bytes_per_token / static_cast<double>(options.context);
  const auto share = [&](double part) {
    return std::max<std::int64_t>(1, std::llround(part * windows));
  };
  return {
      {config::text_shape(options), share(1 - options.test_share), share(options.test_share)},
      "those of 40 MB of text"};
}

}  // namespace abtrain::plan
