// Rivals: the methods that a configuration's own method is compared with, as a sweep with halving
// (sweep/halving.h). Each has its keys, and the settings that it may try. All rivals may try the
// same number of settings, in one common order.
//
//   RivalList list = list_rivals("my.yaml", {}, {.tune = 4}, folders);
//   for (RivalPlan& rival : list.rivals) rival.steps = 800;
//   atomic_write("rivals.yaml", rivals_yaml(list, 3, "# made by ..."));
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "config/run_options.h"
#include "plan/small_shapes.h"
#include "plan/time.h"
#include "sweep/sweep_file.h"

namespace abtrain::sweep {

// Overrides of the configuration, in order: "a.b=VALUE", where VALUE is YAML.
using Sets = std::vector<std::string>;
// The overrides of all parts, in order.
Sets joined(std::initializer_list<Sets> parts);

struct RivalsRequest {
  // The compression that AB-training's ranks are to reach; none: as configured.
  std::optional<double> ratio = {};
  std::vector<std::string> only = {};  // names of rivals; empty: the usual ones
  bool all = false;                    // also DiLoCo and local SGD
  // If the model is exported: the network that small rivals train, a .pt2 file.
  std::optional<std::string> small = {};
  // Number of settings that each rival may try, 1 to kMaxSettings. For MuLoCo, the first two are
  // starting points.
  std::size_t tune = 4;
  // For a plan: all rivals, the configured length, and AB-training with the configured rule even if
  // its ranks depend on singular values. If a model cannot be factored, the other rivals remain.
  bool plans = false;
};
inline constexpr std::size_t kMaxSettings = 12;

struct RivalPlan {
  std::string name;
  std::string why;
  Sets set = {};
  // The moves that the rival may try (sweep/search.h), such as "optimizer.lr=x 2".
  std::vector<Sets> tune = {};
  std::string shape = {};  // shape of a small rival's network (plan::SmallShape), by name; else ""
  // Set by the caller, for a full-length run:
  std::int64_t steps = 0;
  double seconds_here = 0;   // training time on this machine, without a link; 0: not measured
  double start_seconds = 0;  // time that the run takes besides training
  config::RunOptions options = {};  // the configuration's options with `set`
};

struct RivalList {
  std::string config;  // path of the configuration
  std::vector<std::string> folders;  // where configurations are searched
  std::string name;                  // the configuration's; the caller sets the sweep's
  std::string output;  // "": the configuration's own
  Sets common;         // overrides for all rivals
  Sets pilot;          // more overrides, for pilots only
  std::size_t settings = 1;         // number that each rival may try
  std::int64_t finalist_seeds = 0;  // for the two best rivals, if more than for all
  std::vector<RivalPlan> rivals;
  std::vector<LeftOut> left_out;  // rivals that make no sense for this configuration
  std::int64_t parameters = 0;  // stored by AB-training; 0: it cannot train this model
  plan::SmallShapes shapes = {};  // of the small rivals' network; empty without small rivals
  std::string configured;       // in a plan: the rival that is the configuration itself
  double seconds = 0;           // training time of a full-length run; 0: by steps
  plan::Link link;              // the link that these seconds refer to
};

// Lists the rivals; a small rival has one entry for each shape of its network. Throws Error(Usage)
// for an unknown name in `only`, and for a `small` that no rival trains; Error(Config) if the model
// has no layer to factor, `small` does not fit, or no rival is left. `sets`: overrides of the
// configuration. `folders`: where configurations are searched.
RivalList list_rivals(
    const std::string& config, const Sets& sets, const RivalsRequest& request,
    const std::vector<std::string>& folders);

// The reason why a run of the rival with `steps` steps is refused, or "".
std::string refusal(
    const RivalList& list, const RivalPlan& rival, std::int64_t steps, bool is_pilot);

// The words that `only` accepts.
std::vector<std::string> rival_names();

// The sweep file. `head`: comment lines at its beginning.
std::string rivals_yaml(const RivalList& list, std::int64_t seeds, const std::string& head);

}  // namespace abtrain::sweep
