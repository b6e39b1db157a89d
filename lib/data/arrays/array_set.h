// A user's own arrays as a data set: FOLDER/train.safetensors with the tensors x and y, or
// FOLDER/train_x.npy and train_y.npy. The test set is in files with `test` in place of `train`.
// Without them, it is data.test_share of the training examples, the last ones of a permutation that
// is the same in every run.
//
// x, N x ...: uint8 (divided by 255) or floating-point values, of the form C x H x W, H x W (one
// channel), or any other, which is read as one row of numbers; or other integers, N x T, which are
// tokens. y: integers, N classes or, with tokens, also N x T; or floating-point numbers, N or N x
// K, for a regression.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/batch.h"
#include "data/dataset.h"

namespace abtrain::data {

// Opens the arrays in `folder`. The caller cuts them to data.subset and data.pool and sets mean and
// std. Throws Error: MissingInput; DamagedData, which names the file; Config for options that do
// not fit the arrays. `reads_values`: also reads every value of x, which must be finite.
Dataset open_arrays(const DataOptions& options, const std::string& folder, bool reads_values);

// More examples x for a data set of arrays, in the form of the set's own examples after
// load_dataset(). Their labels are their indices in x. Throws DamagedData, which names `path`, if x
// is not like the data set's.
Examples further_examples(
    const at::Tensor& x, const std::string& path, const Dataset& set, const DataOptions& options);

// All rows of M x T tokens. `answers` may have any form allowed in TokenRows.
TokenRows token_rows(const at::Tensor& tokens, const at::Tensor& answers);
// B x T tokens and their labels.
Batch token_batch(const TokenRows& rows, std::span<const std::int64_t> indices);

}  // namespace abtrain::data
