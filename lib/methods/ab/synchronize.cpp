#include "methods/ab/synchronize.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <numeric>

#include "comm/traffic.h"
#include "compress/bucket.h"
#include "methods/ab/gather_layers.h"
#include "methods/average.h"

namespace abtrain::methods {

namespace {

using compress::Range;

// Part `index` of `count` parts that differ by at most one element.
Range part(const Range& whole, int index, int count) {
  return {
      whole.begin + comm::chunk_begin(whole.size, count, index),
      comm::chunk_size(whole.size, count, index)};
}

// A worker's place among the workers of its role.
struct PlaceInRole {
  comm::Role role;
  int groups;    // number of groups of this role
  int group;     // index of the worker's group among them
  int position;  // index of the worker in its group
};

PlaceInRole place_in_role(const comm::Groups& groups, int rank) {
  const int of_a = groups.groups_of_a();
  const int group = groups.group_of(rank);
  const int position = rank % groups.group_size;
  return group < of_a ? PlaceInRole{comm::Role::A, of_a, group, position}
                      : PlaceInRole{comm::Role::B, groups.count - of_a, group - of_a, position};
}

// slice_of(): the slice of its factor that a worker and its peers reduce.
// shard_of(): the part of that slice that this worker ends up with.
Range slice_of(const comm::Groups& groups, const PlaceInRole& place, std::int64_t n) {
  return part({0, n}, place.position, groups.group_size);
}
Range shard_of(const comm::Groups& groups, const PlaceInRole& place, std::int64_t n) {
  return part(slice_of(groups, place, n), place.group, place.groups);
}

// The part of its group's record that a worker sends, in bytes.
Range record_part(const comm::Groups& groups, int rank, std::int64_t record) {
  return part({0, record}, rank % groups.group_size, groups.group_size);
}

// Weight of each group in its role's mean, by example count.
std::vector<double> weights_of(
    const comm::Groups& groups, const std::vector<std::int64_t>& batches) {
  std::vector<std::int64_t> examples;  // of each group
  for (auto first = batches.begin(); first != batches.end(); first += groups.group_size) {
    examples.push_back(std::accumulate(first, first + groups.group_size, 0L));
  }
  std::vector<double> weights(static_cast<std::size_t>(groups.count), 1);
  for (int g = 0; g < groups.count && !batches.empty(); ++g) {
    const PlaceInRole place = place_in_role(groups, g * groups.group_size);
    const auto first = examples.begin() + g - place.group;  // the role's first group
    weights[static_cast<std::size_t>(g)] =
        weight_of({first, first + place.groups}, static_cast<std::size_t>(place.group));
  }
  return weights;
}

}  // namespace

comm::Groups make_groups(const MethodOptions& options, int workers) {
  return comm::make_groups(workers, options.group_size, has_one_role(options));
}

bool fit_group_size(MethodOptions& options, int workers) {
  const bool one_role = has_one_role(options);
  const bool gives_way = options.group_size &&
                         !comm::fits(workers, *options.group_size, one_role) &&
                         comm::fits(workers, comm::auto_group_size(workers), one_role);
  if (gives_way) {
    options.group_size.reset();
  }
  return gives_way;
}

FactorExchange::FactorExchange(
    comm::Communicator& world, const comm::Groups& groups, const std::vector<std::int64_t>& batches)
    : world_(world), groups_(groups), weights_(weights_of(groups, batches)) {
  const PlaceInRole place = place_in_role(groups_, world.rank());
  const int role = place.role == comm::Role::A ? 0 : 1;
  peers_ = world.split(role * groups_.group_size + place.position);
}

FlatFactors FactorExchange::mean_changes(
    const at::Tensor& change, std::int64_t a, std::int64_t b, at::ScalarType wire,
    comm::Purpose purpose) {
  const at::NoGradGuard no_grad;
  const PlaceInRole own = place_in_role(groups_, world_.rank());
  const Range slice = slice_of(groups_, own, change.numel());
  const Range shard = shard_of(groups_, own, change.numel());

  at::Tensor mine = slice.of(change);
  const double weight = weights_[static_cast<std::size_t>(groups_.group_of(world_.rank()))];
  if (weight != 1) {
    mine = mine * weight;  // before it is rounded
  }
  const at::Tensor in = mine.to(wire, /*non_blocking=*/false, /*copy=*/true);
  at::Tensor mean = at::empty({shard.size}, in.options());
  peers_->reduce_scatter(mean, in, comm::ReduceOp::Mean, purpose).wait();

  std::vector<Range> shards;
  Counts counts;
  for (int r = 0; r < world_.size(); ++r) {
    const bool is_a = groups_.role_of(r) == comm::Role::A;
    shards.push_back(shard_of(groups_, place_in_role(groups_, r), is_a ? a : b));
    counts.push_back(shards.back().size);
  }
  const at::Tensor all = gather_pieces(mean, counts, world_, purpose);

  FlatFactors result;
  result.b = at::empty({b}, change.options());
  if (groups_.role_of(0) == comm::Role::A) {
    result.a = at::empty({a}, change.options());
  }
  std::int64_t offset = 0;
  for (int r = 0; r < world_.size(); ++r) {
    const Range range = shards[static_cast<std::size_t>(r)];
    at::Tensor& target = groups_.role_of(r) == comm::Role::A ? result.a : result.b;
    range.of(target).copy_(all.narrow(0, offset, range.size));
    offset += range.size;
  }
  return result;
}

FlatFactors FactorExchange::mean_changes(
    const at::Tensor& change, std::int64_t a, std::int64_t b, const ops::WireFormat& format,
    comm::Purpose purpose) {
  const at::NoGradGuard no_grad;
  const auto size_of = [&](int rank) {
    return ops::wire_bytes(format, groups_.role_of(rank) == comm::Role::A ? a : b);
  };
  const at::Tensor record = at::empty({size_of(world_.rank())}, change.options().dtype(at::kByte));
  ops::encode_wire(change, format, record);

  Counts counts;
  for (int r = 0; r < world_.size(); ++r) {
    counts.push_back(record_part(groups_, r, size_of(r)).size);
  }
  const Range own = record_part(groups_, world_.rank(), record.numel());
  const at::Tensor all = gather_pieces(own.of(record), counts, world_, purpose);

  // The workers of a group have consecutive ranks, so its record is whole again.
  FlatFactors result;
  std::int64_t offset = 0;
  for (int g = 0; g < groups_.count; ++g) {
    const int first = g * groups_.group_size;
    const PlaceInRole place = place_in_role(groups_, first);
    const bool is_a = place.role == comm::Role::A;
    at::Tensor& mean = is_a ? result.a : result.b;
    if (!mean.defined()) {
      mean = at::empty({is_a ? a : b}, change.options());
    }
    const std::int64_t size = size_of(first);
    ops::decode_wire(
        all.narrow(0, offset, size), format,
        static_cast<float>(weights_[static_cast<std::size_t>(g)]) /
            static_cast<float>(place.groups),
        /*add=*/place.group > 0, mean);
    offset += size;
  }
  return result;
}

std::int64_t FactorExchange::bytes_sent(
    const comm::Groups& groups, int rank, std::int64_t a, std::int64_t b,
    const ops::WireFormat& format) {
  const std::int64_t record =
      ops::wire_bytes(format, groups.role_of(rank) == comm::Role::A ? a : b);
  return comm::all_gather_bytes(
      record_part(groups, rank, record).size, 1, groups.group_size * groups.count);
}

std::int64_t FactorExchange::bytes_sent(
    const comm::Groups& groups, int rank, std::int64_t a, std::int64_t b,
    std::int64_t element_size) {
  const PlaceInRole place = place_in_role(groups, rank);
  const std::int64_t n = place.role == comm::Role::A ? a : b;
  const std::int64_t slice = slice_of(groups, place, n).size;
  const std::int64_t shard = shard_of(groups, place, n).size;
  return (slice - shard) * element_size +
         comm::all_gather_bytes(shard, element_size, groups.group_size * groups.count);
}

linalg::LowRankPair merge_factors(
    SyncMode mode, const linalg::LowRankPair& start, const linalg::LowRankPair& change) {
  const at::NoGradGuard no_grad;
  const auto& [da, db] = change;
  switch (mode) {
    case SyncMode::OnlyLearned:
    case SyncMode::OnlyB:
      return {da.defined() ? start.a + da : start.a, db.defined() ? start.b + db : start.b};
    case SyncMode::WithStale:
      return {start.a + da * 0.5, start.b + db * 0.5};
    case SyncMode::Full:
      break;
  }
  // (A0 + dA/2) B0 + A0 (dB/2), a product of rank 2r.
  return {at::cat({start.a + da * 0.5, start.a}, -1), at::cat({start.b, db * 0.5}, -2)};
}

}  // namespace abtrain::methods
