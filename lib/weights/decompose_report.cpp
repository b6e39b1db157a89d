// The report on a decomposed file: table, CSV and JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/machine_text.h"
#include "base/rows.h"
#include "base/scalars.h"
#include "state/safetensors_header.h"
#include "weights/decompose_file.h"

namespace abtrain::weights {

namespace {

using nlohmann::ordered_json;

struct Totals {
  std::int64_t factored = 0;
  std::int64_t numbers_before = 0;
  std::int64_t numbers_after = 0;
  double error = 0;  // relative Frobenius error of all decomposed matrices together
  double ratio() const {
    return numbers_after > 0
               ? static_cast<double>(numbers_before) / static_cast<double>(numbers_after)
               : 1;
  }
};

double error_of(const DecomposedTensor& row) {
  return row.error.value_or(row.truncation_error);
}

Totals totals_of(const DecomposeReport& report) {
  Totals totals;
  totals.numbers_before = totals.numbers_after = report.other_numbers;
  double largest = 0;  // norms may be too large to be squared
  for (const DecomposedTensor& row : report.tensors) {
    largest = std::max(largest, row.norm);
  }
  double lost = 0;
  double all = 0;
  for (const DecomposedTensor& row : report.tensors) {
    totals.factored += row.rank > 0;
    totals.numbers_before += row.m * row.n;
    totals.numbers_after += row.rank > 0 ? row.rank * (row.m + row.n) : row.m * row.n;
    const double norm = largest > 0 ? row.norm / largest : 0;
    lost += std::pow(error_of(row) * norm, 2);
    all += std::pow(norm, 2);
  }
  totals.error = all > 0 ? std::sqrt(lost / all) : 0;
  return totals;
}

// Four significant digits, however small the value.
std::string short_number(double value) {
  return formatted("{:.4g}", value);
}

}  // namespace

std::string decompose_table(const DecomposeReport& report) {
  std::size_t width = 7;
  for (const DecomposedTensor& row : report.tensors) {
    width = std::max(width, printable(row.name).size() + 1);
  }
  const bool written = report.written;
  std::string out = formatted(
      "{}{:>14}{:>8}{:>10}{:>11}{:>11}{:>11}\n", pad("matrix", width), "m x n", "rank", "energy",
      "error", "before", "after");
  for (const DecomposedTensor& row : report.tensors) {
    const bool cut = row.rank > 0;
    out += formatted(
        "{}{:>14}{:>8}{:>10}{:>11}{:>11}{:>11}{}\n", pad(printable(row.name), width),
        formatted("{} x {}", row.m, row.n), cut ? linalg::rank_text(row.rank, row.grid) : "dense",
        cut ? formatted("{:.2f} %", 100 * row.energy) : "", cut ? short_number(error_of(row)) : "",
        human_bytes(static_cast<double>(row.bytes_before)),
        human_bytes(static_cast<double>(row.bytes_after)), cut ? "" : "  " + printable(row.reason));
  }
  const Totals totals = totals_of(report);
  const auto bytes = [](std::uint64_t count) { return human_bytes(static_cast<double>(count)); };
  out += formatted(
      "\n{} of {} matrices cut, relative error of all that were decomposed "
      "{}{}",
      totals.factored, report.tensors.size(), short_number(totals.error),
      written ? " as written\n" : " before rounding (nothing written)\n");
  if (report.other_tensors > 0) {
    out += formatted(
        "{} other tensors ({}; fewer than two dimensions, not floats, or "
        "empty) copied unchanged\n",
        report.other_tensors, bytes(report.other_bytes));
  }
  out += formatted(
      "{} -> {} numbers, {:.2f}:1; file {} -> {}\n", with_commas(totals.numbers_before),
      with_commas(totals.numbers_after), totals.ratio(), bytes(report.file_before),
      bytes(report.file_after));
  return out;
}

std::string decompose_csv(const DecomposeReport& report) {
  std::string out =
      "name,shape,m,n,rank,dtype,energy,truncation_error,error,bytes_before,"
      "bytes_after,reason,blocks\n";
  for (const DecomposedTensor& row : report.tensors) {
    std::string shape = state::shape_text(row.sizes);
    std::ranges::replace(shape, ',', 'x');
    out += csv_line(
               {row.name, shape, std::to_string(row.m), std::to_string(row.n),
                std::to_string(row.rank), row.dtype, print_number(row.energy),
                print_number(row.truncation_error), row.error ? print_number(*row.error) : "",
                std::to_string(row.bytes_before), std::to_string(row.bytes_after), row.reason,
                std::to_string(row.grid)}) +
           "\n";
  }
  return out;
}

ordered_json decompose_json(const DecomposeReport& report) {
  ordered_json tensors = ordered_json::array();
  for (const DecomposedTensor& row : report.tensors) {
    tensors.push_back(
        {{"name", row.name},
         {"shape", row.sizes},
         {"m", row.m},
         {"n", row.n},
         {"rank", row.rank},
         {"blocks", row.grid},
         {"dtype", row.dtype},
         {"energy", row.energy},
         {"truncation_error", row.truncation_error},
         {"error", row.error ? ordered_json(*row.error) : ordered_json()},
         {"bytes_before", row.bytes_before},
         {"bytes_after", row.bytes_after},
         {"reason", row.reason}});
  }
  const Totals totals = totals_of(report);
  return {
      {"tensors", tensors},
      {"others",
       {{"tensors", report.other_tensors},
        {"numbers", report.other_numbers},
        {"bytes", report.other_bytes}}},
      {"totals",
       {{"matrices", report.tensors.size()},
        {"factored", totals.factored},
        {"error", totals.error},
        {"numbers_before", totals.numbers_before},
        {"numbers_after", totals.numbers_after},
        {"compression_ratio", totals.ratio()},
        {"file_before", report.file_before},
        {"file_after", report.file_after}}},
      {"written", report.written}};
}

}  // namespace abtrain::weights
