// Reads what a sweep varies, from a sweep file or from the command line (`--grid`, `--seeds`).
//
//   base: fashion_mnist_mlp          # beside this file, else in configs/
//   set: {train.epochs: 2}           # for all points
//   grid:                            # all combinations, the last key fastest
//     method.group_size: [1, 2]
//     method.rank: [{rule: fixed, rank: 8}, {rule: energy, keep: 0.8}]
//   list: [{method.name: ddp}]       # further points, after those of the grid
//   exclude: [{method.group_size: 1, method.rank.rule: fixed}]
//   seeds: [1, 2]                    # each point with each; `2` means the same
//
// In place of grid, list and exclude, `halving` names rivals, which are tuned first
// (sweep/halving.h).
//
// Reports all problems together in one LocatedError(Config), each with its place in the file.
// Throws Error(MissingInput) for a missing file and Error(Usage) for options that contradict each
// other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/override.h"
#include "plan/time.h"

namespace abtrain::sweep {

// A key with a value; `text` is the printed form of the value, equal for all spellings of it.
struct Assignment {
  config::Override override;
  std::string text;
};
// The assignments of one value of a key in the grid, or of one item of a list.
using Choice = std::vector<Assignment>;

// A step from one setting of a rival to another: keys that get a value, and keys with values that
// are multiplied, as {optimizer.lr: x 2}.
struct Move {
  struct Factor {
    std::string key;
    double factor = 1;
    Location place;
  };
  Choice set = {};
  std::vector<Factor> factors = {};
};

// A method that is compared with the others: its keys, and the moves that search its setting
// (sweep/search.h).
struct Rival {
  std::string name;
  std::string why;
  Choice set;
  std::vector<Move> tune;
  std::int64_t steps = 0;  // train.steps of `set`
  Location place;
};
struct LeftOut {
  enum class Kind { Other, Diverged };  // Diverged: in the short runs that time its steps
  std::string name;
  std::string why;
  Kind kind = Kind::Other;
};
// The kind as a word: "other" or "diverged".
std::string name_of(LeftOut::Kind kind);

struct Halving {
  // Training time of a full-length run; 0: as many steps as `set` says.
  double seconds = 0;
  plan::Link link;            // the link on which that time counts
  Choice pilot;               // keys for pilots only
  std::vector<Rival> rivals;
  std::int64_t settings = 0;  // number that each rival may try, at least 1
  // Number of seeds of the two best rivals, if above the number of seeds of all rivals.
  std::int64_t finalist_seeds = 0;
  std::vector<LeftOut> left_out;
};

struct Sweep {
  std::vector<std::string> folders;  // where configurations are searched
  std::string file;    // "": the sweep is from the command line
  std::string base;    // the path of the configuration
  std::string name;
  std::string output;                    // "": the configuration's own
  std::vector<config::Override> common;  // `set`
  std::vector<config::Override> sets;    // `--set`, which override `set`
  std::vector<std::vector<Choice>> grid;
  std::vector<Choice> list;
  std::vector<std::string> labels;  // labels of the list's items; empty: made of their values
  std::vector<Choice> exclude;
  std::vector<Choice> seeds;       // empty: the configuration's own
  std::optional<Halving> halving;  // if set, grid, list and exclude are empty

  // The name used in messages.
  const std::string& source() const {
    return file.empty() ? base : file;
  }
};

// The sweep that a command line describes: a file, or `config` with `grid` or `seeds`.
struct SweepArgs {
  std::string file = {};
  std::string config = {};
  std::vector<std::string> grid = {};  // "a.b=VALUE,VALUE"
  std::string seeds = {};              // "3" or "1,5,7"
  std::vector<std::string> sets = {};  // "a.b=VALUE"
  std::string name = {};
  std::string output = {};
};

// `folders`: where configurations are searched (config::config_folders); sweep files are also
// searched in their subfolders sweeps/.
Sweep read_sweep(const SweepArgs& args, const std::vector<std::string>& folders);

}  // namespace abtrain::sweep
