// Each layer has one owner; what the owners computed is sent to all workers.
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

// The indices of the layers that each worker owns.
using Owned = std::vector<std::vector<std::size_t>>;

// Every worker sends the tensors of its layers (`mine`) in one flat buffer.
// Calls `take` with each layer's index and its piece of the result. Layer i has
// sizes[i] elements.
void gather_layers(
    const Owned& owned,
    const Counts& sizes,
    const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options,
    comm::Communicator& world,
    const std::function<void(std::size_t, const at::Tensor&)>& take);

// Element count of a spectrum on the wire, whatever it holds: n values and, if
// it may be partial, three more: how many values are known, and the energy and
// the bound of the rest.
std::int64_t spectrum_numbers(linalg::SvdRoute route, std::int64_t n);
at::Tensor pack_spectrum(const linalg::Spectrum& spectrum, bool may_be_partial);
// Fills a spectrum whose name, m and n are set.
void unpack_spectrum(
    const at::Tensor& numbers,
    bool may_be_partial,
    linalg::Spectrum& spectrum);

}  // namespace abtrain::methods
