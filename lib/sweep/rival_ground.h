// What all rivals (methods to compare) of a configuration share: the configuration itself, the keys
// on the command line, and the size of AB-training, which the small networks match.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/run_options.h"
#include "data/dataset.h"
#include "sweep/rivals.h"
#include "sweep/small_networks.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Another network of the same family in which AB-training stores as many parameters as in the
// configured one, at a lower compression.
struct AbSize {
  std::string name;
  std::string what;  // a short description
  Sets overrides;    // width and ratio
};

struct Ground {
  const RivalsRequest& request;
  std::function<config::RunOptions(const Sets&)> read;  // the configuration with these overrides
  Choice given;  // the keys that the command line sets, which hold for all rivals
  config::RunOptions base;
  data::DatasetShape set = {};
  RunLength length = {};
  Sets common = {};  // overrides of all rivals

  // Overrides that set AB-training's size by a budget; empty: as configured.
  Sets size = {};
  double ratio = 0;             // parameters of the dense model / those stored
  std::int64_t parameters = 0;  // stored by AB-training
  std::string no_ab = {};       // why the model cannot be factored, or ""
  config::RunOptions ab = {};   // the configuration with AB-training of that size

  SmallNetworks small = {};
  std::vector<AbSize> ab_sizes = {};  // further sizes, besides the configured one

  // True if the configuration trains adapters; its rivals are then other ways of fine-tuning.
  bool tunes() const {
    return config::trains_adapters(base);
  }
  bool is_ab() const {
    return base.method.name == "ab";
  }
  // The name of the rival that is AB-training here; small rivals match its size.
  std::string ab_name() const {
    return is_ab() ? "ab" : "ab_recipe";
  }
  std::int64_t images() const {
    return set.train - base.data.validation;
  }
  // The assignment of a key on the command line, or null.
  const Assignment* find_given(const std::string& key) const;
  // Returns `sets` without the keys that the command line gives.
  Sets not_given(const Sets& sets) const;
  // Finds AB-training's size. Throws Error(Config) if AB-training has nothing to factor.
  void find_size();
  // Finds other networks in which AB-training stores as many parameters, to within 3 %. R:1 is the
  // compression that this takes at full width, for vgg with model.folded_head. Adds that vgg, and
  // narrower networks compressed sqrt(R):1 and R^(1/4):1. Leaves out networks compressed less than
  // 1.25:1. Finds none for adapters, for weights from a file, for a network with one possible
  // width, or if the command line gives the ranks.
  void find_ab_sizes();
};

// Returns each key with its value; for method.rank, {rule: fixed, rank: 8} holds two. Errors are
// left to the reader of the configuration.
Choice assignments_of(const Sets& sets);
// As an override: "a.b=VALUE".
std::string set_of(const Assignment& one);
// The "a.b" of "a.b=VALUE".
std::string key_of(const std::string& set);

}  // namespace abtrain::sweep
