#include "train/session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/signals.h"
#include "base/socket.h"
#include "comm/groups.h"
#include "comm/run_workers.h"
#include "config/config.h"
#include "config/planned_sizes.h"
#include "device/devices.h"
#include "device/memory.h"
#include "device/tune.h"
#include "methods/ab/synchronize.h"
#include "methods/method_kind.h"
#include "optim/optimizer_kind.h"
#include "run_folder/run_lock.h"
#include "train/about_model.h"
#include "train/branch.h"
#include "train/core_use.h"
#include "train/disk_space.h"
#include "train/evaluate_run.h"
#include "train/resume.h"
#include "train/run_differences.h"
#include "train/setup.h"
#include "train/speeds.h"
#include "train/summary.h"
#include "train/trainer.h"
#include "train/workers/local_workers.h"
#include "weights/export.h"
#include "weights/initial_model.h"
#include "weights/model_file.h"
#include "weights/sparsity.h"

namespace abtrain::train {

namespace {

// How the run starts, as the process that writes the run folder decides.
struct Start {
  bool finished = false;  // nothing is left to do
  std::string from = {};  // folder of a checkpoint; empty: start fresh
  bool changes_length = false;
  bool branches = false;
  std::string branch_from = {};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Start, finished, from, changes_length, branches, branch_from)

// One training run, from the decision how to start to the report.
class Session {
 public:
  Session(
      const config::RunOptions& options, const SessionOptions& session, WorkerHost& host, Log& log)
      : options_(options),
        session_(session),
        host_(host),
        log_(log),
        group_size_(options.method.group_size),
        folder_((std::filesystem::path(options.output) / options.name).string()) {}

  std::string run() {
    try {
      return train();
    } catch (...) {
      if (run_log_) {
        host_.record(folder_, std::current_exception());
      }
      throw;
    }
  }

 private:
  std::string train();
  void doing(const std::string& what) {
    if (session_.watch != nullptr) {
      session_.watch->doing(what);
    }
  }
  void choose_start();
  void choose_forms();
  void open();
  void announce(int threads);
  TrainResult run_workers();
  TrainResult run_workers(Inheritance* inherited, std::optional<Survivor>* survivor);
  void take_over(const Loss& loss);
  void check_not_stopped(const TrainResult& result) const;
  std::string finish(const TrainResult& result);
  std::string report(const nlohmann::ordered_json& summary) const {
    return report_table(options_, summary, folder_, !session_.leaves_nothing);
  }

  config::RunOptions options_;
  const SessionOptions& session_;
  WorkerHost& host_;
  Log& log_;
  const std::optional<std::int64_t> group_size_;  // configured; options_ has the one in use
  const std::string folder_;
  std::optional<run_folder::RunLock> run_lock_;  // only in the process that writes
  bool finished_ = false;                        // before this session
  ResumeChoice resume_;
  Setup setup_;
  std::optional<run_folder::RunLog> run_log_;  // only in the process that writes
};

std::string Session::train() {
  choose_start();
  if (finished_) {
    if (!host_.writes()) {
      return {};
    }
    log_.info("{}: this run has finished; here is its report", folder_);
    return report(JsonObject::of_file(folder_ + "/summary.json").all());
  }
  choose_place(setup_, options_, host_, log_);
  choose_forms();
  host_.all_or_none([&] {
    prepare(
        setup_, options_, resume_.from.has_value(), host_,
        [this](const std::string& what) { doing(what); }, log_);
    if (resume_.from) {
      check_classes(resume_.from->folder, resume_.from->class_names, setup_.dataset);
    }
    if (resume_.changes_length) {
      check_longer(options_, *resume_.from, setup_.length, log_);
    } else if (resume_.branches) {
      check_branch(options_, *resume_.from, setup_.length, log_);
    }
  });
  const int threads = threads_per_worker(options_, host_.workers_on_machine);
  at::set_num_threads(threads);
  device::tune(setup_.device, !methods::kind_of(options_.method).factors_weights);
  if (options_.balance.measures) {
    doing("measuring the workers' speeds");
  }
  choose_speeds(options_, setup_, host_, resume_.from.has_value(), log_);
  open();
  announce(threads);
  doing("starting the workers");
  const TrainResult result = run_workers();
  log_.live("");
  check_not_stopped(result);
  return host_.writes() ? finish(result) : "";
}

// One process decides for all, since files may change while others look.
void Session::choose_start() {
  doing("looking at " + folder_);
  if (host_.writes() && session_.resume != "none") {
    keep_branch_point(options_, folder_);
  }
  const auto is_finished = [&] {
    return has_finished(session_.resume, session_.overwrite, options_, folder_);
  };
  const Start start = host_.decide([&] {
    if (is_finished()) {
      return Start{.finished = true};
    }
    run_lock_.emplace(folder_, log_);
    // The process that held the lock may have finished the run.
    if (is_finished()) {
      run_lock_.reset();
      return Start{.finished = true};
    }
    resume_ = choose_resume(session_.resume, session_.overwrite, options_, folder_, log_);
    if (!resume_.from && options_.branch_from) {
      resume_.from = find_branch_point(options_, folder_, log_);
      resume_.branches = true;
    }
    return Start{
        .from = resume_.from ? resume_.from->folder : "",
        .changes_length = resume_.changes_length,
        .branches = resume_.branches,
        .branch_from = options_.branch_from.value_or("")};
  });
  finished_ = start.finished;
  resume_.changes_length = start.changes_length;
  resume_.branches = start.branches;
  if (!start.branch_from.empty()) {
    options_.branch_from = start.branch_from;
  }
  host_.all_or_none([&] {
    if (!host_.writes() && !start.from.empty()) {
      resume_.from = run_folder::read_checkpoint(start.from);
    }
  });
}

// Chooses the precision, and the number that all ranks of factors are multiples of. One process
// decides for all here too. A resumed run keeps the values that it began with.
void Session::choose_forms() {
  const auto [bf16, multiple] = host_.decide([&] {
    if (resume_.from) {
      take_recorded(options_, configuration_of(*resume_.from));
    }
    options_.train.precision = precision_on(options_.train, setup_.device);
    return std::pair(
        options_.train.precision == at::kBFloat16,
        config::rank_multiple(options_, setup_.device.is_cuda()));
  });
  options_.train.precision = bf16 ? at::kBFloat16 : at::kFloat;
  options_.method.rank.multiple = multiple;
}

void Session::open() {
  host_.all_or_none([&] {
    if (!host_.writes()) {
      return;
    }
    try {
      open_folder(options_, folder_, resume_, log_);
      run_log_.emplace(options_, folder_, log_, resume_.is_own ? resume_.from->metrics_bytes : 0);
    } catch (...) {
      // host_ itself can record failures only after join_folder().
      record_failure(folder_, std::current_exception(), 0, host_name());
      throw;
    }
    check_space(disk_use(options_, setup_.dataset, setup_.length), folder_, log_);
  });
  host_.join_folder(folder_);
}

void Session::announce(int threads) {
  // A launcher binds each of its processes to cores of its own.
  const bool shares = host_.workers_in_process > device::cpu_cores();
  const int cores = shares ? device::cpu_cores() : threads;
  log_.info(
      "{}{}{} on {}, {}{}{}{}, {}, {} of {} {} per worker{}", options_.workers,
      options_.workers == 1 ? " worker" : " workers",
      host_.workers_in_process < options_.workers ? ", one process each," : "", setup_.device.str(),
      shares ? "sharing " : "", cores, cores == 1 ? " core" : " cores", shares ? "" : " each",
      precision_text(options_.train, setup_.device),
      setup_.length.by_clock ? human_seconds(options_.train.seconds) + " in steps"
                             : formatted("{} steps", setup_.length.steps),
      options_.data.batch_size * options_.train.accumulate, data::examples_of(options_.data),
      options_.balance.is_on() ? " on average" : "");
}

TrainResult Session::run_workers() {
  bool goes_on = options_.on_lost_worker == config::OnLostWorker::Continue;
  if (goes_on) {
    const std::string why_not = host_.go_on_without_lost(setup_.back_end);
    goes_on = why_not.empty();
    if (!goes_on) {
      log_.warning("on_lost_worker: continue is not possible here, because {}", why_not);
    }
  }
  std::optional<Inheritance> left;
  for (;;) {
    std::optional<Survivor> survivor;
    try {
      return run_workers(left ? &*left : nullptr, goes_on ? &survivor : nullptr);
    } catch (const Error& error) {
      if ((!survivor && !left) || error.kind() != ErrorKind::PeerLost) {
        throw;
      }
      const Loss loss = host_.regroup(std::current_exception());
      take_over(loss);
      if (survivor) {
        left = Inheritance{std::move(*survivor), loss};
      } else {
        left->loss.keep(loss.left);  // more workers were lost before the run went on
      }
    }
  }
}

TrainResult Session::run_workers(Inheritance* inherited, std::optional<Survivor>* survivor) {
  device::CaptureTurn turn;
  const run_folder::CheckpointWriter::Options checkpoints{
      folder_, config::to_yaml(with_batches(options_)), options_.checkpoint.keep, setup_.model_file,
      setup_.dataset.class_names};
  if (inherited != nullptr) {  // surviving workers read the file again
    const std::string change = weights::change_of_model_file(setup_.model_file, options_);
    ABT_CHECK(change.empty(), Config, "{} and resume", change);
  }
  const bool keeps_base = config::keeps_base(options_);
  if (inherited != nullptr && keeps_base) {
    setup_.initial = weights::make_initial_model(options_, setup_.dataset);
  }
  const std::function<void(nn::Model&)> initialize = [&](nn::Model& model) {
    model.copy_from(*setup_.initial);
  };
  TrainResult result;
  const auto work = [&](comm::Communicator& world, at::Device device, comm::Control& control) {
    const bool first = world.rank() == host_.first_rank;
    const auto begun = [&] {
      setup_.initial.reset();  // all workers have copied it
      if (session_.watch != nullptr) {
        session_.watch->end();
      }
    };
    TrainResult done = train_worker(
        world, {.options = options_,
                .dataset = setup_.dataset,
                .validation = setup_.validation,
                .device = device,
                .log = world.rank() == 0 ? &*run_log_ : nullptr,
                .device_copies = setup_.device_copies.get(),
                .initialize = inherited == nullptr || keeps_base ? initialize : nullptr,
                .begun = first ? std::function<void()>(begun) : nullptr,
                .control = &control,
                .hosts = host_.hosts(),
                .turn = setup_.back_end == BackEnd::Local ? &turn : nullptr,
                .checkpoints = &checkpoints,
                .resume = resume_.from ? &*resume_.from : nullptr,
                .inherited = inherited,
                .survivor = survivor,
                .longer = resume_.changes_length,
                .branches = resume_.branches,
                .hooks = session_.hooks});
    if (first) {
      result = std::move(done);
    }
  };
  host_.run_workers(options_, setup_.back_end, setup_.device, work);
  return result;
}

// Adapts the configuration to the workers that are left, and hands the run folder to the new worker
// 0.
void Session::take_over(const Loss& loss) {
  const auto workers = static_cast<int>(loss.left.size());
  ABT_CHECK(
      workers >= options_.min_workers, PeerLost,
      "{}: {} left, and min_workers is {}; `--resume auto` continues from the last checkpoint",
      loss.text(), workers == 1 ? "1 worker is" : formatted("{} workers are", workers),
      options_.min_workers);
  options_.workers = workers;
  std::vector<double>& speeds = options_.balance.speeds;
  for (std::size_t i = 0; !speeds.empty() && i < loss.left.size(); ++i) {
    speeds[i] = speeds[static_cast<std::size_t>(loss.left[i])];  // `left` is ascending
  }
  speeds.resize(speeds.empty() ? 0 : loss.left.size());
  // A group size that no longer fits becomes auto, as when a launcher gives the number of workers.
  options_.method.group_size = group_size_;
  methods::fit_group_size(options_.method, workers);
  ABT_CHECK(
      !methods::kind_of(options_.method).factors_weights ||
          comm::fits(
              workers, comm::auto_group_size(workers), methods::has_one_role(options_.method)),
      PeerLost,
      "{}: one worker alone cannot train A and B; `--resume auto` continues from the last "
      "checkpoint",
      loss.text());
  setup_.length = config::run_length(options_, setup_.dataset.train.size());
  if (host_.writes() && !run_log_) {
    log_.set_level(LogLevel::Info);
    run_folder::break_run_lock(folder_);
    try {
      run_lock_.emplace(folder_, log_);
    } catch (const Error& error) {  // Error(Stopped) would mean a stop of all workers
      throw Error(ErrorKind::Io, error.what());
    }
    run_log_.emplace(options_, folder_, log_, -1);
  }
}

void Session::check_not_stopped(const TrainResult& result) const {
  if (!result.stopped) {
    return;
  }
  const int signal = StopSignals::requested();
  const std::string when = formatted(
      "stopped{} after step {}{}", signal != 0 ? formatted(" by {}", signal_name(signal)) : "",
      result.steps, setup_.length.by_clock ? "" : formatted(" of {}", setup_.length.steps));
  ABT_CHECK(result.saved, Io, "{}, but no checkpoint could be written", when);
  throw Error(
      ErrorKind::Stopped, formatted(
                              "{}, everything is saved in {}/checkpoints; the same command with "
                              "--resume auto continues it",
                              when, folder_));
}

std::string Session::finish(const TrainResult& result) {
  run_folder::check_run_lock();
  const weights::About about = about_model(options_, setup_.dataset, setup_.model_file);
  save_model_of_run(folder_, *result.model, {.names = options_.model.names, .about = about});
  nlohmann::ordered_json summary = summarize(options_, result, host_.hosts());
  if (optim::makes_sparse(options_.optimizer)) {
    weights::save_model(
        folder_ + "/model.sparse.safetensors", *result.model,
        {.names = options_.model.names, .sparse = true, .about = about});
    summary["sparsity"] = weights::sparsity_json(*result.model, folder_);
  }
  summary["damaged_images"] = damaged_images(setup_.dataset);
  const auto use = core_use(
      mapped(result.workers, &WorkerFigures::cores), host_.hosts(),
      threads_per_worker(options_, host_.workers_on_machine), host_.workers_in_process);
  summary["core_share"] = use ? nlohmann::ordered_json(use->share) : nlohmann::ordered_json();
  summary["beside_others"] = use && use->beside_others();
  if (use && use->beside_others()) {
    log_.warning("{}", use->warning());
  }
  run_log_->finish();
  run_folder::check_run_lock();
  atomic_write(folder_ + "/summary.json", json_text(summary));
  return report(summary);
}

}  // namespace

std::string train(const config::RunOptions& options, const SessionOptions& session, Log& log) {
  device::keep_freed_memory();
  LocalWorkers threads(static_cast<int>(options.workers));
  WorkerHost& host = session.host != nullptr ? *session.host : threads;
  return Session(options, session, host, log).run();
}

}  // namespace abtrain::train
