// Makes one list from another.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace abtrain {

// Returns a vector of make(item) for each item, in order. `make` is a function
// or a pointer to a member.
auto mapped(auto&& items, auto make) {
  std::vector<std::decay_t<decltype(std::invoke(make, *std::begin(items)))>> made;
  std::ranges::transform(items, std::back_inserter(made), make);
  return made;
}

}  // namespace abtrain
