// Which tensors of a file are matrices, which of those stay dense and why, and
// how large a file the given ranks make.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weights/decompose_file.h"
#include "weights/weight_files.h"

namespace abtrain::weights {

class DecomposePlan {
 public:
  // Reads only headers. Throws what decompose_file() throws.
  explicit DecomposePlan(const DecomposeOptions& options);

  struct Job {
    WeightFiles::Item item;
    std::ptrdiff_t row = -1;  // in report.tensors; -1: not a matrix
  };
  const std::vector<Job>& jobs() const {
    return jobs_;
  }
  // Null if the tensor is not a matrix.
  DecomposedTensor* row_of(const Job& job) {
    return job.row < 0 ? nullptr : &report.tensors[job.row];
  }
  const WeightFiles& input() const {
    return input_;
  }
  // Of the file that the ranks in the report make.
  std::map<std::string, std::string> metadata() const;
  std::uint64_t file_bytes() const;

  DecomposeReport report;

 private:
  void check_patterns() const;
  void add(const WeightFiles::Item& item);
  std::string reason_of(const state::StoredTensor& tensor, const DecomposedTensor& row) const;

  const DecomposeOptions& options_;
  WeightFiles input_;
  std::vector<Job> jobs_;
};

}  // namespace abtrain::weights
