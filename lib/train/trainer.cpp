#include "train/trainer.h"

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
#include "train/norm_statistics.h"
#include "train/setup.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;

// The interval in steps, at least one; 0: never.
std::int64_t interval(const Duration& every, const RunLength& length) {
  return every.value > 0 ? std::max<std::int64_t>(1, every.in_steps(length)) : 0;
}

}  // namespace

Trainer::Trainer(comm::Communicator& world, const TrainInputs& inputs)
    : in_(inputs),
      options_(inputs.options),
      world_(comm::metered(world, "world", ledger_.meter())),
      length_(config::run_length(options_, in_.dataset.train.size())),
      all_batches_(config::batches_of(options_)),
      model_(nn::make_model(options_.model, in_.dataset)),
      merged_(nn::make_model(options_.model, in_.dataset)),
      optimizer_(optim::make_optimizer(options_.optimizer)),
      schedule_(options_.schedule, options_.optimizer.lr, length_),
      recorder_(in_.log),
      augment_(options_.data, in_.dataset, options_.seed),
      order_(make_order_of_run(
          options_,
          {in_.dataset.train.size(), world_->rank(), world_->size(), options_.seed, all_batches_},
          balancer_)),
      examples_(examples_of(in_)),
      batches_(make_batches(
          examples_.train, options_.data, augment_, *order_,
          all_batches_[static_cast<std::size_t>(world_->rank())],
          first_step(inputs) * options_.train.accumulate, in_.device)),
      evaluate_every_(interval(options_.evaluate.every, length_)),
      save_every_(interval(options_.checkpoint.every, length_)),
      // The first multiple of log_every that makes a window.
      compare_every_(
          (SlowWatch::kSteps - 1) / options_.train.log_every * options_.train.log_every +
          options_.train.log_every),
      slow_watch_(in_.hooks.slow_window) {
  if (in_.initialize) {
    in_.initialize(*model_);
  } else {
    model_->initialize(options_.model.init, options_.seed);
  }
  model_->to(in_.device);
  const at::ScalarType precision = precision_on(options_.train, in_.device);
  model_->compute_in({precision});
  merged_->compute_in({precision});
  optimizer_->compute_in(precision);
  if (in_.checkpoints != nullptr) {
    writer_.emplace(
        *in_.checkpoints, *world_, in_.log != nullptr ? &in_.log->log() : nullptr, in_.hooks.save);
  }
  method_ = methods::kind_of(options_.method)
                .make(
                    {*model_, *world_, *optimizer_, schedule_, options_.method, options_.reducer,
                     length_, options_.seed, recorder_, all_batches_});
  if (balancer_ && !balancer_->takes_examples()) {
    // The training step handles the gradients of single examples itself.
    method_->watch_gradients([this](const at::Tensor& all, std::int64_t begin, std::int64_t count) {
      balancer_->see(all, begin, count);
    });
  }
  step_.emplace(TrainingStep::Parts{
      in_, length_.steps, *world_, *model_, *method_, *optimizer_, *batches_,
      balancer_ && balancer_->takes_examples() ? &*balancer_ : nullptr});
}

void Trainer::take_loss(const std::optional<Readback::Reading>& loss) {
  check("loss", loss);
  if (loss) {
    last_loss_ = loss->value;
    loss_sum_ += loss->value;
    ++loss_count_;
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
    take_loss(loss_.exchange(t, step_->forward_backward(t)));
    method_->reduce_gradients(t);
    if (balancer_ && !balancer_->takes_examples()) {
      balancer_->step(method_->block().gradients());
    }
  });
  rate_ = method_->learning_rate(t);
  step_->optimize(
      rate_, [&](const at::Tensor& norm) { check("gradient norm", norm_.exchange(t, norm)); });
  updated_ = t + 1;
  if (method_->moves_after(t + 1)) {
    step_->release();
  }
  ledger_.count(&TrafficSplit::switches, [&] {
    method_->after_step(t + 1);
    done_ = t + 1;
    bind_order();
  });
  if (in_.log != nullptr) {
    log_step(t, phase);
  }
  ledger_.meter().settle(false);
  if ((t + 1) % compare_every_ == 0) {
    compare_workers(t + 1);
  }
  const std::int64_t every = options_.train.check_replicas;
  // Replicas that train on their own are compared when they next agree.
  replicas_due_ = replicas_due_ || (every > 0 && (t + 1) % every == 0);
  if (replicas_due_ && method_->replicas_agree(t + 1)) {
    method_->check_replicas(t + 1);
    replicas_due_ = false;
  }
}

void Trainer::log_step(std::int64_t t, methods::Phase phase) {
  const bool is_text = in_.dataset.context > 0;
  const auto count = static_cast<double>(
      options_.data.batch_size * options_.train.accumulate * world_->size() *
      (is_text ? in_.dataset.context : 1));
  in_.log->progress(
      t + 1, length_.steps, methods::name_of(phase), last_loss_,
      count * static_cast<double>(t + 1) / ledger_.train_seconds(),
      is_text ? "tokens" : data::examples_of(options_.data));
  const bool due = (t + 1) % options_.train.log_every == 0;
  if (loss_count_ == 0 || (!due && t + 1 != length_.steps)) {
    return;
  }
  in_.log->event(
      "step", t + 1,
      {{"phase", methods::name_of(phase)},
       {"loss", loss_sum_ / static_cast<double>(loss_count_)},
       {"lr", rate_},
       {is_text ? "tokens_per_second" : "images_per_second",
        count * static_cast<double>(t + 1 - event_step_) /
            (ledger_.train_seconds() - event_seconds_)},
       {"bytes_per_worker", ledger_.meter().training_bytes()}});
  loss_sum_ = 0;
  loss_count_ = 0;
  event_step_ = t + 1;
  event_seconds_ = ledger_.train_seconds();
}

// All workers post after the same steps, and none waits for another's.
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

// The batches follow from seed, step and worker alone, and training keeps its
// own loader, so that it goes on to the same bits.
void Trainer::renew_statistics(nn::Model& model, std::int64_t t, comm::Purpose purpose) {
  if (options_.evaluate.norm_batches == 0 || model.buffers().empty()) {
    return;
  }
  // A shuffled epoch of number t, whatever the order of the run.
  const auto order =
      data::make_shuffle({in_.dataset.train.size(), world_->rank(), world_->size(), options_.seed});
  const auto batches = make_batches(
      examples_.train, options_.data, augment_, *order, options_.data.batch_size,
      t * data::full_batches(*order, options_.data.batch_size), in_.device);
  collect_statistics(model, *batches, options_.evaluate.norm_batches, *world_, purpose);
}

Ledger::Pause Trainer::pause() {
  device::synchronize(in_.device);
  world_->barrier();
  return ledger_.begin_pause();
}

Score Trainer::evaluate_now(std::int64_t t, bool last) {
  const Ledger::Pause pause = this->pause();
  const double trained = ledger_.train_seconds();
  method_->merge_into(*merged_);
  if (!last) {  // the final model has its own statistics already
    renew_statistics(*merged_, t, comm::Purpose::Metrics);
  }
  const auto score = [&](nn::Model& model, const ExampleSource& examples, int group_size,
                         double label_smoothing = 0) {
    return evaluate(
        model, examples, augment_, options_.evaluate.batch_size, group_size, in_.device, *world_,
        label_smoothing);
  };
  const Score test = score(*merged_, examples_.test, world_->size()).all;
  const auto check_loss = [&](const char* what, double loss) {
    check(what, Readback::Reading{t - 1, loss});
  };
  check_loss("test loss", test.loss);
  // Workers may send different amounts: their mean, as in summary.json.
  const auto sent = comm::gather_values(*world_, ledger_.meter().training_bytes());
  const double bytes =
      std::accumulate(sent.begin(), sent.end(), 0.0) / static_cast<double>(sent.size());
  ordered_json fields = score_json(test);
  fields.update(ordered_json{
      {"bytes_per_worker", std::llround(bytes)}, {"train_seconds", trained}, {"final", last}});
  if (options_.evaluate.train) {
    const Score train =
        score(*merged_, examples_.train, world_->size(), options_.train.label_smoothing).all;
    train_loss_ = train.loss + penalty(*merged_, options_.optimizer);
    fields["train_loss"] = *train_loss_;
    check_loss(
        formatted("loss over the training {}", data::examples_of(options_.data)).c_str(),
        *train_loss_);
  }
  if (in_.validation.size() > 0) {
    const Score held = score(*merged_, examples_.validation, world_->size()).all;
    fields.update(score_json(held, "validation_"));
    check_loss("validation loss", held.loss);
    validation_ = held.quality();
  }
  const methods::Stage stage = method_->now();
  if (options_.evaluate.groups && !last && stage.phase == methods::Phase::Ab) {
    ordered_json groups = ordered_json::array();
    for (const Score& s : score(*model_, examples_.test, stage.replicas->size()).groups) {
      groups.push_back(s.is_text() ? s.bits_per_byte() : s.accuracy);
    }
    fields[test.is_text() ? "group_bits_per_byte" : "group_accuracy"] = groups;
  }
  // It shares tensors with the trained model, which frees dense weights when it
  // factors them.
  for (at::Tensor* const tensor : merged_->tensors()) {
    tensor->reset();
  }
  ledger_.end_pause(pause, &TimeSplit::evaluate);
  if (in_.log != nullptr) {
    in_.log->event("evaluate", t, fields);
    in_.log->log().info(
        "step {}/{}: {}{}, {} sent per worker, {}", t, length_.steps, score_text(test),
        train_loss_ ? formatted(", train loss {:.6f}", *train_loss_) : "", human_bytes(bytes),
        human_seconds(trained));
    if (!last && in_.control != nullptr) {
      log_workers(t, in_.control->spent().workers);
    }
  }
  return test;
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
    start_order(0);
  }
  if (in_.log != nullptr && options_.balance.is_on()) {
    in_.log->event("balance", t, {{"batches", all_batches_}, {"speeds", options_.balance.speeds}});
  }
  if (in_.begun) {
    in_.begun();
  }
  std::vector<double> step_seconds;
  Stopwatch step_watch;
  updated_ = t;
  done_ = t;
  if (in_.branches) {
    branch(t);
  }
  for (; t < length_.steps; ++t) {
    if (in_.control != nullptr && in_.control->stop_before(world_->rank(), t)) {
      return {.steps = t, .stopped = true, .saved = saved_at_ == t || save(t)};
    }
    step(t);
    if (evaluate_every_ > 0 && (t + 1) % evaluate_every_ == 0 && t + 1 < length_.steps) {
      evaluate_now(t + 1, false);
    }
    if (saves_after(t + 1)) {
      save(t + 1);
    }
    validation_.reset();
    if (in_.time_steps) {
      step_seconds.push_back(step_watch.restart());
    }
  }
  take_loss(loss_.flush());
  check("gradient norm", norm_.flush());
  check_sizes_of_mapped_files();
  check_parameters(length_.steps, world_->rank(), method_->block());
  step_->release();
  ledger_.count(&TrafficSplit::switches, [&] {
    settle_order();
    method_->finish(length_.steps);
    finished_ = true;
    renew_statistics(*model_, length_.steps, comm::Purpose::Sync);
  });
  device::synchronize(in_.device);
  ledger_.end();

  const Score test = evaluate_now(length_.steps, true);
  const auto trained = static_cast<double>(method_->block().numel());
  auto workers = comm::gather_values(*world_, ledger_.figures(counts(), trained));
  log_workers(length_.steps, mapped(workers, &WorkerFigures::seconds));
  return {
      .model = std::move(model_),
      .test = test,
      .train_loss = train_loss_,
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
  // On streams of their own, workers that share a GPU do not wait for each
  // other's work.
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
  std::vector<TrainResult> results(static_cast<std::size_t>(options.workers));
  comm::run_workers(
      static_cast<int>(options.workers), options.train.timeout, [&](comm::Communicator& world) {
        results[static_cast<std::size_t>(world.rank())] = train_worker(world, inputs);
      });
  return results;
}

}  // namespace abtrain::train
