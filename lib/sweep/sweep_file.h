// What a sweep varies: read from a sweep file, or from `--grid` and its kin.
//
//   base: fashion_mnist_mlp          # found beside this file, else in configs/
//   set: {train.epochs: 2}           # for all points
//   grid:                            # all combinations, the last key fastest
//     method.group_size: [1, 2]
//     method.rank: [{rule: fixed, rank: 8}, {rule: energy, keep: 0.8}]
//   list: [{method.name: ddp}]       # further points, after those of the grid
//   exclude: [{method.group_size: 1, method.rank.rule: fixed}]
//   seeds: [1, 2]                    # each point with each; 2: the same
//
// All problems are reported at once, in one LocatedError(Config), each with the
// place in the file. A file that is not there is Error(MissingInput), options
// that do not go together are Error(Usage).
#pragma once

#include <string>
#include <vector>

#include "config/override.h"

namespace abtrain::sweep {

// A key with a value; `text` is the value as every spelling of it prints.
struct Leaf {
  config::Override override;
  std::string text;
};
// What one value of a grid's key, or one item of a list, sets.
using Choice = std::vector<Leaf>;

struct Sweep {
  std::string source;  // what messages are about: the file, else the base
  std::string file;    // "" for the command line
  std::string base;    // the path of the configuration
  std::string name;
  std::string output;                    // "": the configuration's own
  std::vector<config::Override> common;  // `set`
  std::vector<config::Override> sets;    // `--set`, over it
  std::vector<std::vector<Choice>> grid;
  std::vector<Choice> list;
  std::vector<Choice> exclude;
  std::vector<Choice> seeds;  // none: the configuration's own
};

// What a command line asks for: a file, or `config` with `grid` or `seeds`.
struct SweepArgs {
  std::string file = {};
  std::string config = {};
  std::vector<std::string> grid = {};  // "a.b=VALUE,VALUE"
  std::string seeds = {};              // "3" or "1,5,7"
  std::vector<std::string> sets = {};  // "a.b=VALUE"
  std::string name = {};
  std::string output = {};
};

// `folders`: where configurations are found (config::config_folders), sweep
// files in their sub-folder sweeps too.
Sweep read_sweep(
    const SweepArgs& args,
    const std::vector<std::string>& folders);

}  // namespace abtrain::sweep
