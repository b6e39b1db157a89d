// What a run folder holds, as far as runs are compared by it.
//
// Seconds are those of training, the clock stopped in evaluations and
// checkpoints; bytes are sent bytes: of worker 0 up to an evaluation, means
// over the workers of whole runs. Errors of reading: MissingInput for a folder
// or file that is not there, DamagedData (a LocatedError, as file:line: what is
// wrong) for one that cannot be read as what it should be, Config for a
// config.yaml that is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace abtrain::report {

// One evaluation of the merged model.
struct Evaluation {
  double step = 0;
  double seconds = 0;
  double bytes = 0;
  double accuracy = 0;
};

// The largest of a layer's singular values, some left out: the first is the
// value at index 1.
struct Spectrum {
  std::vector<double> index;
  std::vector<double> value;
};

struct LayerCut {
  std::string name;
  double m = 0;
  double n = 0;
  double rank = 0;                   // 0: dense
  std::optional<Spectrum> spectrum;  // of the first and last decomposition
};

struct Decomposition {
  double step = 0;
  std::vector<LayerCut> layers;
};

// Figures of summary.json, which a run has when it has ended well.
struct Summary {
  double accuracy = 0;
  std::optional<double> loss;
  std::optional<double> compression_ratio;
  double bytes = 0;
  std::optional<double> vs_fp32;  // bytes over those of fp32 data parallel
  double train_seconds = 0;
  double ms_per_step = 0;
  double communication_share = 0;   // of the training time
  double sent_bits = 0;             // by a worker, a step and dense parameter
  std::optional<double> encode_ms;  // a step
  std::optional<double> decode_ms;
};

struct RunRecord {
  std::string folder;
  std::string name;
  std::uint64_t seed = 0;
  // Its configuration but for name, seed and output: every key with its value.
  std::vector<std::pair<std::string, std::string>> keys;
  std::vector<Evaluation> evaluations;
  std::vector<Decomposition> decompositions;
  std::optional<double> vnmse;  // mean over the evaluations of the estimate
  std::optional<Summary> summary;
  std::string unfinished;  // why there is no summary, for people

  // The value of a key; "" where there is none.
  std::string value_of(const std::string& key) const;
};

// Singular values are most of a run's bytes.
enum class Spectra { Skip, Read };

RunRecord read_run(const std::string& folder, Spectra spectra = Spectra::Read);

// What was found below some paths.
struct FoundRuns {
  std::vector<std::string> folders;
  std::vector<std::string> without;  // paths that hold no run: why, for people
};

// The run folders among `paths`, each a run folder, or a folder that holds
// some, or one that holds such folders. What looks like a run folder (it has
// one of a run's files, or it is empty) counts, whole or not. A path that is
// not there throws MissingInput.
FoundRuns find_runs(const std::vector<std::string>& paths);

}  // namespace abtrain::report
