// A user's own arrays as a data set: FOLDER/train.safetensors with the tensors x and y, or
// FOLDER/train_x.npy and train_y.npy. The test set is in files with `test` in place of `train`.
// Without these files, it is data.test_share of the training examples, the last ones of a
// permutation that is the same in every run.
//
// x holds N examples. uint8 (divided by 255) and floating-point numbers are values: each example is
// C x H x W, H x W (one channel), or of another shape, which is read as one row of numbers. Other
// integers are tokens, N x T. In y, integers are class labels, N or, with tokens, also N x T;
// floating-point numbers are targets of a regression, N or N x K.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/batch.h"
#include "data/dataset.h"

namespace abtrain::data {

// Opens the arrays in `folder`. The caller applies data.subset and data.pool, and sets mean and
// std. Throws Error: MissingInput; DamagedData, which names the file; Config for options that do
// not fit the arrays. `reads_values`: also checks that every floating-point value of x is finite.
Dataset open_arrays(const DataOptions& options, const std::string& folder, bool reads_values);

// Returns the examples in `x`, converted as load_dataset() converted those of `set`. The label of
// each is its index in `x`. Throws DamagedData, which names `path`, if the type or shape of `x`
// does not fit `set`.
Examples further_examples(
    const at::Tensor& x, const std::string& path, const Dataset& set, const DataOptions& options);

// Returns all rows of M x T tokens. `answers`: as in TokenRows.
TokenRows token_rows(const at::Tensor& tokens, const at::Tensor& answers);
// Returns B x T tokens and their labels or targets.
Batch token_batch(const TokenRows& rows, std::span<const std::int64_t> indices);

}  // namespace abtrain::data
