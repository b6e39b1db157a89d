// Merges the factors that groups trained separately.
//
// With dA = mean of A - A0 over the workers of the A-groups, and dB likewise:
//   only-learned  W = (A0 + dA)(B0 + dB)
//   with-stale    W = (A0 + dA/2)(B0 + dB/2): half of the workers hold A0, the others B0
//   full          W = A0 B0 + dA B0 / 2 + A0 dB / 2, the mean of all A_i B_i
//   only-b        W = A0 (B0 + dB)
// Source: Coquelin et al., arXiv 2405.01067.
//
// Each worker sends the change of its own factor. The g members of a group hold bit-identical
// factors, so each of them sends a g-th of the change to the groups of its role (reduce-scatter);
// then everyone receives all shards (all-gather).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/groups.h"
#include "linalg/svd.h"
#include "methods/method_options.h"
#include "ops/wire_codes.h"

namespace abtrain::methods {

// Throws ConflictError if the groups that the options ask for do not fit.
comm::Groups make_groups(const MethodOptions& options, int workers);

// Replaces a group size that does not fit this number of workers by auto, if auto fits. Returns
// whether it did.
bool fit_group_size(MethodOptions& options, int workers);

// Whether groups hold different parameters, which a synchronization averages. False for a single
// group that trains both factors.
inline bool groups_differ(const AbOptions& options, const comm::Groups& groups) {
  return options.trains == Trains::One || groups.count > 1;
}

// The factors A and the factors B of all layers, each flat.
using FlatFactors = linalg::LowRankPair;

// Averages factor changes over the groups of each role, and sends the means to all workers.
class FactorExchange {
 public:
  // Collective over `world`, which it splits. `batches`: each worker's batch size, which is its
  // weight in means; empty: all are equal.
  FactorExchange(
      comm::Communicator& world, const comm::Groups& groups,
      const std::vector<std::int64_t>& batches = {});

  // `change`: the change of the factor that this worker trains, flat, sent in dtype `wire`. Returns
  // the mean changes dA (length a) and dB (length b), bit-identical on all workers; dA is undefined
  // if there are no A-groups.
  FlatFactors mean_changes(
      const at::Tensor& change, std::int64_t a, std::int64_t b, at::ScalarType wire,
      comm::Purpose purpose);

  // As above, with changes sent as codes: each worker sends its part of its group's encoded change,
  // the record, and everyone decodes all records. The part of the change that the record leaves out
  // stays in `change`, bit-identical in the whole group.
  FlatFactors mean_changes(
      const at::Tensor& change, std::int64_t a, std::int64_t b, const ops::WireFormat& format,
      comm::Purpose purpose);

  // Bytes that worker `rank` sends in one exchange.
  static std::int64_t bytes_sent(
      const comm::Groups& groups, int rank, std::int64_t a, std::int64_t b,
      std::int64_t element_size);
  static std::int64_t bytes_sent(
      const comm::Groups& groups, int rank, std::int64_t a, std::int64_t b,
      const ops::WireFormat& format);

 private:
  comm::Communicator& world_;
  comm::Groups groups_;
  std::vector<double> weights_;  // one per group, in its role's mean
  // The workers with this worker's role and position in their group, one per group.
  std::unique_ptr<comm::Communicator> peers_;
};

// One layer's merged weight as a product: rank r, or 2r in mode `full`. `start`: the factors A0, B0
// that the groups started from. `change`: their mean changes; in mode only-b, the change of the
// factor that nobody trained is undefined.
linalg::LowRankPair merge_factors(
    SyncMode mode, const linalg::LowRankPair& start, const linalg::LowRankPair& change);

}  // namespace abtrain::methods
