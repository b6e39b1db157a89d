// Layers have one owner each; what owners computed goes to all workers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "linalg/batch.h"
#include "linalg/rank_rule.h"
#include "nn/model.h"

namespace abtrain::methods {

using Counts = std::vector<std::int64_t>;

// The layers of each worker.
using Owned = std::vector<std::vector<std::size_t>>;

// Every worker sends its layers' tensors in one flat buffer; hands `take` each
// layer's piece. sizes[i] numbers belong to layer i.
void gather_layers(
    const Owned& owned,
    const Counts& sizes,
    const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options,
    comm::Communicator& world,
    const std::function<void(std::size_t, const at::Tensor&)>& take);

// What a spectrum takes on the wire, the same whatever it holds: n values, and
// three more where it may be partial: how many are known, and of the rest the
// energy and the bound.
std::int64_t spectrum_numbers(linalg::SvdRoute route, std::int64_t n);
at::Tensor pack_spectrum(const linalg::Spectrum& spectrum, bool may_be_partial);
// Into a spectrum whose name, m and n are set.
void unpack_spectrum(
    const at::Tensor& numbers,
    bool may_be_partial,
    linalg::Spectrum& spectrum);

}  // namespace abtrain::methods
