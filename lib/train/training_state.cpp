// The state of a run: saved, resumed, and taken over by another number of
// workers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "train/training_loop.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;
using Scopes = std::map<std::string, comm::TrafficMeter::ByPurpose>;

ordered_json to_json(const Scopes& scopes) {
  ordered_json json = ordered_json::object();
  for (const auto& [scope, purposes] : scopes) {
    for (const comm::Traffic& t : purposes) {
      json[scope].push_back({t.bytes, t.calls, t.seconds});
    }
  }
  return json;
}

// Sums of such numbers still fit.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;

Scopes from_json(const ordered_json& json) {
  Scopes scopes;
  bool ok = json.is_object();
  for (const auto& [scope, purposes] : json.items()) {
    auto& all = scopes[scope];
    ok = ok && purposes.is_array() && purposes.size() == all.size();
    for (std::size_t p = 0; ok && p < all.size(); ++p) {
      const ordered_json& t = purposes[p];
      ok =
          t.is_array() && t.size() == 3 && read_json(t[0], all[p].bytes) &&
          read_json(t[1], all[p].calls) && read_json(t[2], all[p].seconds) &&
          std::clamp<std::int64_t>(all[p].bytes, 0, kMostBytes) == all[p].bytes;
    }
  }
  ABT_CHECK(
      ok,
      DamagedData,
      "the checkpoint's value 'traffic': expected bytes, calls and seconds for "
      "each purpose, got ",
      shown(json));
  return scopes;
}

}  // namespace

void Trainer::archive_figures(state::Archive& archive) {
  double seconds = watch_.seconds();
  double svd = svd_before_ + recorder_.svd();
  double waited = waited_before_ + batches_->waited();
  ordered_json traffic = to_json(meter_.scopes());
  std::vector<double> phases = {
      by_phase_.full_phase, by_phase_.ab_phase, by_phase_.switches};
  const compress::Costs now = reducer_costs();
  std::vector<double> costs = {now.encode, now.collective, now.decode};
  archive.value("seconds", seconds);
  archive.value("evaluate_seconds", evaluate_seconds_);
  archive.value("checkpoint_seconds", checkpoint_seconds_);
  // The restored meter lacks its barriers, so less has to be subtracted then.
  double metrics = metrics_seconds_ - meter_.other_seconds();
  archive.value("metrics_seconds", metrics);
  archive.value("svd_seconds", svd);
  archive.value("data_seconds", waited);
  archive.value("reducer_seconds", costs);
  std::vector<double> vnmse = {
      vnmse_before_[0] + recorder_.vnmse_sum(),
      vnmse_before_[1] + recorder_.vnmse_count()};
  archive.value("vnmse", vnmse);
  archive.value("traffic", traffic);
  archive.value("traffic_by_phase", phases);
  archive.value("last_loss", last_loss_);
  archive.value("rate", rate_);
  archive.value("loss_sum", loss_sum_);
  archive.value("loss_count", loss_count_);
  archive.value("event_step", event_step_);
  archive.value("event_seconds", event_seconds_);
  archive.value("best", best_);
  if (!archive.is_loading()) {
    return;
  }
  ABT_CHECK(
      phases.size() == 3,
      DamagedData,
      "the checkpoint's traffic_by_phase has ",
      phases.size(),
      " values, expected 3");
  ABT_CHECK(
      costs.size() == 3,
      DamagedData,
      "the checkpoint's reducer_seconds has ",
      costs.size(),
      " values, expected 3");
  ABT_CHECK(
      vnmse.size() == 2,
      DamagedData,
      "the checkpoint's vnmse has ",
      vnmse.size(),
      " values, expected 2");
  constexpr double kMostSeconds = 1e9;
  ABT_CHECK(
      seconds >= 0 && seconds < kMostSeconds,
      DamagedData,
      "the checkpoint's value 'seconds': expected 0 to ",
      kMostSeconds,
      ", got ",
      seconds);
  costs_before_ = {costs[0], costs[1], costs[2]};
  vnmse_before_ = {vnmse[0], vnmse[1]};
  metrics_seconds_ = metrics;
  svd_before_ = svd;
  waited_before_ = waited;
  watch_ = Stopwatch(seconds);
  meter_.restore(from_json(traffic));
  by_phase_.full_phase = phases[0];
  by_phase_.ab_phase = phases[1];
  by_phase_.switches = phases[2];
}

void Trainer::archive(state::Archive& archive) {
  archive_figures(archive);
  for (const nn::NamedBuffer& b : model_->buffers()) {
    archive.tensor("buffer." + b.name, *b.tensor, state::Share::Own);
  }
  method_->archive(archive);
  if (balancer_) {
    bind_order();
    balancer_->archive(archive);
  }
}

std::int64_t Trainer::resume(const run_folder::Checkpoint& from) {
  try {
    return resume_from(from);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::DamagedData) {
      throw;
    }
    throw Error(ErrorKind::DamagedData, str(from.folder, ": ", error.what()));
  }
}

std::int64_t Trainer::resume_from(const run_folder::Checkpoint& from) {
  const std::int64_t t = first_step(in_);
  if (from.workers() == world_->size()) {
    ABT_CHECK(
        from.run_steps == length_.steps,
        DamagedData,
        "expected the checkpoint of a run of ",
        length_.steps,
        " steps, got one of ",
        from.run_steps);
    state::State state = run_folder::load_state(from, world_->rank());
    state::Archive archive = state::Archive::loading(state);
    this->archive(archive);
    ABT_CHECK(
        !balancer_ ||
            balancer_->is_at(t / length_.steps_per_epoch, place_in_order(t)),
        DamagedData,
        "the checkpoint's order of examples does not match step ",
        t);
    saved_at_ = t;
  } else {
    regroup(from, t);
  }
  if (in_.log != nullptr) {
    const std::string& source =
        from.copy_of.empty() ? from.folder : from.copy_of;
    in_.log->set_seconds(watch_.seconds());
    in_.log->event(
        "resume",
        t,
        {{"checkpoint", source},
         {"checkpoint_step", from.step},
         {"workers_before", from.workers()}});
    in_.log->log().info(
        "resuming from ",
        source,
        from.workers() == world_->size()
            ? std::string()
            : str(", saved by ", from.workers(), " workers, at step ", t));
  }
  return t;
}

void Trainer::regroup(const run_folder::Checkpoint& from, std::int64_t t) {
  const at::NoGradGuard no_grad;
  std::vector<state::State> all;
  for (int worker = 0; worker < from.workers(); ++worker) {
    all.push_back(run_folder::load_state(from, worker));
  }
  const auto n = static_cast<double>(all.size());
  // Running statistics and bytes sent: the mean over the old workers.
  for (const nn::NamedBuffer& b : model_->buffers()) {
    at::Tensor mean = at::empty_like(*b.tensor).zero_();
    for (state::State& state : all) {
      at::Tensor one = at::empty_like(*b.tensor);
      state::Archive::loading(state).tensor(
          "buffer." + b.name, one, state::Share::Own);
      mean.add_(one);
    }
    b.tensor->copy_(mean.div_(n));
  }
  state::Archive first = state::Archive::loading(all.front());
  archive_figures(first);
  Scopes mean;
  for (state::State& state : all) {
    ordered_json traffic;
    state::Archive::loading(state).value("traffic", traffic);
    for (const auto& [scope, purposes] : from_json(traffic)) {
      for (std::size_t p = 0; p < purposes.size(); ++p) {
        mean[scope][p].bytes += purposes[p].bytes;
        mean[scope][p].calls += purposes[p].calls;
        mean[scope][p].seconds += purposes[p].seconds;
      }
    }
  }
  for (auto& [scope, purposes] : mean) {
    for (comm::Traffic& traffic : purposes) {
      traffic.bytes = std::llround(static_cast<double>(traffic.bytes) / n);
      traffic.calls = std::llround(static_cast<double>(traffic.calls) / n);
      traffic.seconds /= n;
    }
  }
  meter_.restore(mean);
  event_step_ = t;
  loss_sum_ = 0;
  loss_count_ = 0;

  std::vector<state::State> leads;
  for (std::size_t worker = 0; worker < all.size(); ++worker) {
    if (from.leads[worker] == static_cast<int>(worker)) {
      leads.push_back(std::move(all[worker]));
    }
  }
  count_switch([&] { method_->regroup(leads, t); });
  start_order(t);
}

bool Trainer::saves_after(std::int64_t t) const {
  if (!writer_ || t >= length_.steps) {
    return false;
  }
  const bool is_better = validation_ && *validation_ > best_;
  return is_better || (save_every_ > 0 && t % save_every_ == 0);
}

bool Trainer::save(std::int64_t t) {
  if (!writer_) {
    return false;
  }
  Stopwatch watch;
  meter_.settle(true);
  const double seconds_before = meter_.seconds();
  count_switch([&] {
    method_->settle();
    settle_order();
  });
  take_loss(loss_.flush());
  check("gradient norm", norm_.flush());
  // Parameters that the last update broke must not replace a good checkpoint.
  check_parameters(t, world_->rank(), method_->block());
  if (validation_) {
    best_ = std::max(best_, *validation_);
  }
  // Among workers that hold the same bits, the lowest rank stores them.
  int lead = world_->rank();
  if (method_->one_state(t)) {
    at::Tensor rank = at::empty({1}, at::kLong);
    *rank.data_ptr<std::int64_t>() = lead;
    method_->replicas().broadcast(rank, 0, comm::Purpose::Metrics).wait();
    lead = static_cast<int>(rank.item<std::int64_t>());
  }
  run_folder::Checkpoint about;
  about.step = t;
  about.run_steps = length_.steps;
  about.validation_accuracy = validation_;
  if (in_.log != nullptr) {
    about.metrics_bytes = in_.log->flush();
  }
  state::State state;
  state::Archive archive = state::Archive::saving(state);
  this->archive(archive);
  const bool saved = writer_->save(about, state, lead);
  if (saved) {
    saved_at_ = t;
  }
  if (in_.log != nullptr) {
    in_.log->event(
        "checkpoint", t, {{"saved", saved}, {"duration", watch.seconds()}});
  }
  meter_.settle(true);
  checkpoint_seconds_ += watch.seconds();
  event_seconds_ += watch.seconds();
  metrics_seconds_ += meter_.seconds() - seconds_before;
  return saved;
}

std::int64_t first_step(const TrainInputs& inputs) {
  if (inputs.resume == nullptr) {
    return 0;
  }
  const run_folder::Checkpoint& from = *inputs.resume;
  const config::RunOptions& options = inputs.options;
  if (from.workers() == options.workers || options.train.steps > 0) {
    return from.step;
  }
  // The same fraction of the run, whose steps are now larger or smaller.
  const RunLength length =
      config::run_length(options, inputs.dataset.train.size());
  return std::llround(
      static_cast<double>(from.step) * static_cast<double>(length.steps) /
      static_cast<double>(from.run_steps));
}

}  // namespace abtrain::train
