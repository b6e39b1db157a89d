// Tunes rivals before they are compared. Every rival may try the same number K of settings
// (sweep/search.h), in pilots of a quarter of the length: three in the first round, two in each
// later one, and in a last one as many as turned out to repeat others. Then the best new setting
// and the rival as configured train for half the length with two seeds each. The best setting goes
// on if it is better by more than the spread of the seeds, else the rival as configured; it trains
// at full length, with all seeds. The two best rivals may get more seeds after that.
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
// Each round is a sweep of its own; its list depends on the results of the rounds before. The
// pilots' folders are <output>/<sweep>/pilots/<round>. A pilot's quality is that of its final
// model, on the held-out examples if there are any. A pilot that diverged is the worst; among
// equals, the first one wins. With `seconds`, full-length runs go by the clock (train.seconds). The
// steps of pilots, and of all runs if seconds count on a link, follow from the speed of the fastest
// pilot among settings that compute the same, because disturbances only ever make a machine slower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/resolve_points.h"
#include "sweep/search.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Number of rounds: those that explore, the one that replaces settings that repeated others, the
// one that decides, the one at full length and the one with more seeds. Rounds count from 0. With
// one setting there are no pilots.
std::size_t rounds_of(const Sweep& sweep);
// The length of the round's runs as a share of the rival's: 1/4, 1/2 or 1.
double length_of(const Halving& halving, std::size_t round);
// The number of steps of such a run, if `whole` is the full length. kPilotLength: the length of the
// pilots that explore.
std::int64_t steps_in(std::int64_t whole, double length);
inline constexpr double kPilotLength = 0.25;
// The maximum number of new runs in a round.
std::size_t runs_in(const Sweep& sweep, std::size_t round);
// The expected number of new runs.
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
  // At full length, it also holds the runs of the rounds before, after the new ones.
  Sweep sweep;
  std::size_t runs = 0;  // new ones; 0: there is nothing to train
  std::vector<Search> rivals;
  bool is_full = false;  // the first round at full length
  bool is_last = false;
};
// Reads the results of the earlier rounds from their folders. Throws Error(MissingInput), naming
// the pilot, if one is missing.
Round round_of(const Sweep& sweep, std::size_t round);

// Writes what each rival was given to <output>/<sweep>/tuning.json: "settings", the "seconds" of a
// full-length run (0: by steps) and the "link" on which it was to take them; for each of "rivals"
// name, why, tried, pilots, pilot_seconds and chosen; for each of "left_out" name, why and kind.
// `full`: a round at full length.
void write_tuning(const Sweep& sweep, const Round& full);

}  // namespace abtrain::sweep
