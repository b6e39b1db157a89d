#include "weights/decompose_plan.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "nn/model.h"
#include "weights/safetensors_stream.h"

namespace abtrain::weights {

namespace {

bool any_matches(const std::vector<std::string>& patterns, const std::string& tensor) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return nn::matches_tensor(pattern, tensor); });
}

}  // namespace

DecomposePlan::DecomposePlan(const DecomposeOptions& options)
    : options_(options), input_(options.input) {
  check_patterns();
  for (const WeightFiles::Item& item : input_.tensors()) {
    add(item);
  }
  for (const std::string& path : input_.paths()) {
    report.file_before += std::filesystem::file_size(path);
  }
}

void DecomposePlan::check_patterns() const {
  const auto check = [&](const char* option, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      ABT_CHECK(
          std::ranges::any_of(
              input_.tensors(),
              [&](const WeightFiles::Item& item) {
                return nn::matches_tensor(pattern, item.tensor->name);
              }),
          Usage, "{}: '{}' matches no tensor of {}", option, pattern, options_.input);
    }
  };
  check("--keep-dense", options_.keep_dense);
  check("--only", options_.only);
}

// Why a matrix stays as it is, whatever its numbers are; "" if it need not.
std::string DecomposePlan::reason_of(
    const state::StoredTensor& tensor, const DecomposedTensor& row) const {
  const std::string& name = tensor.name;
  const auto is_factor = [&](const char* ending) {
    return name.ends_with(ending) &&
           input_.metadata().contains("shape:" + name.substr(0, name.size() - 2));
  };
  if (is_factor(".A") || is_factor(".B")) {
    return "already a factor";
  }
  if (any_matches(options_.keep_dense, name)) {
    return "--keep-dense";
  }
  if (!options_.only.empty() && !any_matches(options_.only, name)) {
    return "not in --only";
  }
  if (tensor.numel() < options_.min_size) {
    return "below --min-size";
  }
  if (row.m + row.n >= row.m * row.n) {
    return "rank 1 saves nothing";
  }
  for (const char* ending : {".A", ".B"}) {
    if (input_.has(name + ending)) {
      return formatted("'{}{}' is another tensor", name, ending);
    }
  }
  return "";
}

void DecomposePlan::add(const WeightFiles::Item& item) {
  const state::StoredTensor& tensor = *item.tensor;
  jobs_.push_back({item});
  if (!state::float_type(tensor.dtype) || tensor.sizes.size() < 2 || tensor.numel() == 0) {
    ++report.other_tensors;
    report.other_numbers += tensor.numel();
    report.other_bytes += tensor.bytes();
    return;
  }
  DecomposedTensor row;
  row.name = tensor.name;
  row.sizes = tensor.sizes;
  row.dtype = tensor.dtype;
  const std::int64_t out = tensor.sizes[0];
  const std::int64_t in = tensor.numel() / out;
  row.m = std::max(out, in);
  row.n = std::min(out, in);
  row.bytes_before = row.bytes_after = tensor.bytes();
  row.reason = reason_of(tensor, row);
  jobs_.back().row = std::ssize(report.tensors);
  report.tensors.push_back(std::move(row));
}

std::map<std::string, std::string> DecomposePlan::metadata() const {
  auto all = input_.metadata();
  all.emplace("format", "pt");
  for (const DecomposedTensor& row : report.tensors) {
    if (row.rank > 0) {
      all["shape:" + row.name] = state::shape_text(row.sizes);
    }
  }
  return all;
}

// The size of the file that the ranks make.
std::uint64_t DecomposePlan::file_bytes() const {
  state::SafetensorsHeader header{{}, metadata()};
  for (const Job& job : jobs_) {
    const auto* row = job.row < 0 ? nullptr : &report.tensors[static_cast<std::size_t>(job.row)];
    if (row == nullptr || row->rank == 0) {
      header.tensors.push_back(*job.item.tensor);
      continue;
    }
    const auto factor = [&](const char* ending, std::int64_t rows, std::int64_t columns) {
      header.tensors.push_back(
          {row->name + ending,
           row->dtype,
           {rows, columns},
           0,
           static_cast<std::uint64_t>(rows * columns) * state::element_bytes(row->dtype)});
    };
    factor(".A", row->m, row->rank);
    factor(".B", row->rank, row->n);
  }
  lay_out(header);
  return state::header_bytes(header).size() +
         (header.tensors.empty() ? 0 : header.tensors.back().end);
}

}  // namespace abtrain::weights
