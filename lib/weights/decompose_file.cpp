#include "weights/decompose_file.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "weights/decompose_matrix.h"
#include "weights/decompose_plan.h"
#include "weights/safetensors_stream.h"

namespace abtrain::weights {

namespace {

using linalg::RankChoice;
using linalg::Spectrum;

class FileDecomposer {
 public:
  FileDecomposer(const DecomposeOptions& options, Log& log)
      : options_(options), log_(log), plan_(options) {}

  DecomposeReport run() {
    const bool global = linalg::is_global(options_.rule);
    if (!options_.output.empty()) {
      check_output(options_.output, plan_.input().paths(), options_.force);
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
    if (global) {
      warn_of_rank_one(report);
    }
    return std::move(report);
  }

 private:
  using Job = DecomposePlan::Job;

  // A rule that looks at all matrices may spend nearly nothing on some of them.
  void warn_of_rank_one(const DecomposeReport& report) const {
    std::vector<std::string> names;
    for (const DecomposedTensor& row : report.tensors) {
      if (row.rank == 1 && row.n > 1) {
        names.push_back(row.name);
      }
    }
    if (names.empty()) {
      return;
    }
    constexpr std::size_t kMax = 3;
    const std::size_t count = names.size();
    names.resize(std::min(count, kMax));
    log_.warning(
        "{} of {} matrices are cut to rank 1 ({}{}), so the model may be "
        "useless without further training; --floor and --keep-dense keep more "
        "of them",
        count, report.tensors.size(), join(names, ", "), count > kMax ? ", ..." : "");
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
      log_.live(formatted(
          "{} {} of {}: {}, {} x {}", what, done, plan_.jobs().size(), row->name, row->m, row->n));
      body(job, *row);
    }
  }

  // Sets everything that depends on the choice; a rule that looks at all layers
  // tries several choices for each.
  void take(
      const RankChoice& choice, const Spectrum& spectrum, const Job& job,
      DecomposedTensor& row) const {
    row.rank = choice.rank;
    row.dtype = job.item.tensor->dtype;
    row.bytes_after = row.bytes_before;
    if (choice.rank == 0) {
      row.reason = linalg::is_global(options_.rule) ? "it fits the budget as it is"
                                                    : "factors of that rank save nothing";
      row.energy = 1;
      row.truncation_error = 0;
      return;
    }
    row.reason.clear();
    row.energy = choice.energy;
    row.truncation_error = truncation_error(spectrum, choice.rank);
    if (!options_.dtype.empty()) {
      row.dtype = state::stored_dtype(options_.dtype);
    }
    row.bytes_after =
        static_cast<std::uint64_t>(row.rank * (row.m + row.n)) * state::element_bytes(row.dtype);
  }

  // A rule that looks at all layers needs their spectra before any is cut.
  void choose_globally() {
    std::vector<Spectrum> spectra;
    std::vector<std::pair<const Job*, DecomposedTensor*>> rows;
    std::int64_t other = plan_.report.other_numbers;
    for (const DecomposedTensor& row : plan_.report.tensors) {
      other += row.reason.empty() ? 0 : row.m * row.n;
    }
    for_each_candidate("spectrum", [&](const Job& job, DecomposedTensor& row) {
      const DecomposedMatrix matrix(job.item);
      row.norm = matrix.norm();
      spectra.push_back(matrix.spectrum());
      rows.emplace_back(&job, &row);
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
        take(choices[i], spectra[i], *rows[i].first, *rows[i].second);
      }
    };
    // Slightly less, so that rounding does not ask for more than there is.
    const double most = std::max(1.0, dense / least * (1 - 1e-12));
    if (options_.budget_bytes == 0) {
      ABT_CHECK(
          options_.rule.ratio <= most, Usage,
          "--ratio: expected at most {}, which rank 1 in every matrix that may "
          "be cut reaches; got {}",
          std::floor(most * 100 + 1e-6) / 100, options_.rule.ratio);
      take_all(options_.rule.ratio);
      return;
    }
    // The file also holds headers and, with --dtype, numbers of several widths:
    // search for the smallest ratio that makes it small enough.
    const auto fits = [&](double ratio) {
      take_all(ratio);
      return plan_.file_bytes() <= options_.budget_bytes;
    };
    if (fits(1)) {
      return;
    }
    ABT_CHECK(
        fits(most), Usage,
        "--budget: expected at least {} bytes, which rank 1 in every matrix "
        "that may be cut takes; got {}",
        plan_.file_bytes(), options_.budget_bytes);
    double low = 1;
    double high = most;
    while (high > low * 1.0002) {
      const double middle = std::sqrt(low * high);
      (fits(middle) ? high : low) = middle;
    }
    take_all(high);
  }

  // By a local rule each matrix is handled once: decomposed, cut, written and
  // forgotten.
  void work() {
    const bool global = linalg::is_global(options_.rule);
    if (stream_) {
      for (const Job& job : plan_.jobs()) {
        const DecomposedTensor* row = plan_.row_of(job);
        if (row == nullptr || !row->reason.empty()) {
          copy(job);
        }
      }
    }
    for_each_candidate("matrix", [&](const Job& job, DecomposedTensor& row) {
      const DecomposedMatrix matrix(job.item);
      if (!global) {
        const Spectrum& spectrum = matrix.spectrum();
        row.norm = matrix.norm();
        take(linalg::choose_rank(options_.rule, spectrum), spectrum, job, row);
      }
      if (!stream_) {
        return;
      }
      if (row.rank == 0) {
        copy(job);
        return;
      }
      const auto factors = matrix.factors(row.rank, row.dtype);
      row.error = factors.error;
      stream_->add(row.name + ".A", factors.a);
      stream_->add(row.name + ".B", factors.b);
    });
  }

  void copy(const Job& job) {
    stream_->add(*job.item.tensor, [&](const WritePiece& write) {
      job.item.file->copy(*job.item.tensor, write);
    });
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

}  // namespace abtrain::weights
