#include "weights/decompose_file.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "nn/model.h"
#include "weights/decompose_matrix.h"
#include "weights/safetensors_stream.h"
#include "weights/stored_weight.h"

namespace abtrain::weights {

namespace {

using linalg::RankChoice;
using linalg::Spectrum;

// A tensor of the input.
struct Job {
  WeightFiles::Item item;
  DecomposedTensor* row = nullptr;  // in the report; null: not a matrix

  bool may_be_cut() const {
    return row != nullptr && row->reason.empty();
  }
};

bool any_matches(const std::vector<std::string>& patterns, const std::string& tensor) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return nn::matches_tensor(pattern, tensor); });
}

class FileDecomposer {
 public:
  // Reads only headers.
  FileDecomposer(const DecomposeOptions& options, Log& log)
      : options_(options),
        log_(log),
        is_global_(linalg::is_global(options.rule)),
        input_(options.input),
        even_(is_global_ ? linalg::even_rule(options.rule, 1, 0) : options.rule) {
    check_patterns("--keep-dense", options.keep_dense);
    check_patterns("--only", options.only);
    report_.tensors.reserve(input_.tensors().size());  // jobs point at the rows, so none may move
    for (const std::string& path : input_.paths()) {
      report_.file_before += std::filesystem::file_size(path);
    }
    if (options.budget_bytes > 0) {
      even_.ratio = std::max(
          1.0,
          static_cast<double>(report_.file_before) / static_cast<double>(options.budget_bytes));
    }
    for (const WeightFiles::Item& item : input_.tensors()) {
      add(item);
    }
  }

  DecomposeReport run() {
    if (!options_.output.empty()) {
      check_output(options_.output, input_.paths(), options_.force);
      stream_.emplace(options_.output);
    }
    if (is_global_) {
      choose_globally();
    }
    if (stream_ || !is_global_) {
      work();
    }
    report_.written = stream_.has_value();
    if (stream_) {
      log_.live("writing " + options_.output);
      report_.file_after = stream_->finish(metadata());
    } else {
      report_.file_after = file_bytes();
    }
    log_.live("");
    if (is_global_) {
      warn_of_rank_one();
    }
    return std::move(report_);
  }

 private:
  void check_patterns(const char* option, const std::vector<std::string>& patterns) const {
    for (const std::string& pattern : patterns) {
      ABT_CHECK(
          std::ranges::any_of(
              input_.tensors(),
              [&](const WeightFiles::Item& item) {
                return nn::matches_tensor(pattern, item.tensor->name);
              }),
          Usage, "{}: '{}' matches no tensor of {}", option, pattern, options_.input);
    }
  }

  // Why a matrix stays dense, whatever its values are; "" if it may be cut.
  std::string reason_of(const state::StoredTensor& tensor, const DecomposedTensor& row) const {
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

  void add(const WeightFiles::Item& item) {
    const state::StoredTensor& tensor = *item.tensor;
    Job& job = jobs_.emplace_back(Job{item});
    if (!state::float_type(tensor.dtype) || tensor.sizes.size() < 2 || tensor.numel() == 0) {
      ++report_.other_tensors;
      report_.other_numbers += tensor.numel();
      report_.other_bytes += tensor.bytes();
      return;
    }
    const std::int64_t out = tensor.sizes[0];
    const std::int64_t in = tensor.numel() / out;
    job.row = &report_.tensors.emplace_back(DecomposedTensor{
        .name = tensor.name,
        .sizes = tensor.sizes,
        .dtype = tensor.dtype,
        .m = std::max(out, in),
        .n = std::min(out, in),
        .bytes_before = tensor.bytes(),
        .bytes_after = tensor.bytes()});
    job.row->reason = reason_of(tensor, *job.row);
    job.row->grid = linalg::largest_grid(
        options_.blocks, out, tensor.sizes[1],
        linalg::expected_rank(even_, job.row->m, job.row->n));
  }

  // Metadata of the output file.
  std::map<std::string, std::string> metadata() const {
    auto all = input_.metadata();
    all.emplace("format", "pt");
    for (const DecomposedTensor& row : report_.tensors) {
      if (row.rank > 0) {
        all["shape:" + row.name] = state::shape_text(row.sizes);
      }
    }
    return all;
  }

  // The size of the output file with the current ranks.
  std::uint64_t file_bytes() const {
    state::SafetensorsHeader header{{}, metadata()};
    for (const Job& job : jobs_) {
      const DecomposedTensor* const row = job.row;
      if (row == nullptr || row->rank == 0) {
        header.tensors.push_back(*job.item.tensor);
        continue;
      }
      const std::int64_t k = row->grid;
      const auto factor = [&](const char* ending, std::int64_t rows, std::int64_t columns) {
        header.tensors.push_back(
            {row->name + ending, row->dtype,
             k == 1 ? std::vector{rows, columns} : std::vector{k, rows, columns}, 0,
             static_cast<std::uint64_t>(k * rows * columns) * state::element_bytes(row->dtype)});
      };
      factor(".A", row->m / k, row->rank);
      factor(".B", row->rank, row->n / k);
    }
    lay_out(header);
    return state::header_bytes(header).size() +
           (header.tensors.empty() ? 0 : header.tensors.back().end);
  }

  // Warns of matrices that are cut to rank 1: a global rule, which chooses the ranks of all
  // matrices together, may spend nearly nothing on some of them.
  void warn_of_rank_one() const {
    std::vector<std::string> names;
    for (const DecomposedTensor& row : report_.tensors) {
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
        count, report_.tensors.size(), join(names, ", "), count > kMax ? ", ..." : "");
  }

  template <class Body>
  void for_each_candidate(const char* what, const Body& body) {
    std::size_t done = 0;
    for (const Job& job : jobs_) {
      ++done;
      if (job.may_be_cut()) {
        log_.live(formatted(
            "{} {} of {}: {}, {} x {}", what, done, jobs_.size(), job.row->name, job.row->m,
            job.row->n));
        body(job);
      }
    }
  }

  // Sets all fields that depend on the choice: with a budget in bytes, several choices are tried.
  void take(const RankChoice& choice, const Spectrum& spectrum, const Job& job) const {
    DecomposedTensor& row = *job.row;
    row.rank = choice.rank;
    row.dtype = job.item.tensor->dtype;
    row.bytes_after = row.bytes_before;
    if (choice.rank == 0) {
      row.reason = is_global_ ? "it fits the budget as it is" : "factors of that rank save nothing";
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

  // Chooses the ranks by a global rule, which needs the spectra of all matrices before any is cut.
  void choose_globally() {
    std::vector<Spectrum> spectra;
    std::vector<const Job*> jobs;  // one per spectrum
    std::int64_t other = report_.other_numbers;
    for (const DecomposedTensor& row : report_.tensors) {
      other += row.reason.empty() ? 0 : row.m * row.n;
    }
    for_each_candidate("spectrum", [&](const Job& job) {
      const DecomposedMatrix matrix(job.item, job.row->grid);
      job.row->norm = matrix.norm();
      spectra.push_back(matrix.spectrum());
      jobs.push_back(&job);
    });
    double dense = static_cast<double>(other);
    double least = dense;  // numbers stored at the least rank everywhere
    for (const Spectrum& s : spectra) {
      dense += static_cast<double>(s.m * s.n);
      least += static_cast<double>(s.grid * (s.m + s.n));
    }
    const auto take_all = [&](double ratio) {
      linalg::RankRule rule = options_.rule;
      rule.ratio = ratio;
      const auto choices = linalg::choose_ranks(rule, spectra, other);
      for (std::size_t i = 0; i < jobs.size(); ++i) {
        take(choices[i], spectra[i], *jobs[i]);
      }
    };
    // Slightly less than the exact quotient, so that rounding does not exceed the largest possible
    // ratio.
    const double most = std::max(1.0, dense / least * (1 - 1e-12));
    if (options_.budget_bytes == 0) {
      ABT_CHECK(
          options_.rule.ratio <= most, Usage,
          "--ratio: expected at most {}, the ratio with every factored matrix at its "
          "lowest rank; got {}",
          std::floor(most * 100 + 1e-6) / 100, options_.rule.ratio);
      take_all(options_.rule.ratio);
      return;
    }
    // The file also holds headers and, with --dtype, numbers of several widths:
    // search for the smallest ratio that makes it small enough.
    const auto fits = [&](double ratio) {
      take_all(ratio);
      return file_bytes() <= options_.budget_bytes;
    };
    if (fits(1)) {
      return;
    }
    ABT_CHECK(
        fits(most), Usage,
        "--budget: expected at least {} bytes, the size with every factored matrix at its "
        "lowest rank; got {}",
        file_bytes(), options_.budget_bytes);
    double low = 1;
    double high = most;
    while (high > low * 1.0002) {
      const double middle = std::sqrt(low * high);
      (fits(middle) ? high : low) = middle;
    }
    take_all(high);
  }

  // Copies the tensors that stay as they are, then cuts the matrices. With a local rule, each
  // matrix is handled once: decomposed, cut, written and freed.
  void work() {
    for (const Job& job : jobs_) {
      if (stream_ && !job.may_be_cut()) {
        copy(job);
      }
    }
    for_each_candidate("matrix", [&](const Job& job) {
      DecomposedTensor& row = *job.row;
      const DecomposedMatrix matrix(job.item, row.grid);
      if (!is_global_) {
        const Spectrum& spectrum = matrix.spectrum();
        row.norm = matrix.norm();
        take(linalg::choose_rank(options_.rule, spectrum), spectrum, job);
      }
      if (!stream_) {
        return;
      }
      if (row.rank == 0) {
        copy(job);
        return;
      }
      const auto factors = matrix.factors(row.rank, row.dtype);
      row.error = matrix.error_of(factors);
      const auto stored = stored_factors(factors);
      stream_->add(row.name + ".A", stored.a);
      stream_->add(row.name + ".B", stored.b);
    });
  }

  void copy(const Job& job) {
    stream_->add(*job.item.tensor, [&](const WritePiece& write) {
      job.item.file->copy(*job.item.tensor, write);
    });
  }

  const DecomposeOptions& options_;
  Log& log_;
  bool is_global_;
  WeightFiles input_;
  linalg::RankRule even_;  // estimates ranks, to choose the grids; no global rule
  std::vector<Job> jobs_;  // in the files' order
  DecomposeReport report_;
  std::optional<SafetensorsStream> stream_;
};

}  // namespace

DecomposeReport decompose_file(const DecomposeOptions& options, Log& log) {
  const at::NoGradGuard no_grad;
  return FileDecomposer(options, log).run();
}

}  // namespace abtrain::weights
