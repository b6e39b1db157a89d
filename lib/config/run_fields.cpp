#include <algorithm>
#include <functional>
#include <numeric>

#include "base/mapped.h"
#include "base/options.h"
#include "base/text.h"
#include "config/run_options.h"
#include "methods/method_kind.h"
#include "orders/order_kind.h"

namespace abtrain::config {
namespace {

Fields fields_of(TrainOptions& o) {
  Fields f;
  f.number(
       "epochs", o.epochs, above_to(0, kMaxSteps),
       "length of the run in passes over the training data")
      .free(MayChange::WhenLonger);
  f.integer(
       "steps", o.steps, between(0, kMaxSteps),
       "length of the run in steps; if above 0, overrides epochs")
      .free(MayChange::WhenLonger);
  f.number(
      "seconds", o.seconds, between(0, 1e8),
      "length of the run in seconds of training, without evaluations and checkpoints; if above 0, "
      "overrides steps and epochs (docs/methods.md)");
  f.choice<std::optional<at::ScalarType>>(
       "precision", o.precision,
       {{"auto", std::nullopt}, {"fp32", at::kFloat}, {"bf16", at::kBFloat16}},
       "precision of the layers' larger products; auto: bf16 on machines with instructions for it, "
       "else fp32")
      .free(MayChange::ToAuto);
  f.choice(
      "cuda_graphs", o.cuda_graphs, {{"auto", std::nullopt}, {"on", true}, {"off", false}},
      "run steps on a GPU as CUDA graphs; auto: if possible");
  f.integer("accumulate", o.accumulate, between(1, 1e6), "micro-batches per step")
      .free(MayChange::WithWorkers);
  f.number(
      "label_smoothing", o.label_smoothing, from_to_below(0, 1),
      "share of the target spread over all classes");
  f.number("clip_norm", o.clip_norm, between(0, kLargest), "largest gradient norm; 0: no limit");
  f.integer(
       "check_replicas", o.check_replicas, between(0, kMaxSteps),
       "steps between comparisons of the replicas' bits; 0: never")
      .free();
  f.integer("log_every", o.log_every, between(1, kMaxSteps), "steps between `step` events").free();
  f.flag(
       "tensorboard", o.tensorboard,
       "also write the content of metrics.jsonl as an events file for TensorBoard "
       "(docs/metrics.md)")
      .free();
  f.integer(
       "threads", o.threads, between(0, 4096),
       "cores per worker; 0: $OMP_NUM_THREADS, or else divided evenly")
      .free();
  f.number(
       "timeout", o.timeout, above_to(0, 1e7),
       "longest time that a collective may take, in seconds")
      .free();
  return f;
}

Fields fields_of(CheckpointOptions& o) {
  Fields f;
  f.duration(
       "every", o.every, between(0, kMaxSteps),
       "interval; the end of a run also gets one if a longer run could continue from it; 0: only "
       "when the run is stopped")
      .free();
  f.integer(
       "keep", o.keep, between(1, 1e6),
       "number of newest checkpoints to keep, besides the best one on held-out examples")
      .free();
  return f;
}

Fields fields_of(EvaluateOptions& o) {
  Fields f;
  f.duration("every", o.every, between(0, kMaxSteps), "interval; 0: only when the run ends").free();
  f.integer(
       "batch_size", o.batch_size, between(1, 1e6),
       "examples (images, windows of a text) at a time; for text, fewer if their logits would take "
       "more than 256 MB")
      .free();
  f.flag(
       "train", o.train,
       "also compute train_loss: the objective over all training examples, "
       "including weight decay of sgd or l1 of the adagrads (docs/metrics.md)")
      .free();
  f.integer(
       "norm_batches", o.norm_batches, between(0, 1e6),
       "batches of training examples per worker from which the running statistics of batch norms "
       "are recomputed before each evaluation of a merged model and for the final model; 0: the "
       "workers' statistics are averaged (docs/methods.md)")
      .free();
  return f;
}

}  // namespace

bool balances_examples(const RunOptions& o) {
  return orders::balances_examples(o.order, o.data.batch_size * o.train.accumulate);
}

bool trains_adapters(const RunOptions& o) {
  return methods::kind_of(o.method).factors_weights && methods::adapts(o.method);
}

bool keeps_base(const RunOptions& o) {
  return !o.model.frozen.empty() || trains_adapters(o);
}

std::vector<std::int64_t> batches_of(const RunOptions& o) {
  const auto count = static_cast<std::size_t>(o.workers);
  std::vector<std::int64_t> batches(count, o.data.batch_size);
  const std::vector<double>& speeds = o.balance.speeds;
  if (speeds.empty()) {
    return batches;
  }
  const double all = static_cast<double>(o.data.batch_size * o.workers);
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  std::vector<double> exact(count);
  std::int64_t left = o.data.batch_size * o.workers;
  for (std::size_t i = 0; i < count; ++i) {
    exact[i] = all * speeds[i] / sum;
    batches[i] = std::max<std::int64_t>(1, static_cast<std::int64_t>(exact[i]));
    left -= batches[i];
  }
  // The workers that lost most by rounding down get one more example each; among equals, the lower
  // worker ranks.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) {
    return exact[i] - static_cast<double>(batches[i]);
  });
  for (std::size_t k = 0; left > 0; ++k, --left) {
    ++batches[order[k % count]];
  }
  // If a worker's share was below one example, other workers get fewer examples.
  for (std::size_t k = 1; left < 0; ++k) {
    std::int64_t& batch = batches[order[count - 1 - (k - 1) % count]];
    if (batch > 1) {
      --batch;
      ++left;
    }
  }
  return batches;
}

std::string batches_text(const std::vector<std::int64_t>& batches) {
  if (std::ranges::count(batches, batches.front()) == std::ssize(batches)) {
    return formatted("{} each", batches.front());
  }
  return listed(mapped(batches, [](std::int64_t batch) { return std::to_string(batch); }));
}

Fields fields_of(RunOptions& o) {
  Fields f;
  f.folder_name("name", o.name, "name of the run folder, <output>/<name>").free();
  f.integer("seed", o.seed, "seed of all random numbers");
  f.integer(
       "workers", o.workers, between(1, 65536),
       "number of workers: threads, or processes under a launcher; default: 2 for AB-training in "
       "two groups, else 1")
      .free();
  f.numbers_or(
       "balance", {{"none", false}, {"auto", true}}, o.balance.measures, o.balance.speeds,
       above_to(0, 1e6),
       "speeds of the workers, in any unit, to which their batches are proportional "
       "(data.batch_size on average); auto: measured when the run starts (docs/hosts.md)")
      .free();
  f.choice(
       "device", o.device,
       {{"auto", device::DeviceChoice::Auto},
        {"cpu", device::DeviceChoice::Cpu},
        {"cuda", device::DeviceChoice::Cuda}},
       "where to compute")
      .free();
  f.choice(
       "comm", o.comm,
       {{"auto", std::nullopt},
        {"local", comm::BackEnd::Local},
        {"mpi", comm::BackEnd::Mpi},
        {"nccl", comm::BackEnd::Nccl}},
       "how workers communicate")
      .free();
  f.choice(
       "on_lost_worker", o.on_lost_worker,
       {{"stop", OnLostWorker::Stop}, {"continue", OnLostWorker::Continue}},
       "what happens when a worker is lost: the run ends, or the others continue, where MPI allows "
       "it (docs/failures.md)")
      .free();
  f.integer(
       "min_workers", o.min_workers, between(1, 65536),
       "with fewer workers left, a run ends even if on_lost_worker is continue")
      .free();
  f.path("output", o.output, "folder that holds the run folders").free();
  f.text_or(
      "branch_from", "none", o.branch_from,
      "another run, from whose checkpoint this one starts: RUN for the newest one, RUN@best or "
      "RUN@step-400 (docs/failures.md); the run folder records the step");
  f.section("data", data::fields_of(o.data), "the data set");
  f.section("model", nn::fields_of(o.model), "the network");
  f.section("method", methods::fields_of(o.method), "how workers cooperate");
  f.section("optimizer", optim::fields_of(o.optimizer), "the optimizer");
  f.section("schedule", optim::fields_of(o.schedule), "the learning rate");
  f.section("reducer", compress::fields_of(o.reducer), "the averaging of gradients");
  f.section("order", orders::fields_of(o.order), "the order of the examples");
  f.section("train", fields_of(o.train), "the training loop");
  f.section(
      "checkpoint", fields_of(o.checkpoint), "what a stopped run resumes from (docs/failures.md)");
  f.section("evaluate", fields_of(o.evaluate), "evaluation during the run");
  return f;
}

}  // namespace abtrain::config
