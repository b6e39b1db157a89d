#include "sweep/small_networks.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace abtrain::sweep {

namespace {

plan::SmallShape network_in(
    const std::string& file, const std::function<config::RunOptions(const Sets&)>& read,
    std::int64_t parameters) {
  const Sets sets = {"model.file=" + in_quotes(file)};
  plan::SmallShape given = plan::shape_of(
      "given", "the network of --small", read(joined({{"method.name=ddp"}, sets})), sets);
  constexpr double kMaxDifference = 0.03;
  const auto wanted = static_cast<double>(parameters);
  ABT_CHECK(
      std::abs(static_cast<double>(given.size.parameters) - wanted) <= kMaxDifference * wanted,
      Config,
      "--small: expected a network with as many parameters as AB-training stores, {} up to 3 %; {} "
      "has {}",
      with_commas(parameters), file, with_commas(given.size.parameters));
  return given;
}

}  // namespace

SmallNetworks small_networks(
    const std::function<config::RunOptions(const Sets&)>& read, const config::RunOptions& ab,
    std::int64_t parameters, const RivalsRequest& request) {
  const bool is_exported = ab.model.name == "exported";
  ABT_CHECK(
      !request.small || is_exported, Usage,
      "--small: expected an exported model (model.file) to go with it; the small networks of {} "
      "follow from its own layers",
      ab.model.name);
  SmallNetworks found;
  if (request.small) {
    found.shapes.shapes.push_back(network_in(*request.small, read, parameters));
  } else if (is_exported) {
    found.missing = formatted(
        "the strongest kind of rival, a smaller dense network, did not run, because an exported "
        "model cannot be narrowed here: export one with about {} parameters "
        "(abtrain.match_size finds its width) and give it to `abtrain rivals` with --small FILE",
        with_commas(parameters));
  } else {
    try {
      const config::RunOptions dense = read({"method.name=ddp"});
      if (request.plans) {
        found.shapes.shapes.push_back(plan::narrow_shape(dense, parameters));
      } else {
        found.shapes = plan::small_shapes(dense, parameters, &ab);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Config) {
        throw;
      }
      found.missing = error.what();
    }
  }
  return found;
}

}  // namespace abtrain::sweep
