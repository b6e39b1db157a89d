// hylo compresses by kind of layer: a convolution sends its output filters ("kernels") of largest
// norm in fp16, a linear layer sends codes -t, 0, +t, and other tensors are sent uncompressed. See
// docs/methods/hylo.md.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "compress/code_sums.h"
#include "compress/compressed_reducer.h"
#include "ops/magnitudes.h"
#include "ops/rows.h"

namespace abtrain::compress {

namespace {

// A linear layer's t is kShare * sum u^2 / sum |u|.
constexpr double kShare = 0.70;
constexpr double kMinRate = 0.05;  // smallest share of kernels sent
constexpr auto kAutoTransport = CodeTransport::Int8;

bool is_convolution(const Slot& slot) {
  return slot.sizes.size() == 4;
}
bool is_linear(const Slot& slot) {
  return slot.sizes.size() == 2;
}

// The compressed tensors of a bucket.
struct Layers {
  ops::RowTable kernels;    // of convolutions
  std::vector<Range> runs;  // the parts of u that convolutions fill
  ops::TernaryTable codes;  // of linear layers
};

class Hylo : public CompressedReducer {
 public:
  Hylo(const ReducerOptions& options, std::uint64_t seed)
      : CompressedReducer(options, seed), transport_(options.transport.value_or(kAutoTransport)) {}

 protected:
  bool compresses(const Slot& slot) const override {
    return slot.numel() >= min_numel_ && (is_convolution(slot) || is_linear(slot));
  }

  Rounds exchange(Task task) override {
    Layers& layers = layers_[task.packed->bucket];
    if (layers.kernels.size() == 0 && layers.codes.blocks().size() == 0) {
      layers = layers_of(*task.packed);
    }
    comm::Communicator& group = *task.group;

    // One all-reduce gives all members the same norms of all kernels and the same two sums of each
    // linear layer.
    const at::Tensor agreed = at::empty({agreed_of(layers)}, task.u.options());
    const std::int64_t shared = layers.kernels.rows();
    const at::Tensor norms = agreed.narrow(0, 0, shared);
    const at::Tensor sums = agreed.narrow(0, shared, agreed.numel() - shared);
    ops::row_norms(task.u, layers.kernels, norms);
    ops::magnitudes(task.u, layers.codes.blocks(), ops::Statistic::Moments, sums);
    if (agreed.numel() > 0) {
      co_yield group.all_reduce(agreed, comm::ReduceOp::Sum, task.purpose);
    }

    Rounds kernels = send_kernels(task, layers, norms);
    Rounds codes = average_by_codes(
        layers.codes, task.u, threshold_of(sums), task.estimate, *task.group, task.purpose,
        transport_);
    // Interleaved: both start their collectives before the owner waits for either.
    bool has_kernels = layers.kernels.size() > 0;
    bool has_codes = layers.codes.blocks().size() > 0;
    while (has_kernels || has_codes) {
      has_kernels = has_kernels && kernels.resume();
      has_codes = has_codes && codes.resume();
      if (has_kernels) {
        co_yield kernels.take_pending();
      }
      if (has_codes) {
        co_yield codes.take_pending();
      }
    }
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    const Layers layers = layers_of(packed);
    return member.all_reduce(agreed_of(layers), 4) + member.all_reduce(layers.kernels.values(), 2) +
           code_sums_volume(layers.codes.blocks(), transport_, member);
  }

 private:
  std::int64_t chosen_of(const Slot& slot) const {
    const double rate = std::clamp(
        std::sqrt(static_cast<double>(min_numel_) / static_cast<double>(slot.numel())), kMinRate,
        1.0);
    return static_cast<std::int64_t>(std::ceil(rate * static_cast<double>(slot.rows())));
  }

  Layers layers_of(const Packed& packed) const {
    std::vector<Slot> convolutions = packed.slots;
    const auto linear = std::ranges::stable_partition(convolutions, is_convolution);
    ops::TernaryTable codes(blocks_of({linear.begin(), linear.end()}));
    convolutions.erase(linear.begin(), linear.end());
    std::vector<ops::RowTable::Tensor> kernels;
    for (const Slot& slot : convolutions) {
      kernels.push_back({slot.offset, slot.rows(), slot.numel() / slot.rows(), chosen_of(slot)});
    }
    return {ops::RowTable(kernels), ranges_of(std::move(convolutions)), std::move(codes)};
  }

  // The number of values in the first all-reduce.
  std::int64_t agreed_of(const Layers& layers) const {
    return layers.kernels.rows() + 2 * layers.codes.blocks().tensors();
  }

  // Returns each linear layer's t: 0 if all elements are 0, NaN if one is not finite. Does not read
  // from the device.
  static at::Tensor threshold_of(const at::Tensor& sums) {
    const at::Tensor each = sums.view({-1, 2});
    const at::Tensor size = each.select(1, 1);
    return each.select(1, 0).mul(kShare).div_(size).masked_fill_(size.eq(0), 0.0);
  }

  static void clear(const Layers& layers, const at::Tensor& estimate) {
    for (const Range& run : layers.runs) {
      run.of(estimate).zero_();
    }
  }

  // Averages the chosen kernels, which are the same on all members.
  static Rounds send_kernels(Task task, Layers& layers, at::Tensor norms) {
    ops::RowTable& table = layers.kernels;
    const at::TensorOptions options = task.u.options();
    const at::Tensor chosen = at::empty({table.chosen()}, options.dtype(at::kInt));
    const at::Tensor wire = at::empty({table.values()}, options.dtype(at::kHalf));
    ops::choose_rows(norms, table, chosen);
    ops::send_rows(task.u, table, chosen, task.group->size(), wire);
    co_yield task.group->all_reduce(wire, comm::ReduceOp::Sum, task.purpose);
    clear(layers, task.estimate);
    ops::add_rows(wire, table, chosen, task.estimate);
  }

  const CodeTransport transport_;
  std::map<std::size_t, Layers> layers_;  // by bucket; addresses are stable
};

void check_transport(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out) {
  check_int8(options.transport.value_or(kAutoTransport), section, members, "a2a or gather", out);
}

}  // namespace

extern const Scheme kHylo = {
    .name = "hylo",
    .make = make<Hylo>,
    .check = check_transport,
    .min_numel = 16384,
    .max_members = ops::kMaxCodeWorkers,
};

}  // namespace abtrain::compress
