// The two forms of each op of chunks.h behind their dispatch; arguments are
// checked.
#pragma once

#include "ops/chunks.h"

namespace abtrain::ops {

void add_with_norms_cpu(
    const at::Tensor& u,
    const at::Tensor& g,
    bool add,
    std::int64_t chunk,
    const at::Tensor& norms);
void add_with_norms_cuda(
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
void take_chunks_cuda(
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
void put_chunks_cuda(
    const at::Tensor& wire,
    const at::Tensor& indices,
    std::int64_t chunk,
    const at::Tensor& out,
    Put how);

}  // namespace abtrain::ops
