// The report on a decomposed file: table, CSV and JSON.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/rows.h"
#include "base/scalars.h"
#include "weights/decompose_file.h"
#include "weights/safetensors_header.h"

namespace abtrain::weights {

namespace {

using nlohmann::ordered_json;

struct Totals {
  std::int64_t factored = 0;
  std::int64_t numbers_before = 0;
  std::int64_t numbers_after = 0;
  double error = 0;  // of all decomposed matrices, taken as one
  double ratio() const {
    return numbers_after > 0 ? static_cast<double>(numbers_before) /
                                   static_cast<double>(numbers_after)
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
    totals.numbers_after +=
        row.rank > 0 ? row.rank * (row.m + row.n) : row.m * row.n;
    const double norm = largest > 0 ? row.norm / largest : 0;
    lost += std::pow(error_of(row) * norm, 2);
    all += std::pow(norm, 2);
  }
  totals.error = all > 0 ? std::sqrt(lost / all) : 0;
  return totals;
}

// Keeps the significant digits of errors far below one.
std::string short_number(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter;
    quoted += letter == '"' ? "\"" : "";
  }
  return quoted + "\"";
}

}  // namespace

std::string decompose_table(const DecomposeReport& report) {
  std::size_t width = 6;
  for (const DecomposedTensor& row : report.tensors) {
    width = std::max(width, printable(row.name).size());
  }
  const bool written = report.written;
  std::string out = pad("matrix", width) + right("m x n", 14) +
                    right("rank", 8) + right("energy", 10) +
                    right("error", 11) + right("before", 11) +
                    right("after", 11) + "\n";
  for (const DecomposedTensor& row : report.tensors) {
    const bool cut = row.rank > 0;
    out += pad(printable(row.name), width) +
           right(str(row.m, " x ", row.n), 14) +
           right(cut ? std::to_string(row.rank) : "dense", 8) +
           right(cut ? fixed(100 * row.energy, 2) + " %" : "", 10) +
           right(cut ? short_number(error_of(row)) : "", 11) +
           right(human_bytes(static_cast<double>(row.bytes_before)), 11) +
           right(human_bytes(static_cast<double>(row.bytes_after)), 11) +
           (cut ? "" : "  " + printable(row.reason)) + "\n";
  }
  const Totals totals = totals_of(report);
  const auto bytes = [](std::uint64_t count) {
    return human_bytes(static_cast<double>(count));
  };
  out +=
      str("\n",
          totals.factored,
          " of ",
          report.tensors.size(),
          " matrices cut, relative error of all that were decomposed ",
          short_number(totals.error),
          written ? " as written\n" : " before rounding (nothing written)\n");
  if (report.other_tensors > 0) {
    out +=
        str(report.other_tensors,
            " other tensors (",
            bytes(report.other_bytes),
            "; fewer than two dimensions, not floats, or empty) copied "
            "unchanged\n");
  }
  out +=
      str(with_commas(totals.numbers_before),
          " -> ",
          with_commas(totals.numbers_after),
          " numbers, ",
          fixed(totals.ratio(), 2),
          ":1; file ",
          bytes(report.file_before),
          " -> ",
          bytes(report.file_after),
          "\n");
  return out;
}

std::string decompose_csv(const DecomposeReport& report) {
  std::string out =
      "name,shape,m,n,rank,dtype,energy,truncation_error,error,bytes_before,"
      "bytes_after,reason\n";
  for (const DecomposedTensor& row : report.tensors) {
    std::string shape = shape_text(row.sizes);
    std::ranges::replace(shape, ',', 'x');
    out += join(
               {csv_field(row.name),
                shape,
                std::to_string(row.m),
                std::to_string(row.n),
                std::to_string(row.rank),
                row.dtype,
                print_number(row.energy),
                print_number(row.truncation_error),
                row.error ? print_number(*row.error) : "",
                std::to_string(row.bytes_before),
                std::to_string(row.bytes_after),
                csv_field(row.reason)},
               ",") +
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
