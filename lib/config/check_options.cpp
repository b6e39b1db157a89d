#include "config/check_options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/scalars.h"
#include "base/text.h"
#include "comm/groups.h"
#include "compress/reducer_check.h"
#include "data/data_check.h"
#include "methods/local/plan.h"
#include "optim/optimizer_kind.h"
#include "orders/order_kind.h"

namespace abtrain::config {
namespace {

void append(Conflicts more, Conflicts& out) {
  std::ranges::move(more, std::back_inserter(out));
}

void check_groups(const RunOptions& o, Conflicts& out) {
  try {
    comm::make_groups(
        static_cast<int>(o.workers),
        o.method.group_size,
        o.method.sync == "only-b");
  } catch (const Error& error) {
    // The message begins with its key.
    std::string message = error.what();
    const std::size_t colon = message.find(": ");
    if (colon != std::string::npos && message.find(' ') > colon) {
      message.erase(0, colon + 2);
    }
    out.push_back(
        {{"method.group_size", "workers", "method.sync", "method.name"},
         message});
  }
}

bool same_unit(const Duration& a, const Duration& b) {
  return a.unit == b.unit;
}

// Reports a warm-up that lasts as long as the run or longer, if the units allow
// a comparison.
void check_warmup(
    const RunOptions& o,
    const Duration& warmup,
    const std::string& key,
    bool may_fill,
    const char* what,
    Conflicts& out) {
  const Duration run = o.train.steps > 0
                           ? Duration::steps(static_cast<double>(o.train.steps))
                           : Duration::epochs(o.train.epochs);
  const bool is_share = warmup.unit == Duration::Unit::Percent;
  const double whole = is_share ? 100 : run.value;
  if ((is_share || same_unit(run, warmup)) &&
      (may_fill ? warmup.value > whole : warmup.value >= whole)) {
    out.push_back(
        {{key,
          o.train.steps > 0 ? "train.steps" : "train.epochs",
          "method.name"},
         str("a warm-up of ",
             print_duration(warmup),
             " leaves no ",
             what,
             " in a run of ",
             print_duration(run))});
  }
}

void check_ab(const RunOptions& o, Conflicts& out) {
  const methods::MethodOptions& m = o.method;
  check_groups(o, out);
  if (same_unit(m.full_rank_steps, m.sync_every) &&
      m.full_rank_steps.value >= m.sync_every.value) {
    out.push_back(
        {{"method.full_rank_steps", "method.sync_every", "method.name"},
         str("expected less than method.sync_every (",
             print_duration(m.sync_every),
             "), got ",
             print_duration(m.full_rank_steps))});
  }
  check_warmup(
      o, m.warmup_steps, "method.warmup_steps", false, "factored phase", out);
}

void check_local(const RunOptions& o, Conflicts& out) {
  const methods::MethodOptions& m = o.method;
  check_warmup(
      o, m.warmup_steps, "method.warmup_steps", false, "local step", out);
  if (m.name != "diloco" || m.sync_every.unit != Duration::Unit::Steps) {
    return;
  }
  const double interval = std::max(1.0, std::round(m.sync_every.value));
  if (static_cast<double>(m.fragments) > interval) {
    out.push_back(
        {{"method.fragments", "method.sync_every", "method.name"},
         str("expected at most method.sync_every (",
             print_duration(m.sync_every),
             "), got ",
             m.fragments)});
  } else if (static_cast<double>(m.delay * m.fragments) >= interval) {
    out.push_back(
        {{"method.delay",
          "method.fragments",
          "method.sync_every",
          "method.name"},
         str("expected less than method.sync_every / method.fragments (",
             print_duration(m.sync_every),
             m.fragments > 1 ? str(" / ", m.fragments) : std::string(),
             "), got ",
             m.delay)});
  }
}

void check_optimizer(const RunOptions& o, Conflicts& out) {
  append(optim::check(o.optimizer, o.schedule), out);
  check_warmup(
      o,
      o.schedule.warmup_steps,
      "schedule.warmup_steps",
      true,
      "step at the full rate",
      out);
  if (optim::kind_of(o.optimizer).owns_weights && o.method.name != "ddp") {
    out.push_back(
        {{"optimizer.name", "method.name"},
         str(o.optimizer.name,
             "'s sums of gradients assume that nothing else changes the "
             "weights, but ",
             o.method.name,
             " averages or decomposes them; expected method.name ddp")});
  }
}

void check_data(const RunOptions& o, Conflicts& out) {
  append(data::check(o.data), out);
  if (o.data.on_device == true && o.device == device::DeviceChoice::Cpu) {
    out.push_back(
        {{"data.on_device", "device"},
         "images can be kept only on a GPU, but device is cpu; expected auto "
         "or false"});
  }
}

// `section`: "reducer", or "method.full_phase.reducer".
void check_reducer(
    const compress::ReducerOptions& reducer,
    const std::string& section,
    std::int64_t members,
    Conflicts& out) {
  for (const compress::ReducerConflict& conflict :
       compress::check(reducer, members)) {
    std::vector<std::string> keys;
    for (const std::string& key : conflict.keys) {
      keys.push_back(section + "." + key);
    }
    out.push_back({keys, conflict.message});
  }
}

void check_full_phase(const RunOptions& o, Conflicts& out) {
  const methods::FullPhaseOptions& full = o.method.full_phase;
  const bool same = full.reducer.name == "same";
  if (!same) {
    check_reducer(full.reducer, "method.full_phase.reducer", o.workers, out);
  }
  const std::string& name = same ? o.reducer.name : full.reducer.name;
  if (full.sync_every > 1 && name != "plain") {
    out.push_back(
        {{"method.full_phase.sync_every",
          same ? "reducer.name" : "method.full_phase.reducer.name",
          "method.name"},
         str("local steps average the parameters without compression, but the "
             "dense phases' reducer is ",
             name,
             "; expected 1, or method.full_phase.reducer.name plain")});
  }
}

}  // namespace

Conflicts check(const RunOptions& options) {
  Conflicts out;
  check_data(options, out);
  if (options.method.name == "ab") {
    check_ab(options, out);
    check_full_phase(options, out);
  } else if (methods::has_local_steps(options.method)) {
    check_local(options, out);
  }
  check_reducer(options.reducer, "reducer", options.workers, out);
  check_optimizer(options, out);
  append(
      orders::check(
          options.order, options.data.batch_size, options.train.accumulate),
      out);
  if (!options.model.weights && !options.model.fresh.empty()) {
    out.push_back(
        {{"model.fresh", "model.weights"},
         "these layers are not loaded from model.weights, but model.weights "
         "is none"});
  }
  if (options.train.cuda_graphs == true &&
      options.device == device::DeviceChoice::Cpu) {
    out.push_back(
        {{"train.cuda_graphs", "device"},
         "graphs need a GPU, but device is cpu; auto uses them where there "
         "is one"});
  }
  return out;
}

}  // namespace abtrain::config
