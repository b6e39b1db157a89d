// Successive halving (Jamieson and Talwalkar 2016): every rival of a sweep gets
// the same number K of settings. All of them are trained in short pilots, the
// better half goes on to pilots of twice the length, and so on; the best
// setting is trained at full length, with all seeds.
//
//   base: my.yaml
//   halving:
//     seconds: 30                      # of a run at full length
//     pilot: {data.validation: 5000}   # for pilots only
//     rivals:
//       ddp:
//         why: the mean of all gradients
//         set: {method.name: ddp, train.steps: 800}
//         tune: [{}, {optimizer.lr: 2e-3}, {optimizer.lr: 5e-4}]
//   seeds: 3
//
// Each round is a sweep of its own, whose list depends on the results of the
// rounds before; the pilots' folders are <output>/<sweep>/pilots/<round>. A
// pilot's quality is that of its final model, on the held-out examples where
// there are any. A pilot that diverged is the worst; of equals, the one that
// stands first wins. With `seconds`, each round corrects the rival's steps by
// the time that the fastest of its pilots took: whatever else a machine does
// only ever makes them slower.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/resolve_points.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// The rounds of rivals with so many settings each (at least one), those with pilots and the
// one at full length: 1 for one setting, 3 for three (3, 2, 1). Rounds count
// from 0.
std::size_t rounds_of(std::size_t settings);
// Settings per rival that take part in a round: half of those before, rounded
// up.
std::size_t settings_in(std::size_t settings, std::size_t round);
// The length of the round's runs as a share of the rival's: 1, half of it in the last
// round of pilots, half of that in the one before.
double length_of(std::size_t settings, std::size_t round);
// The steps of a round's runs, of `whole` at full length.
std::int64_t steps_in(std::int64_t whole, std::size_t settings, std::size_t round);
// Runs in a round: settings, or at full length seeds, of all rivals.
std::size_t runs_in(const Sweep& sweep, std::size_t round);

// What each rival is given in all rounds together.
struct Work {
  std::size_t runs = 0;
  double lengths = 0;  // of these runs, in lengths of one at full length
};
Work work_of(std::size_t settings, std::size_t seeds);

// Training seconds of a finished run, on the link if there is one.
double seconds_of(
    const config::RunOptions& options, const std::string& folder, const plan::Link& link);

// The settings of each rival, by their number in its `tune`, that take part in
// the round after one with these qualities: the better half (rounded up) of
// `present`, best first.
std::vector<std::size_t> better_half(
    const std::vector<std::size_t>& present, const std::vector<double>& qualities);

// A round as a plain sweep, and what led to it.
struct Round {
  Sweep sweep;
  // For each rival the settings that take part, and the pilots before.
  struct Tuned {
    std::vector<std::size_t> settings;
    std::int64_t steps = 0;  // of a run at full length
    std::size_t pilots = 0;
    double pilot_seconds = 0;  // of their training, together
  };
  std::vector<Tuned> rivals;
  bool is_last = false;  // at full length
};
// Reads the results of the rounds before from their folders. Throws
// Error(MissingInput), naming the pilot, where one of them is missing.
Round round_of(const Sweep& sweep, std::size_t round);

// Whether a rival was left out because it diverged: the reasons of such rivals begin with this.
inline constexpr std::string_view kDiverged = "diverged";
inline bool tells_of_divergence(const std::string& why) {
  return why.starts_with(kDiverged);
}

// What each rival was given, as <output>/<sweep>/tuning.json: "settings", the "seconds" of a run at
// full length (0: by steps) and the "link" on which it was to take them, and for each of "rivals"
// name, why, tried, pilots, pilot_seconds and chosen. `last`: the round at full length.
void write_tuning(const Sweep& sweep, const Round& last);

}  // namespace abtrain::sweep
