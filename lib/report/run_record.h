// The contents of a run folder that are needed to compare runs.
//
// Seconds are training time: the clock stops during evaluations and checkpoints. Bytes are bytes
// sent, as the mean over the workers. Reading throws MissingInput for a folder or file that does
// not exist, DamagedData (a LocatedError, "file:line: what is wrong") for a malformed file, and
// Config for an invalid config.yaml.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "run_folder/run_state.h"

namespace abtrain::report {

// How good a model is: a classifier has an accuracy (0 to 1), a regression r2 (at
// most 1), and a language model bits_per_byte and perplexity.
struct Score {
  std::optional<double> accuracy = {};
  std::optional<double> r2 = {};
  std::optional<double> bits_per_byte = {};
  std::optional<double> perplexity = {};

  // The measure that this score has: accuracy, r2 or bits_per_byte.
  std::optional<double> Score::*which() const;
  // Higher is better: the accuracy, R^2, or -bits_per_byte.
  double quality() const;
  // True if the accuracy or R^2 is at least `target`, or the bits per byte are at most `target`.
  bool reaches(double target) const;
  // "88.71 %", "R² 0.8871" or "1.8345 bits per byte".
  std::string text() const;
};
using WhichScore = std::optional<double> Score::*;
// The score in a summary or an evaluation, at JSON pointers that start with `begin`. Throws
// DamagedData if there is none.
Score score_of(const JsonObject& json, const std::string& begin = "/");

// One evaluation of the merged model.
struct Evaluation : Score {
  double step = 0;
  double seconds = 0;
  double bytes = 0;
};

// A sample of a layer's singular values, largest first. Indices count from 1.
struct SpectrumSample {
  std::vector<double> index;
  std::vector<double> value;
};

// A layer after a decomposition, which factors its m x n weight by SVD.
struct LayerCut {
  std::string name;
  double m = 0;
  double n = 0;
  double rank = 0;                         // 0: dense
  std::optional<SpectrumSample> spectrum;  // read only for the first and last decomposition
};

struct Decomposition {
  double step = 0;
  std::vector<LayerCut> layers;
};

// Figures of summary.json, which a run writes when it finishes.
struct Summary : Score {
  std::optional<double> loss;
  std::optional<double> compression_ratio;
  std::optional<double> parameters;  // of the final model, as stored
  double bytes = 0;
  std::optional<double> vs_fp32;  // bytes relative to fp32 data parallel
  double train_seconds = 0;
  std::optional<double> link_seconds;  // train_seconds if the run had used the given network
  double ms_per_step = 0;
  // Shares of the training time. Workers wait for slower ones: `waiting_share` is the mean over the
  // workers, `waiting_max` the share of the worker that waits most. The slowest waits for nobody.
  double communication_share = 0;
  std::optional<double> waiting_share;
  std::optional<double> waiting_max;
  std::optional<double> coding_share;  // encoding and decoding
  // "worker 2 on HOST", if the others waited for it for over a tenth of a run of at least 5 s.
  std::string slowest;
  std::optional<double> core_share;  // fraction of its compute time in which a worker had a core
  bool beside_others = false;        // other programs took cores: unreliable times
  double sent_bits = 0;             // per worker, step and dense parameter
  std::optional<double> encode_ms;  // per step
  std::optional<double> decode_ms;
};

// Keys of a configuration with their values, in the order of the configuration.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

struct RunRecord {
  std::string folder;
  std::string name;
  std::uint64_t seed = 0;
  // The data set; for data that the user brings, with its file or folder.
  std::string data;
  // All configuration keys that affect this run, with their values, except name, seed and output.
  KeyValues keys;
  KeyValues own_keys;  // name, seed and output
  std::vector<Evaluation> evaluations;
  std::vector<Decomposition> decompositions;
  std::optional<double> vnmse;  // mean over the "compression" events
  std::optional<Summary> summary;
  run_folder::RunState state = run_folder::RunState::Finished;
  std::int64_t step = 0;   // the last step that was logged
  std::int64_t steps = 0;  // of the whole run; 0: not known yet
  // The step in which the run diverged, if it did; the last logged step if failure.json names none.
  std::optional<std::int64_t> diverged_at = {};
  // For a run without a summary: how far it got and why it ended, as a message.
  std::string unfinished;

  // "finished", or "running at step 40 of 60".
  std::string progress() const;
  // The value of a key; "" for an unknown key.
  std::string value_of(const std::string& key) const;
};

// Reads a figure (a member or member function) from a run's summary; empty for
// an unfinished run.
auto of_summary(auto figure) {
  return [figure](const RunRecord& run) {
    return run.summary ? std::optional<double>(std::invoke(figure, *run.summary)) : std::nullopt;
  };
}

// Whether to read singular values, which are most of the bytes of a metrics.jsonl.
enum class Spectra { Skip, Read };

RunRecord read_run(const std::string& folder, Spectra spectra = Spectra::Read);

struct FoundRuns {
  std::vector<std::string> folders;
  std::vector<std::string> without;  // a message for each path without runs
};

// Finds the run folders at or below `paths`: each path is a run folder, or holds run folders one or
// two levels down. A folder counts as a run folder if it has any of a run's files or is empty.
// Throws MissingInput for a path that does not exist.
FoundRuns find_runs(const std::vector<std::string>& paths);

}  // namespace abtrain::report
