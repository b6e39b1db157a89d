// A list made of another one.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace abtrain {

// What `make` (a function, or a member) gives for each of the items, in order.
auto mapped(auto&& items, auto make) {
  std::vector<std::decay_t<decltype(std::invoke(make, *std::begin(items)))>> made;
  std::ranges::transform(items, std::back_inserter(made), make);
  return made;
}

}  // namespace abtrain
