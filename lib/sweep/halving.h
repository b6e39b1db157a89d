// Rivals that are tuned before they are compared. Every rival may try the same
// number K of settings (sweep/search.h), in pilots of a quarter of the length:
// three in the first round, two in each one after it, and in a last one as many
// as turned out to repeat others. The best of them and the rival as it is then
// train for half the length with two seeds each; what is better by more than
// the spread is trained at full length, with all seeds. The two best rivals may
// get more seeds after that.
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
// Each round is a sweep of its own, whose list depends on the results of the
// rounds before; the pilots' folders are <output>/<sweep>/pilots/<round>. A
// pilot's quality is that of its final model, on the held-out examples where
// there are any. A pilot that diverged is the worst; of equals, the one that
// stands first wins. With `seconds`, runs at full length go by the
// clock (train.seconds). The steps of pilots, and of all runs where seconds count on a link, follow
// from the pilots of settings that compute the same, of which the fastest counts: whatever else a
// machine does only ever makes them slower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/resolve_points.h"
#include "sweep/search.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// All rounds, counted from 0: those that explore, the one for settings that repeated others, the
// one that decides, the one at full length and that of more seeds. With one setting there are no
// pilots.
std::size_t rounds_of(const Sweep& sweep);
// The length of the round's runs as a share of the rival's: 1/4, 1/2 or 1.
double length_of(const Halving& halving, std::size_t round);
// The steps of such a run, of `whole` at full length; those of the first pilots.
std::int64_t steps_in(std::int64_t whole, double length);
inline constexpr double kPilotLength = 0.25;
// At most so many runs of a round are new.
std::size_t runs_in(const Sweep& sweep, std::size_t round);
// About so many are.
std::size_t expected_runs(const Sweep& sweep, std::size_t round);

// What each rival is given in all rounds together.
struct Work {
  std::size_t runs = 0;
  double lengths = 0;  // of these runs, in lengths of one at full length
};
Work work_of(std::size_t settings, std::size_t seeds);

// Training seconds of a finished run, on the link if there is one.
double seconds_of(
    const config::RunOptions& options, const std::string& folder, const plan::Link& link);

// A round as a plain sweep, and what led to it.
struct Round {
  // At full length the runs of the rounds before are in it as well, after the new ones.
  Sweep sweep;
  std::size_t runs = 0;  // that are new; 0: there is nothing to train
  std::vector<Search> rivals;
  bool is_full = false;  // the first round at full length
  bool is_last = false;
};
// Reads the results of the rounds before from their folders. Throws
// Error(MissingInput), naming the pilot, where one of them is missing.
Round round_of(const Sweep& sweep, std::size_t round);

// What each rival was given, as <output>/<sweep>/tuning.json: "settings", the "seconds" of a run at
// full length (0: by steps) and the "link" on which it was to take them, and for each of "rivals"
// name, why, tried, pilots, pilot_seconds and chosen, and for each of "left_out" name, why and
// kind. `full`: a round at full length.
void write_tuning(const Sweep& sweep, const Round& full);

}  // namespace abtrain::sweep
