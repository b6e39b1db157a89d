#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/file_mapping.h"
#include "base/mapped.h"
#include "comm/run_workers.h"
#include "comm/share.h"
#include "device/stream.h"
#include "methods/method_kind.h"
#include "train/batches.h"
#include "train/setup.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;

}  // namespace

Trainer::Trainer(comm::Communicator& world, const TrainInputs& inputs)
    : in_(inputs),
      options_(inputs.options),
      world_(comm::metered(world, "world", ledger_.meter())),
      length_(config::run_length(options_, in_.dataset.train.size())),
      all_batches_(config::batches_of(options_)),
      model_(nn::make_model(options_.model, in_.dataset)),
      optimizer_(optim::make_optimizer(options_.optimizer)),
      schedule_(options_.schedule, options_.optimizer.lr, length_),
      recorder_(in_.log),
      evaluator_(in_, *world_, precision_on(options_.train, in_.device)),
      order_(options_, length_, order_setting(), in_.device),
      batches_(make_batches(
          evaluator_.examples().train, evaluator_.augment(), order_.examples(),
          all_batches_[static_cast<std::size_t>(world_->rank())],
          first_step(inputs) * options_.train.accumulate, in_.device)),
      weights_(make_batch_weights(options_, in_.dataset.train, order_setting(), order_.examples())),
      evaluations_(options_.evaluate.every, length_),
      saves_(options_.checkpoint.every, length_),
      // The smallest multiple of log_every that is at least SlowWatch::kSteps.
      compare_every_(
          (SlowWatch::kSteps - 1) / options_.train.log_every * options_.train.log_every +
          options_.train.log_every),
      slow_watch_(in_.hooks.slow_window) {
  if (length_.by_clock) {
    clock_.emplace(options_.train.seconds);
  }
  if (in_.initialize) {
    in_.initialize(*model_);
  } else {
    model_->initialize(options_.model.init, options_.seed);
  }
  model_->to(in_.device);
  const at::ScalarType precision = precision_on(options_.train, in_.device);
  model_->compute_in({precision});
  optimizer_->compute_in(precision);
  if (in_.checkpoints != nullptr) {
    writer_.emplace(
        *in_.checkpoints, *world_, in_.log != nullptr ? &in_.log->log() : nullptr, in_.hooks.save);
  }
  method_ = methods::kind_of(options_.method)
                .make(
                    {*model_, *world_, *optimizer_, schedule_, options_.method, options_.reducer,
                     length_, options_.seed, recorder_, all_batches_});
  orders::Balancer* const balancer = order_.balancer();
  if (balancer != nullptr && !balancer->takes_examples()) {
    // The training step handles the gradients of single examples itself.
    method_->watch_gradients(
        [balancer](const at::Tensor& all, std::int64_t begin, std::int64_t count) {
          balancer->see(all, begin, count);
        });
  }
  step_.emplace(TrainingStep::Parts{
      in_, length_.steps, *world_, *model_, *method_, *optimizer_, *batches_, weights_.get(),
      balancer != nullptr && balancer->takes_examples() ? balancer : nullptr});
}

data::OrderSetting Trainer::order_setting() const {
  return {
      in_.dataset.train.size(),
      world_->rank(),
      world_->size(),
      options_.seed,
      all_batches_,
      options_.data.shards == data::Shards::ByClass
          ? data::by_class(in_.dataset.train, options_.seed)
          : std::vector<std::int64_t>()};
}

void Trainer::take_loss(const std::optional<Readback::Reading>& loss) {
  check("loss", loss);
  if (loss) {
    progress_.take_loss(loss->value);
  }
}

void Trainer::step(std::int64_t t) {
  if (in_.hooks.before_step) {
    in_.hooks.before_step(world_->rank(), t, *model_);
  }
  world_->check_peers();
  const methods::Phase phase = method_->now().phase;
  const auto account =
      phase == methods::Phase::Full ? &TrafficSplit::full_phase : &TrafficSplit::ab_phase;
  ledger_.count(account, [&] {  // the backward pass already sends
    const at::Tensor loss = step_->forward_backward(t);
    if (loss.defined()) {
      take_loss(loss_.exchange(t, loss));
    }
    method_->reduce_gradients(t);
    orders::Balancer* const balancer = order_.balancer();
    if (balancer != nullptr && !balancer->takes_examples()) {
      balancer->step(method_->block().gradients());
    }
  });
  progress_.rate = method_->learning_rate(t);
  step_->optimize(progress_.rate, [&](const at::Tensor& norm) {
    check("gradient norm", norm_.exchange(t, norm));
  });
  progress_.updated = t + 1;
  if (method_->moves_after(t + 1)) {
    step_->release();
  }
  const bool acts = clock_ && method_->acts_after(t + 1);
  meets_ = acts || (clock_ && method_->now().gradient_group == world_.get());
  const Stopwatch acting;
  ledger_.count(&TrafficSplit::switches, [&] {
    method_->after_step(t + 1);
    progress_.done = t + 1;
    order_.bind(*method_);
  });
  if (acts) {  // the minimum, because waiting for others only adds time
    act_seconds_ = std::min(act_seconds_.value_or(acting.seconds()), acting.seconds());
  }
  if (in_.log != nullptr) {
    log_step(t, phase);
  }
  ledger_.meter().settle(false);
  if ((t + 1) % compare_every_ == 0) {
    compare_workers(t + 1);
  }
  const std::int64_t every = options_.train.check_replicas;
  // Replicas that now train on their own are compared once they are equal again.
  replicas_due_ = replicas_due_ || (every > 0 && (t + 1) % every == 0);
  if (replicas_due_ && method_->replicas_agree(t + 1)) {
    method_->check_replicas(t + 1);
    replicas_due_ = false;
  }
}

double Trainer::items_per_step() const {
  return static_cast<double>(
      options_.data.batch_size * options_.train.accumulate * world_->size() *
      std::max<std::int64_t>(1, in_.dataset.context));
}

void Trainer::log_step(std::int64_t t, methods::Phase phase) {
  in_.log->progress(
      t + 1, length_.steps, methods::name_of(phase), progress_.last_loss,
      items_per_step() * static_cast<double>(t + 1) / ledger_.train_seconds(),
      in_.dataset.context > 0 ? "tokens" : data::examples_of(options_.data));
  window_phase_ = phase;
  if ((t + 1) % options_.train.log_every == 0 || t + 1 == length_.steps) {
    log_window(t + 1);
  }
}

void Trainer::log_window(std::int64_t steps) {
  if (in_.log == nullptr || progress_.loss_count == 0) {
    return;
  }
  in_.log->event(
      "step", steps,
      {{"phase", methods::name_of(window_phase_)},
       {"loss", progress_.loss_sum / static_cast<double>(progress_.loss_count)},
       {"lr", progress_.rate},
       {in_.dataset.context > 0 ? "tokens_per_second" : "images_per_second",
        items_per_step() * static_cast<double>(steps - progress_.event_step) /
            (ledger_.train_seconds() - progress_.event_seconds)},
       {"bytes_per_worker", ledger_.meter().training_bytes()}});
  progress_.begin_window(steps, ledger_.train_seconds());
}

void Trainer::agree_on_length(std::int64_t t) {
  const double seconds =
      in_.hooks.seconds_after ? in_.hooks.seconds_after(t) : ledger_.train_seconds();
  clock_->mark(t, seconds);
  if (!clock_->is_due(t, meets_, length_)) {
    return;
  }
  // A run ends in a synchronization, which takes about as long as the earlier synchronizations.
  StepClock::End end;
  if (!in_.hooks.seconds_after) {
    end = {act_seconds_.value_or(0), evaluator_.steps_of_renewal(*model_)};
  }
  StepClock::Estimate estimate = clock_->estimate(t, seconds, end);
  estimate.steps = std::max(estimate.steps, method_->fewest_steps(t));
  if (world_->size() > 1) {
    in_.control->share(world_->rank(), &estimate, sizeof(estimate), [&] { world_->check_peers(); });
  }
  clock_->agree(estimate);
  length_.plan(t, estimate.steps);
  schedule_.run = length_;
  if (t < length_.steps) {
    method_->replan(t);
  }
}

// All workers post their times after the same steps; none waits for another.
void Trainer::compare_workers(std::int64_t t) {
  if (in_.control == nullptr || world_->size() == 1) {
    return;
  }
  in_.control->post(world_->rank(), t, ledger_.spent(counts()));
  if (in_.log != nullptr) {
    if (const auto warning = slow_watch_.look(in_.control->spent(), in_.hosts)) {
      in_.log->log().warning("step {}: {}", t, *warning);
    }
  }
}

void Trainer::log_workers(std::int64_t t, const std::vector<TimeSplit>& spent) {
  if (in_.log == nullptr || spent.size() < 2) {
    return;
  }
  const Waiting waiting = find_waiting(spent);
  ordered_json fields;
  for (std::size_t i = 0; i < spent.size(); ++i) {
    const ordered_json one = times_json(spent, waiting, i);
    for (const auto& [key, seconds] : one.items()) {
      fields[key].push_back(seconds);
    }
  }
  in_.log->event("workers", t, fields);
}

Ledger::Pause Trainer::pause() {
  device::synchronize(in_.device);
  world_->barrier();
  return ledger_.begin_pause();
}

Evaluator::Result Trainer::evaluate_now(std::int64_t t, bool last) {
  const Ledger::Pause pause = this->pause();
  const double trained = ledger_.train_seconds();
  evaluator_.merge(*method_, t, last);
  const auto check_loss = [&](const char* what, double loss) {
    check(what, Readback::Reading{t - 1, loss});
  };
  Evaluator::Result result = evaluator_.scores(check_loss);
  evaluator_.forget();
  // Workers may send different amounts; this is their mean, as in summary.json.
  const auto sent = comm::gather_values(*world_, ledger_.meter().training_bytes());
  const double bytes =
      std::accumulate(sent.begin(), sent.end(), 0.0) / static_cast<double>(sent.size());
  const Score& test = result.test;
  ordered_json fields = score_json(test);
  fields.update(ordered_json{
      {"bytes_per_worker", std::llround(bytes)}, {"train_seconds", trained}, {"final", last}});
  if (result.train_loss) {
    fields["train_loss"] = *result.train_loss;
  }
  if (result.validation) {
    progress_.validation = result.validation->quality();
    fields.update(score_json(*result.validation, "validation_"));
  }
  ledger_.end_pause(pause, &TimeSplit::evaluate);
  if (in_.log != nullptr) {
    in_.log->event("evaluate", t, fields);
    in_.log->log().info(
        "step {}/{}: {}{}, {} sent per worker, {}", t, length_.steps, score_text(test),
        result.train_loss ? formatted(", train loss {:.6f}", *result.train_loss) : "",
        human_bytes(bytes), human_seconds(trained));
    if (!last && in_.control != nullptr) {
      log_workers(t, in_.control->spent().workers);
    }
  }
  return result;
}

TrainResult Trainer::run() {
  world_->barrier();
  ledger_.start();
  std::int64_t t = 0;
  if (in_.inherited != nullptr) {
    t = inherit(*in_.inherited);
  } else if (in_.resume != nullptr) {
    t = resume(*in_.resume);
  } else {
    ledger_.count(&TrafficSplit::switches, [&] { method_->start(); });
    order_.start(0, *method_);
  }
  if (in_.log != nullptr && options_.balance.is_on()) {
    in_.log->event("balance", t, {{"batches", all_batches_}, {"speeds", options_.balance.speeds}});
  }
  if (in_.begun) {
    in_.begun();
  }
  if (t == 0 && options_.model.weights && evaluations_.steps() > 0) {
    progress_.before = evaluate_now(0, false).test;
    progress_.validation.reset();
  }
  std::vector<double> step_seconds;
  Stopwatch step_watch;
  progress_.updated = t;
  progress_.done = t;
  evaluations_.begin(t, length_);
  saves_.begin(t, length_);
  if (clock_) {
    clock_->begin(t);
  }
  if (in_.branches && in_.inherited == nullptr) {
    branch(t);
  }
  for (; t < length_.steps; ++t) {
    if (in_.control != nullptr && in_.control->stop_before(world_->rank(), t)) {
      return {.steps = t, .stopped = true, .saved = progress_.saved_at == t || save(t)};
    }
    step(t);
    if (clock_) {
      agree_on_length(t + 1);
    }
    if (evaluations_.is_due(t + 1, length_) && t + 1 < length_.steps) {
      evaluate_now(t + 1, false);
    }
    if (saves_after(t + 1)) {
      save(t + 1);
    }
    progress_.validation.reset();
    if (in_.time_steps) {
      step_seconds.push_back(step_watch.restart());
    }
  }
  log_window(length_.steps);  // a run by the clock may end earlier than its last step expected
  take_loss(loss_.flush());
  check("gradient norm", norm_.flush());
  check_sizes_of_mapped_files();
  check_parameters(length_.steps, world_->rank(), method_->block());
  check_buffers(length_.steps, world_->rank(), *model_);
  step_->release();
  ledger_.count(&TrafficSplit::switches, [&] {
    order_.settle();
    method_->finish(length_.steps);
    progress_.finished = true;
    evaluator_.renew_statistics(*model_, length_.steps, comm::Purpose::Sync);
  });
  device::synchronize(in_.device);
  ledger_.end();

  const Evaluator::Result scores = evaluate_now(length_.steps, true);
  const auto trained = static_cast<double>(method_->block().numel());
  auto workers = comm::gather_values(*world_, ledger_.figures(counts(), trained));
  log_workers(length_.steps, mapped(workers, &WorkerFigures::seconds));
  return {
      .model = std::move(model_),
      .test = scores.test,
      .before = progress_.before,
      .train_loss = scores.train_loss,
      .steps = length_.steps,
      .step_seconds = std::move(step_seconds),
      .layers = method_->layers(),
      .workers = std::move(workers)};
}

WorkerFigures Trainer::counts() const {
  const compress::Costs costs = method_->costs();
  const run_folder::Recorder::Sums& sums = recorder_.sums();
  return {
      .seconds = {.svd = sums.svd, .data = batches_->waited()},
      .reducer = {costs.encode, costs.collective, costs.decode, sums.vnmse, sums.vnmse_count},
      .cores = step_->core_time()};
}

TrainResult train_worker(comm::Communicator& world, const TrainInputs& inputs) {
  // With a stream of its own, a worker that shares a GPU does not wait for the others' work.
  const device::OwnStream stream(inputs.device);
  if (inputs.inherited != nullptr) {
    share_states(world, *inputs.inherited);
  }
  Trainer trainer(world, inputs);
  try {
    return trainer.run();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::PeerLost && inputs.survivor != nullptr) {
      *inputs.survivor = trainer.survive();
    }
    throw;
  }
}

std::vector<TrainResult> train_threads(TrainInputs inputs) {
  const config::RunOptions& options = inputs.options;
  device::CaptureTurn turn;
  inputs.turn = &turn;
  comm::LocalControl control(static_cast<int>(options.workers), [] { return false; });
  if (inputs.control == nullptr && options.train.seconds > 0) {
    inputs.control = &control;
  }
  std::vector<TrainResult> results(static_cast<std::size_t>(options.workers));
  comm::run_workers(
      static_cast<int>(options.workers), options.train.timeout, [&](comm::Communicator& world) {
        results[static_cast<std::size_t>(world.rank())] = train_worker(world, inputs);
      });
  return results;
}

}  // namespace abtrain::train
