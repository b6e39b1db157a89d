// Saves and resumes the state of a run, also with another number of workers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file_mapping.h"
#include "base/interval.h"
#include "comm/share.h"
#include "methods/method_kind.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace abtrain::train {

void Trainer::archive_loop(state::Archive& archive) {
  ledger_.archive(archive, counts());
  if (archive.is_loading() && in_.log != nullptr) {
    in_.log->set_seconds(ledger_.seconds());  // before the first event
  }
  progress_.archive(archive, ledger_.pause_seconds());
  if (options_.model.weights) {
    progress_.archive_before(archive);
  }
  archive_length(archive);
  archive_base(archive);
}

// A checkpoint does not hold the frozen parts of a model, only the hash of its initial state.
void Trainer::archive_base(state::Archive& archive) {
  if (model_->base().empty()) {
    return;
  }
  std::string base = model_->base();
  archive.value("base", base);
  ABT_CHECK(
      base == model_->base(), Config,
      "the run began with a base of the hash {}, but the one that its configuration describes has "
      "{}; expected the same model.weights",
      base, model_->base());
}

void Trainer::archive_length(state::Archive& archive) {
  if (!length_.by_clock) {
    return;
  }
  std::vector<double> plan = {
      static_cast<double>(length_.steps), static_cast<double>(length_.planned_at),
      length_.share_then};
  archive.value("length", plan);
  if (archive.is_loading()) {
    ABT_CHECK(
        plan.size() == 3 && plan[0] >= 1 && plan[0] <= kMaxSteps && plan[1] >= 0 &&
            plan[1] <= plan[0] && plan[2] >= 0 && plan[2] <= 1,
        DamagedData,
        "the checkpoint's value 'length': expected the steps of the run, and the step and the "
        "share of their last estimate");
    length_.steps = std::llround(plan[0]);
    length_.planned_at = std::llround(plan[1]);
    length_.share_then = plan[2];
    schedule_.run = length_;
  }
  method_->archive_plan(archive);
}

void Trainer::archive(state::Archive& archive) {
  archive_loop(archive);
  archive_model(archive);
  order_.archive(archive, *method_);
}

void Trainer::archive_model(state::Archive& archive) {
  for (const nn::NamedBuffer& b : model_->buffers()) {
    archive.tensor("buffer." + b.name, *b.tensor, state::Owner::Worker);
  }
  method_->archive(archive);
}

std::int64_t Trainer::resume(const run_folder::Checkpoint& from) {
  try {
    return resume_from(from);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::DamagedData) {
      throw;
    }
    throw Error(ErrorKind::DamagedData, formatted("{}: {}", from.folder, error.what()));
  }
}

std::int64_t Trainer::resume_from(const run_folder::Checkpoint& from) {
  const std::int64_t t = first_step(in_);
  if (from.workers() == world_->size()) {
    ABT_CHECK(
        from.run_steps == length_.steps || length_.by_clock || in_.longer || in_.branches, Config,
        "the checkpoint's run had {} steps, but with the data of {} training examples it has {}: "
        "the data set has another size now",
        from.run_steps, in_.dataset.train.size(), length_.steps);
    state::State state = run_folder::load_state(from, world_->rank());
    state::Archive archive = state::Archive::loading(state);
    this->archive(archive);
    ABT_CHECK(
        order_.is_at(t), DamagedData, "the checkpoint's order of examples does not match step {}",
        t);
    if (in_.checkpoints != nullptr && is_own(in_.checkpoints->run_folder, from)) {
      progress_.saved_at = t;
    }
    if (t == from.run_steps && t < length_.steps) {
      // The earlier run ended here, so an event (a synchronization, ...) that this longer run has
      // after step t has not happened yet.
      ledger_.count(&TrafficSplit::switches, [&] {
        method_->after_step(t);
        order_.bind(*method_);
      });
    }
  } else {
    regroup(from, t);
  }
  if (in_.log != nullptr) {
    in_.log->set_seconds(ledger_.seconds());
    in_.log->event(
        "resume", t,
        {{"checkpoint", from.folder},
         {"checkpoint_step", from.step},
         {"workers_before", from.workers()}});
    in_.log->log().info(
        "{} from {}{}", in_.branches ? "starting" : "resuming", from.folder,
        from.workers() == world_->size()
            ? ""
            : formatted(", saved by {} workers, at step {}", from.workers(), t));
  }
  return t;
}

void Trainer::regroup(const run_folder::Checkpoint& from, std::int64_t t) {
  std::vector<state::State> all;
  for (int worker = 0; worker < from.workers(); ++worker) {
    all.push_back(run_folder::load_state(from, worker));
  }
  average_buffers(all);
  state::Archive first = state::Archive::loading(all.front());
  archive_loop(first);
  ledger_.average(all);
  std::vector<state::State> leads;
  for (std::size_t worker = 0; worker < all.size(); ++worker) {
    if (from.leads[worker] == static_cast<int>(worker)) {
      leads.push_back(std::move(all[worker]));
    }
  }
  regroup(leads, t);
}

void Trainer::average_buffers(std::vector<state::State>& all) {
  const at::NoGradGuard no_grad;
  for (const nn::NamedBuffer& b : model_->buffers()) {
    // Fixed buffers are equal everywhere; a mean would round them.
    const std::size_t count = b.is_fixed ? 1 : all.size();
    at::Tensor mean = at::empty_like(*b.tensor).zero_();
    for (std::size_t i = 0; i < count; ++i) {
      at::Tensor one = at::empty_like(*b.tensor);
      state::Archive::loading(all[i]).tensor("buffer." + b.name, one, state::Owner::Worker);
      mean.add_(one);
    }
    b.tensor->copy_(mean.div_(static_cast<double>(count)));
  }
}

void Trainer::regroup(std::vector<state::State>& old, std::int64_t t) {
  progress_.begin_window(t, ledger_.train_seconds());
  ledger_.count(&TrafficSplit::switches, [&] { method_->regroup(old, t); });
  order_.start(t, *method_);
}

std::optional<Survivor> Trainer::survive() {
  if (progress_.done < 0) {
    return std::nullopt;
  }
  method_->abandon();
  const methods::Stage stage = method_->now();
  Survivor own{
      {.steps = progress_.updated,
       .agreed = progress_.finished ? length_.steps + 1 : method_->agreed_after(progress_.done),
       .group = stage.one_state ? world_->rank() / stage.replicas->size() : world_->rank(),
       .run_steps = length_.steps,
       .losses = in_.inherited != nullptr ? in_.inherited->losses + 1 : 0}};
  state::Archive archive = state::Archive::saving(own.state);
  archive_loop(archive);
  archive_model(archive);
  return own;
}

std::int64_t Trainer::inherit(Inheritance& from) {
  const std::int64_t t = first_step(in_);
  state::Archive own = state::Archive::loading(from.own.state);
  archive_loop(own);
  // Some workers may have missed the last validation, or the last estimate of a run by the clock.
  // All take the values of one state, so that they save and end at the same steps.
  state::Archive common = state::Archive::loading(from.states.front());
  common.value("best", progress_.best);
  archive_length(common);
  average_buffers(from.states);
  regroup(from.states, t);
  from.states.clear();  // frees the memory of the old models
  from.own.state = {};
  const double seconds = from.loss.since.seconds();
  ledger_.add_waiting(seconds);
  if (in_.log != nullptr) {
    in_.log->set_seconds(ledger_.seconds());
    in_.log->event(
        "lost", t,
        {{"lost", from.loss.lost()},
         {"workers_before", from.loss.before.size()},
         {"workers", world_->size()},
         {"duration", seconds}});
    in_.log->log().warning(
        "{}; {} go{} on from step {}, {} later", from.loss.text(),
        world_->size() == 1 ? "one worker" : formatted("{} workers", world_->size()),
        world_->size() == 1 ? "es" : "", t, human_seconds(seconds));
  }
  return t;
}

std::unique_ptr<nn::Model> Trainer::model_of_checkpoint() {
  world_->barrier();
  ledger_.start();
  const std::int64_t t = resume(*in_.resume);
  evaluator_.merge(*method_, t, /*is_final=*/false);
  return evaluator_.take();
}

void Trainer::branch(std::int64_t t) {
  // `best` refers to this run folder, which starts with this checkpoint.
  progress_.best = Progress::kNone;
  progress_.validation = in_.resume->validation_accuracy;
  save(t);
  progress_.validation.reset();
}

bool Trainer::saves_after(std::int64_t t) {
  if (!writer_) {
    return false;
  }
  const bool is_better = progress_.validation && *progress_.validation > progress_.best;
  const bool is_due = saves_.is_due(t, length_);
  if (t < length_.steps) {
    return is_better || is_due;
  }
  return saves_.steps() > 0 && !length_.by_clock &&
         methods::kind_of(options_.method).timeline(options_.method, length_).goes_on;
}

bool Trainer::save(std::int64_t t) {
  if (!writer_) {
    return false;
  }
  const Ledger::Pause pause = this->pause();
  check_sizes_of_mapped_files();
  ledger_.count(&TrafficSplit::switches, [&] {
    method_->settle();
    order_.settle();
  });
  take_loss(loss_.flush());
  check("gradient norm", norm_.flush());
  // Parameters that the last update broke must not replace a good checkpoint.
  check_parameters(t, world_->rank(), method_->block());
  check_buffers(t, world_->rank(), *model_);
  if (progress_.validation) {
    progress_.best = std::max(progress_.best, *progress_.validation);
  }
  // Among workers with bit-identical states, the one with the lowest rank stores the state.
  std::int64_t lead = world_->rank();
  const methods::Stage stage = method_->now();
  if (stage.one_state) {
    comm::share_over (*stage.replicas)(&lead, sizeof(lead));
  }
  const run_folder::Checkpoint about{
      .step = t,
      .run_steps = length_.steps,
      .validation_accuracy = progress_.validation,
      .metrics_bytes = in_.log != nullptr ? in_.log->flush() : 0};
  state::State state;
  state::Archive archive = state::Archive::saving(state);
  this->archive(archive);
  const bool saved = writer_->save(about, state, static_cast<int>(lead));
  if (saved) {
    progress_.saved_at = t;
  }
  if (in_.log != nullptr) {
    in_.log->event("checkpoint", t, {{"saved", saved}, {"duration", pause.watch.seconds()}});
  }
  ledger_.end_pause(pause, &TimeSplit::checkpoint);
  return saved;
}

std::int64_t first_step(const TrainInputs& inputs) {
  const config::RunOptions& options = inputs.options;
  std::int64_t steps = 0;
  std::int64_t run_steps = 0;
  if (inputs.inherited != nullptr) {
    steps = inputs.inherited->steps;
    run_steps = inputs.inherited->run_steps;
  } else if (inputs.resume != nullptr) {
    steps = inputs.resume->step;
    run_steps = inputs.resume->run_steps;
    if (inputs.resume->workers() == options.workers) {
      return steps;
    }
  }
  if (steps == 0 || options.train.steps > 0 || options.train.seconds > 0) {
    return steps;
  }
  // Keeps the fraction of the run that is done: a step now has more or fewer examples.
  const RunLength length = config::run_length(options, inputs.dataset.train.size());
  return std::llround(
      static_cast<double>(steps) * static_cast<double>(length.steps) /
      static_cast<double>(run_steps));
}

}  // namespace abtrain::train
