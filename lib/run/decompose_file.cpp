#include "run/decompose_file.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "linalg/svd.h"
#include "run/decompose_plan.h"
#include "run/safetensors_stream.h"

namespace abtrain::run {

namespace {

using linalg::Decomposition;
using linalg::RankChoice;
using linalg::Spectrum;

double norm_of(const Spectrum& spectrum) {
  double squares = 0;
  for (const double value : spectrum.singular_values) {
    squares += value * value;
  }
  return std::sqrt(squares);
}

// ||W - A B|| / ||W||, a few rows at a time, differences in float64.
double measured_error(
    const at::Tensor& w,
    const linalg::LowRankPair& factors,
    double norm) {
  constexpr std::int64_t kNumbers = 1 << 18;
  const std::int64_t rows = std::max<std::int64_t>(1, kNumbers / w.size(1));
  const at::Tensor b = factors.b.to(at::kFloat);
  double squares = 0;
  for (std::int64_t i = 0; i < w.size(0); i += rows) {
    const at::Tensor product =
        at::mm(factors.a.slice(0, i, i + rows).to(at::kFloat), b);
    const at::Tensor rest = w.slice(0, i, i + rows).to(at::kDouble) - product;
    const double length = at::linalg_vector_norm(rest).item<double>();
    squares += length * length;
  }
  return norm > 0 ? std::sqrt(squares) / norm : 0;
}

class FileDecomposer {
 public:
  FileDecomposer(const DecomposeOptions& options, Log& log)
      : options_(options), log_(log), plan_(options) {}

  DecomposeReport run() {
    const bool global = linalg::is_global(options_.rule.rule);
    if (!options_.output.empty()) {
      check_output(options_.output, plan_.input().paths());
      stream_.emplace(options_.output);
    }
    if (global) {
      choose_globally();
    }
    if (stream_ || !global) {
      work();
    }
    DecomposeReport& report = plan_.report;
    report.file_after = plan_.file_bytes();
    report.written = stream_.has_value();
    if (stream_) {
      log_.live("writing " + options_.output);
      report.file_after = stream_->finish(plan_.metadata());
    }
    log_.live("");
    return std::move(report);
  }

 private:
  using Job = DecomposePlan::Job;

  // m x n, of a tensor that is to be decomposed.
  static at::Tensor matrix_of(const WeightFiles::Item& item) {
    const at::Tensor w =
        item.file->load(*item.tensor).view({item.tensor->sizes[0], -1});
    return w.size(0) < w.size(1) ? w.t() : w;
  }

  template <class Body>
  void for_each_candidate(const char* what, const Body& body) {
    std::size_t done = 0;
    for (const Job& job : plan_.jobs()) {
      ++done;
      DecomposedTensor* row = plan_.row_of(job);
      if (row == nullptr || !row->reason.empty()) {
        continue;
      }
      log_.live(
          str(what,
              " ",
              done,
              " of ",
              plan_.jobs().size(),
              ": ",
              row->name,
              ", ",
              row->m,
              " x ",
              row->n));
      body(job, *row);
    }
  }

  // Exact, also where a partial one would do: spectra of trained weights are
  // flat, where a search for the largest values takes longer.
  static Decomposition decompose(const at::Tensor& matrix, const Job& job) {
    const std::string& name = job.item.tensor->name;
    try {
      return {matrix, name};
    } catch (const Error& error) {
      throw Error(
          error.kind(),
          str(job.item.file->path(),
              ": ",
              error.what(),
              "; --keep-dense '",
              name,
              "' copies them as they are"));
    }
  }

  void take(
      const RankChoice& choice,
      const Spectrum& spectrum,
      DecomposedTensor& row) const {
    row.norm = norm_of(spectrum);
    row.rank = choice.rank;
    if (choice.rank == 0) {
      row.reason = "factors of that rank save nothing";
      return;
    }
    row.energy = choice.energy;
    row.truncation_error = std::sqrt(std::max(0.0, 1 - choice.energy));
    if (!options_.dtype.empty()) {
      row.dtype = stored_dtype(options_.dtype);
    }
    row.bytes_after = static_cast<std::uint64_t>(row.rank * (row.m + row.n)) *
                      element_bytes(row.dtype);
  }

  // A rule that looks at all layers needs their spectra before any is cut.
  void choose_globally() {
    std::vector<Spectrum> spectra;
    std::vector<DecomposedTensor*> rows;
    std::int64_t other = plan_.report.other_numbers;
    for (const DecomposedTensor& row : plan_.report.tensors) {
      other += row.reason.empty() ? 0 : row.m * row.n;
    }
    for_each_candidate("spectrum", [&](const Job& job, DecomposedTensor& row) {
      spectra.push_back(decompose(matrix_of(job.item), job).spectrum(row.m));
      rows.push_back(&row);
    });
    double dense = static_cast<double>(other);
    double least = dense;  // rank 1 everywhere
    for (const Spectrum& s : spectra) {
      dense += static_cast<double>(s.m * s.n);
      least += static_cast<double>(s.m + s.n);
    }
    const auto take_all = [&](double ratio) {
      linalg::RankRule rule = options_.rule;
      rule.ratio = ratio;
      const auto choices = linalg::choose_ranks(rule, spectra, other);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i]->reason.clear();
        rows[i]->bytes_after = rows[i]->bytes_before;
        take(choices[i], spectra[i], *rows[i]);
      }
    };
    // A hair less, so that rounding does not ask for more than there is.
    const double most = std::max(1.0, dense / least * (1 - 1e-12));
    if (options_.budget_bytes == 0) {
      ABT_CHECK(
          options_.rule.ratio <= most,
          Usage,
          "--ratio: expected at most ",
          std::floor(most * 100 + 1e-6) / 100,
          ", which rank 1 in every matrix that may be cut reaches; got ",
          options_.rule.ratio);
      take_all(options_.rule.ratio);
      return;
    }
    // The file also holds headers and, with --dtype, numbers of several sizes:
    // the smallest ratio that makes it small enough is searched.
    const auto fits = [&](double ratio) {
      take_all(ratio);
      return plan_.file_bytes() <= options_.budget_bytes;
    };
    if (fits(1)) {
      return;
    }
    ABT_CHECK(
        fits(most),
        Usage,
        "--budget: expected at least ",
        plan_.file_bytes(),
        " bytes, which rank 1 in every matrix that may be cut takes; got ",
        options_.budget_bytes);
    double low = 1;
    double high = most;
    while (high > low * 1.0002) {
      const double middle = std::sqrt(low * high);
      (fits(middle) ? high : low) = middle;
    }
    take_all(high);
  }

  // Each matrix once by a local rule: decomposed, cut, written and forgotten.
  void work() {
    const bool global = linalg::is_global(options_.rule.rule);
    if (stream_) {
      for (const Job& job : plan_.jobs()) {
        const DecomposedTensor* row = plan_.row_of(job);
        if (row == nullptr || !row->reason.empty()) {
          copy(job);
        }
      }
    }
    for_each_candidate("matrix", [&](const Job& job, DecomposedTensor& row) {
      const at::Tensor w = matrix_of(job.item);
      const Decomposition svd = decompose(w, job);
      if (!global) {
        const Spectrum spectrum = svd.spectrum(row.m);
        take(linalg::choose_rank(options_.rule, spectrum), spectrum, row);
      }
      if (!stream_) {
        return;
      }
      if (row.rank == 0) {
        copy(job);
        return;
      }
      write_factors(w, svd, row);
    });
  }

  void copy(const Job& job) {
    stream_->add(*job.item.tensor, [&](const WritePiece& write) {
      job.item.file->copy(*job.item.tensor, write);
    });
  }

  void write_factors(
      const at::Tensor& w,
      const Decomposition& svd,
      DecomposedTensor& row) {
    const at::ScalarType type = float_type(row.dtype).value();
    linalg::LowRankPair pair = svd.factors(w, row.rank);
    pair.a = pair.a.to(type);
    pair.b = pair.b.to(type);
    row.error = measured_error(w, pair, row.norm);
    ABT_CHECK(
        std::isfinite(*row.error),
        Diverged,
        "tensor '",
        row.name,
        "': its factors are beyond what ",
        row.dtype,
        " can hold; --keep-dense or another --dtype");
    stream_->add(row.name + ".A", pair.a);
    stream_->add(row.name + ".B", pair.b);
  }

  const DecomposeOptions& options_;
  Log& log_;
  DecomposePlan plan_;
  std::optional<SafetensorsStream> stream_;
};

}  // namespace

DecomposeReport decompose_file(const DecomposeOptions& options, Log& log) {
  const at::NoGradGuard no_grad;
  return FileDecomposer(options, log).run();
}

}  // namespace abtrain::run
