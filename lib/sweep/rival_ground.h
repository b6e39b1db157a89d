// The common ground of a configuration's rivals: the configuration itself, what the command line
// gives, and the size of AB-training, which the small networks match.
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

// Another network of the same family in which AB-training stores as many parameters, at a lower
// compression.
struct AbSize {
  std::string name;
  std::string what;  // in a few words
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

  // AB-training's size: as configured (empty), or by a budget.
  Sets size = {};
  double ratio = 0;             // the resulting compression
  std::int64_t parameters = 0;  // stored by AB-training
  std::string no_ab = {};       // why the model cannot be factored, or ""
  config::RunOptions ab = {};   // the configuration with AB-training of that size

  SmallNetworks small = {};
  std::vector<AbSize> ab_sizes = {};  // other ones than the configured size

  // Whether the configuration trains adapters; its rivals are then other ways of fine-tuning.
  bool tunes() const {
    return config::trains_adapters(base);
  }
  bool is_ab() const {
    return base.method.name == "ab";
  }
  // The rival that has AB-training's size here; others match it.
  std::string ab_name() const {
    return is_ab() ? "ab" : "ab_recipe";
  }
  std::int64_t images() const {
    return set.train - base.data.validation;
  }
  // The assignment of a key on the command line, or null.
  const Assignment* find_given(const std::string& key) const;
  // The sets with keys that the command line does not give.
  Sets not_given(const Sets& sets) const;
  // Finds AB-training's size. Throws Error(Config) if AB-training has nothing to factor.
  void find_size();
  // Finds other networks in which AB-training stores as many parameters, up to 3 %: one without the
  // taps of the head that see copies (model.folded_head), if there are any; and narrower ones. If
  // the first is compressed R:1, these are compressed by sqrt(R) and by the fourth root of R, if
  // that is at least 1.25. None if the network has one width, or if the command line gives the
  // ranks.
  void find_ab_sizes();
};

// Each key with its value; for method.rank, {rule: fixed, rank: 8} holds two. Errors are left to
// the reader of the configuration.
Choice assignments_of(const Sets& sets);
// As an override: "a.b=VALUE".
std::string set_of(const Assignment& one);
// The "a.b" of "a.b=VALUE".
std::string key_of(const std::string& set);

}  // namespace abtrain::sweep
