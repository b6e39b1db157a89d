// How a decomposition changes the basis of a layer's factors, and how quantities that belong to a
// factor follow.
//
// With factors A, B before a decomposition and A', B' after it, M = B B'^+ and C
// = A'^+ A:
//   a change of a factor alters the weight as before: dA -> dA M, dB -> C dB,
//     because dA B ~ (dA M) B' and A dB ~ A' (C dB);
//   a gradient is that of the new factor: gA -> gA C^T, gB -> M^T gB, because
//     gA = G B^T, gB = A^T G for the gradient G of the weight, A ~ A' C and
//     B ~ M B';
//   a dense weight's gradient G becomes gA' = G B'^T, gB' = A'^T G.
// For A' = U sqrt(S), B' = sqrt(S) V^T the pseudoinverses are transposes divided by S. A cut
// removes from these quantities what it removes from the weight. A squared gradient takes the
// squares of the same coefficients: its components are treated as independent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "methods/ab/layer.h"
#include "nn/weight.h"

namespace abtrain::methods {

// Changes of one factor of all layers, flat, in the new basis; zero where a
// layer was dense.
at::Tensor carry_changes(
    const at::Tensor& flat, nn::Factor which, const std::vector<AbLayer>& layers);

// A gradient of one factor of a layer, or of its dense weight (old rank 0), as a
// matrix, in the new basis: m x new_rank or new_rank x n. `squared`: the matrix
// holds squared gradients.
at::Tensor carry_gradient(
    const at::Tensor& matrix, nn::Factor which, const AbLayer& layer, bool squared);

}  // namespace abtrain::methods
