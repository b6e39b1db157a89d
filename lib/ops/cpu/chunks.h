// The forms of chunks.h on the CPU; arguments are checked.
#pragma once

#include "ops/chunks.h"

namespace abtrain::ops {

void add_with_norms_cpu(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms);

void take_chunks_cpu(
    const at::Tensor& u,
    const at::Tensor& indices,
    std::int64_t chunk,
    int members,
    const at::Tensor& wire);

void put_chunks_cpu(
    const at::Tensor& wire,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& out,
    Put how);

}  // namespace abtrain::ops
