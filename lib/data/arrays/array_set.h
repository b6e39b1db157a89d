// A user's own arrays as a data set: FOLDER/train.safetensors with the tensors
// x and y, or FOLDER/train_x.npy and train_y.npy; for the test set, the same
// with `test`, or else data.test_share of the training examples, the last ones
// of a permutation that is the same in every run.
//
// x, N x ...: uint8 (divided by 255) or floating-point values, in the form C x
// H x W, or H x W of one channel, or anything else as one row of numbers; or
// other integers, N x T: tokens. y: integers, N classes or, with tokens, N x T;
// or floating-point numbers, N or N x K: a regression.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/batch.h"
#include "data/dataset.h"

namespace abtrain::data {

// Opens the arrays in `folder`. The caller cuts them to data.subset and
// data.pool and sets mean and std. Throws Error: MissingInput, DamagedData
// naming the file, or Config for options that do not go with what the arrays are.
// `reads_values`: looks at each value of x, too, which must be finite.
Dataset open_arrays(const DataOptions& options, const std::string& folder, bool reads_values);

// Further examples x of a data set of arrays, in the form that its own have after load_dataset();
// their labels are their places in x. Throws DamagedData, naming `path`, if x is not like the data
// set's.
Examples further_examples(
    const at::Tensor& x, const std::string& path, const Dataset& set, const DataOptions& options);

// B x T tokens and their labels.
Batch token_batch(const TokenRows& rows, std::span<const std::int64_t> indices);

}  // namespace abtrain::data
