// The order in which a worker visits its units: single examples, or microbatches (all its examples
// of a step). During an epoch, signs build the next epoch's order. Each sign puts one unit early,
// in its first free place, or late, in its last free place (Lu et al., arXiv 2205.10733, algorithm
// 3), or decides a pair of neighbors (Cooper et al., arXiv 2302.00845, algorithm 2).
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::data {

class BalancedOrder {
 public:
  BalancedOrder() = default;
  // `first`: the order of the first epoch, a permutation.
  explicit BalancedOrder(std::vector<std::int64_t> first);

  // This epoch's order.
  const std::vector<std::int64_t>& order() const {
    return order_;
  }
  // Decides the next two units. With sign 1, the first one comes early and the second one late in
  // the next epoch; with -1, the other way round. Throws std::logic_error for any other sign, and
  // if fewer than two units are left.
  void decide_pair(int sign);
  // Decides the next unit: it comes early (1) or late (-1).
  void decide_unit(int sign);
  // Begins the next epoch. All units must be decided, except that one last unit may be left; it
  // takes the remaining place.
  void end_epoch();

  // save() returns the state as numbers, for checkpoints. restore() returns false and changes
  // nothing if `saved` is not such a state.
  std::vector<std::int64_t> save() const;
  bool restore(const std::vector<std::int64_t>& saved);

 private:
  std::vector<std::int64_t> order_, next_;
  std::int64_t decided_ = 0;  // units decided so far
  std::int64_t early_ = 0;    // units at the front of next_
};

}  // namespace abtrain::data
