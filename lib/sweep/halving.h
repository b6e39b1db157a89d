// Tunes rivals before they are compared. Every rival may try the same number of settings
// (sweep/search.h), in pilots of a quarter of the length: three settings in the first round, two in
// each later round, and in one more round a replacement for each setting that turned out to repeat
// another. Then the rival as configured and its best other setting train for half the length with
// two seeds each. The other setting is chosen if it is better by more than the spread of the seeds,
// else the rival as configured. The choice trains at full length, with all seeds; then the two best
// rivals may get more seeds.
//
//   base: my.yaml
//   halving:
//     seconds: 30                      # of a run at full length
//     settings: 4                      # that each rival may try
//     finalist_seeds: 5                # of the two best rivals
//     pilot: {data.validation: 5000}   # for pilots only
//     rivals:
//       ddp:
//         why: the mean of all gradients
//         set: {method.name: ddp, train.steps: 800}
//         tune: [{}, {optimizer.lr: x 2}, {optimizer.lr: x 0.5}, {optimizer.weight_decay: 0.1}]
//   seeds: 3
//
// Each round is a sweep of its own. The pilots' folders are <output>/<sweep>/pilots/<round>. A
// pilot's quality is that of its final model, on the held-out examples if there are any. A pilot
// that diverged is the worst; among equals, the first one wins. With `seconds`, full-length runs
// end by the clock (train.seconds) or, if seconds count on a link, after the steps that fit into
// them. The number of these steps, and of the steps at half length, is computed from the speed of
// the fastest pilot among settings with equally long steps, because disturbances only ever make a
// machine slower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/resolve_points.h"
#include "sweep/search.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Number of rounds, which count from 0: those of pilots (none with one setting), one at full length
// and, if the two best rivals get more seeds, one for these.
std::size_t rounds_of(const Sweep& sweep);
// The length of the round's runs as a share of the rival's: 1/4, 1/2 or 1.
double length_of(const Halving& halving, std::size_t round);
// Number of steps in a run of this length (a share of full length) if a full-length run has `whole`
// steps. kPilotLength: the length of all pilots but those that decide.
std::int64_t steps_in(std::int64_t whole, double length);
inline constexpr double kPilotLength = 0.25;
// The maximum number of new runs in a round.
std::size_t runs_in(const Sweep& sweep, std::size_t round);
std::size_t expected_runs(const Sweep& sweep, std::size_t round);

// The runs that each rival gets in all rounds together.
struct Work {
  std::size_t runs = 0;
  double lengths = 0;  // total length of these runs; a full-length run counts as 1
};
Work work_of(std::size_t settings, std::size_t seeds);

// Training seconds of a finished run, on the link if there is one.
double seconds_of(
    const config::RunOptions& options, const std::string& folder, const plan::Link& link);

// A round as a plain sweep, and the searches that led to it.
struct Round {
  // The new runs. In the round with more seeds, the other full-length runs follow them.
  Sweep sweep;
  std::size_t runs = 0;  // number of new runs; 0: there is nothing to train
  std::vector<Search> rivals;
  bool is_full = false;  // the first round at full length
  bool is_last = false;
};
// Returns a round, from the results of the earlier ones in their folders. Throws
// Error(MissingInput), naming the run, if a result is missing.
Round round_of(const Sweep& sweep, std::size_t round);

// Writes how each rival was tuned to <output>/<sweep>/tuning.json: "settings", the "seconds" of a
// full-length run (0: by steps) and the "link" that they refer to; for each of "rivals" name, why,
// tried, pilots, pilot_seconds and chosen; for each of "left_out" name, why and kind. `full`: a
// round at full length.
void write_tuning(const Sweep& sweep, const Round& full);

}  // namespace abtrain::sweep
