// One worker's order of its units (examples or microbatches), built anew in
// every epoch by the decisions on pairs of neighbours: GraB's PairBalance
// (Cooper et al., arXiv 2302.00845, algorithm 2; ops/pair_balance.h decides).
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::data {

class PairOrder {
 public:
  PairOrder() = default;
  // The first epoch's order, a permutation.
  explicit PairOrder(std::vector<std::int64_t> first);

  // This epoch's.
  const std::vector<std::int64_t>& order() const {
    return order_;
  }
  std::int64_t pairs() const {
    return static_cast<std::int64_t>(order_.size()) / 2;
  }
  // Of pairs 0, 1, ... of this epoch in turn, at places 2 l and 2 l + 1: in the
  // next epoch the first unit of both comes early and the second one late (sign
  // 1), or the other way round (-1). Throws std::logic_error for another sign,
  // and for one too many.
  void decide(int sign);
  std::int64_t decided() const {
    return decided_;
  }
  // The next epoch begins; all pairs must be decided. What an odd number leaves
  // over comes in the middle.
  void end_epoch();

 private:
  std::vector<std::int64_t> order_, next_;
  std::int64_t decided_ = 0;
};

}  // namespace abtrain::data
