// A text as a data set: each example is a window of data.context tokens, and the label of each
// token is the token that follows it. The windows lie one after another, so that an epoch reads
// each token once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/batch.h"
#include "data/dataset.h"

namespace abtrain::data {

// Opens the file or folder `path`. The test windows come from data.test, else from the files that
// parts_of() takes for the test, else from the text's tail, data.test_share of its tokens. Throws
// Error: Config if a part has no whole window; otherwise as text_files() and Tokens do.
Dataset open_text(const DataOptions& options, const std::string& path, Log* log);

// The windows of the tokens begin .. end-1.
TextWindows windows_of(
    std::shared_ptr<const Tokens> text, std::int64_t begin, std::int64_t end, std::int64_t context);

// B x context tokens and as many labels, both int64.
Batch text_batch(
    const TextWindows& windows, std::span<const std::int64_t> indices, std::int64_t context);

}  // namespace abtrain::data
