// One worker's order of its units (examples or microbatches), built anew in
// every epoch by decisions on units or on pairs of neighbours: a sign puts a
// unit early or late in the next epoch (Lu et al., arXiv 2205.10733, algorithm
// 3; of pairs Cooper et al., arXiv 2302.00845, algorithm 2).
#pragma once

#include <cstdint>
#include <vector>

namespace abtrain::data {

class BalancedOrder {
 public:
  BalancedOrder() = default;
  // The first epoch's order, a permutation.
  explicit BalancedOrder(std::vector<std::int64_t> first);

  // This epoch's.
  const std::vector<std::int64_t>& order() const {
    return order_;
  }
  // Units that are decided.
  std::int64_t decided() const {
    return decided_;
  }
  // Of the next two units: in the next epoch the first one comes early and the
  // second one late (sign 1), or the other way round (-1). Throws
  // std::logic_error for another sign, and where there are no two.
  void decide_pair(int sign);
  // Of the next unit: it comes early (1) or late (-1).
  void decide_unit(int sign);
  // The next epoch begins; all units must be decided, but for a last one alone,
  // which takes the place that is left.
  void end_epoch();

  // What follows from here on, as numbers, for checkpoints; false: not such
  // numbers, and nothing has changed.
  std::vector<std::int64_t> save() const;
  bool restore(const std::vector<std::int64_t>& saved);

 private:
  void put(bool early);

  std::vector<std::int64_t> order_, next_;
  std::int64_t decided_ = 0;
  std::int64_t early_ = 0;  // units at the beginning of next_
};

}  // namespace abtrain::data
