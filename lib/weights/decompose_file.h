// Decomposes the weights of any PyTorch model: cuts its matrices to low rank, one after the other.
//
// A tensor x of two or more dimensions is treated as a matrix W: its first dimension gives the
// rows, all others the columns (O x I*kh*kw). If the factors of W ~= A B have fewer numbers than W,
// x is written as x.A (m x r) and x.B (r x n), m >= n, or in a grid of blocks, in the format of
// weights/model_file.h. Everything else is copied unchanged. Only one matrix is in memory at a
// time.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "linalg/rank_rule.h"

namespace abtrain::weights {

struct DecomposeOptions {
  std::string input;   // a file, an index of shards or a folder
  std::string output;  // empty: only reports, writes nothing
  bool force = false;  // replaces any output file
  linalg::RankRule rule;
  std::uint64_t budget_bytes = 0;  // rule `budget`: largest size of the file; 0: use rule.ratio
  // Names or globs of tensors or of their layers (the tensor's name without its
  // last part). `only`: empty means all.
  std::vector<std::string> keep_dense;
  std::vector<std::string> only;
  std::int64_t blocks = 1;    // largest number of blocks per side (linalg::largest_grid)
  std::int64_t min_size = 0;  // tensors with fewer elements are not cut
  std::string dtype;          // of the factors: fp32 | fp16 | bf16; "": unchanged
};

// A tensor that can be treated as a matrix.
struct DecomposedTensor {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::string dtype;  // in the output, of its factors if it has any
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t grid = 1;  // blocks per side
  std::int64_t rank = 0;  // 0: stays dense
  std::string reason = {};  // why it stays dense
  double energy = 1;      // share of the sum of squared singular values kept
  // ||W - A B|| / ||W|| (Frobenius): `truncation_error` for the exact truncation, `error` as
  // measured on the factors that were written.
  double truncation_error = 0;
  std::optional<double> error = {};
  double norm = 0;  // ||W||; 0 if it was not decomposed
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
};

struct DecomposeReport {
  std::vector<DecomposedTensor> tensors;
  // Tensors that are not matrices: biases, norms, counters.
  std::int64_t other_tensors = 0;
  std::int64_t other_numbers = 0;
  std::uint64_t other_bytes = 0;
  std::uint64_t file_before = 0;  // bytes, headers included
  std::uint64_t file_after = 0;
  bool written = false;
};

// Throws MissingInput; DamagedData and Diverged (a number is not finite), which name the tensor;
// Usage if a pattern matches nothing, the budget is below the size at rank 1 or check_output()
// (weights/weight_files.h) refuses the output; Io.
DecomposeReport decompose_file(const DecomposeOptions& options, Log& log);

// The report as a table with totals, as CSV with one line per matrix, and as JSON.
std::string decompose_table(const DecomposeReport& report);
std::string decompose_csv(const DecomposeReport& report);
nlohmann::ordered_json decompose_json(const DecomposeReport& report);

}  // namespace abtrain::weights
