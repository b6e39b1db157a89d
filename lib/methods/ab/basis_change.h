// A decomposition changes the basis of a layer's factors. These functions convert changes and
// gradients (and so moments) of a factor to the new basis.
//
// With factors A, B before a decomposition and A', B' after it, M = B B'^+ and C
// = A'^+ A:
//   a change of a factor keeps its effect on the weight: dA -> dA M, dB -> C dB,
//     because dA B ~ (dA M) B' and A dB ~ A' (C dB);
//   a gradient becomes that of the new factor: gA -> gA C^T, gB -> M^T gB, because
//     gA = G B^T, gB = A^T G for the gradient G of the weight, A ~ A' C and
//     B ~ M B';
//   a dense weight's gradient G becomes gA' = G B'^T, gB' = A'^T G.
// For A' = U sqrt(S), B' = sqrt(S) V^T the pseudoinverses are transposes divided by S. A cut
// removes the same directions from these quantities as from the weight. Squared gradients are
// converted with the squares of the same coefficients, as if their components were independent.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "methods/ab/layer.h"
#include "nn/weight.h"

namespace abtrain::methods {

// Converts the flat changes of one factor of all layers to the new basis; zero for a layer that was
// dense.
at::Tensor carry_changes(
    const at::Tensor& flat, nn::Factor which, const std::vector<AbLayer>& layers);

// Converts a gradient of one factor of a layer, or of its dense weight (old rank 0), to the new
// basis, as a matrix: m x new_rank or new_rank x n. `squared`: the matrix holds squared gradients.
at::Tensor carry_gradient(
    const at::Tensor& matrix, nn::Factor which, const AbLayer& layer, bool squared);

}  // namespace abtrain::methods
