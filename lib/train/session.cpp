#include "train/session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/signals.h"
#include "comm/control/control.h"
#include "comm/run_workers.h"
#include "config/config.h"
#include "data/image_files.h"
#include "device/devices.h"
#include "device/memory.h"
#include "device/tune.h"
#include "run_folder/run_lock.h"
#include "train/autocast.h"
#include "train/local_workers.h"
#include "train/resume.h"
#include "train/setup.h"
#include "train/summary.h"
#include "train/trainer.h"
#include "weights/model_file.h"
#include "weights/sparsity.h"

namespace abtrain::train {

namespace {

// Count and paths of the damaged files of the data set.
nlohmann::ordered_json damaged_images(const data::Dataset& dataset) {
  std::int64_t count = 0;
  std::vector<std::string> paths;
  for (const data::Images* images : {&dataset.train, &dataset.test}) {
    if (images->files) {
      count += images->files->damaged();
      for (std::string& path : images->files->damaged_paths()) {
        paths.push_back(std::move(path));
      }
    }
  }
  std::ranges::sort(paths);
  return {{"count", count}, {"files", paths}};
}

SessionResult report(
    const config::RunOptions& options,
    const std::string& folder,
    const nlohmann::ordered_json& summary,
    const std::string& text) {
  return {folder, report_table(options, summary, folder), text};
}

SessionResult train_as(
    const config::RunOptions& configured,
    const SessionOptions& session,
    const std::string& folder,
    std::optional<run_folder::RunLock>& run_lock,
    Log& log) {
  Processes* processes = session.processes;
  const bool first = processes == nullptr || processes->first();
  const int workers = static_cast<int>(configured.workers);
  const int local_workers =
      processes == nullptr ? workers : processes->launch().local_size;
  const auto all_or_none = [&](const std::function<void()>& body) {
    if (processes == nullptr) {
      body();
    } else {
      processes->all_or_none(body);
    }
  };

  const auto doing = [&](const std::string& what) {
    if (session.watch != nullptr) {
      session.watch->doing(what);
    }
  };

  // One process decides for all, since files may change while others look.
  bool finished = false;
  ResumeChoice resume;
  doing("looking at " + folder);
  all_or_none([&] {
    if (first) {
      finished =
          has_finished(session.resume, session.overwrite, configured, folder);
      if (!finished) {
        run_lock.emplace(folder, log);
        resume = choose_resume(
            session.resume, session.overwrite, configured, folder, log);
      }
    }
  });
  if (processes != nullptr) {
    const std::string from = processes->share(
        finished      ? "finished"
        : resume.from ? resume.from->folder
                      : "");
    finished = from == "finished";
    all_or_none([&] {
      if (!first && !from.empty() && !finished) {
        resume.from = run_folder::read_checkpoint(from);
      }
    });
  }
  if (finished && !first) {
    return {};
  }
  if (finished) {
    log.info(folder, ": this run has finished; here is its report");
    const std::string path = folder + "/summary.json";
    const std::string text = read_file(path);
    return report(configured, folder, JsonObject(path, 1, text).all(), text);
  }

  Setup setup;
  choose_place(setup, configured, processes, log);
  all_or_none([&] {
    prepare(
        setup,
        configured,
        processes == nullptr ? nullptr : &processes->launch(),
        session.watch,
        log);
  });
  const config::RunOptions& options = setup.options;
  std::optional<run_folder::RunLog> run_log;
  all_or_none([&] {
    if (first) {
      open_folder(configured, folder, resume, log);
      run_log.emplace(
          configured,
          folder,
          log,
          resume.is_own ? resume.from->metrics_bytes : 0);
    }
  });
  if (processes != nullptr) {
    processes->set_folder(folder);
    all_or_none([&] {
      ABT_CHECK(
          std::filesystem::exists(folder + "/config.yaml"),
          Io,
          "there is no '",
          folder,
          "/config.yaml', which worker 0 wrote: `output` must be a "
          "folder that all hosts share");
    });
  }
  const int threads = threads_per_worker(options, local_workers);
  at::set_num_threads(threads);
  log.info(
      workers,
      workers == 1 ? " worker" : " workers",
      processes == nullptr ? "" : ", one process each,",
      " on ",
      setup.device.str(),
      ", ",
      threads,
      threads == 1 ? " core each, " : " cores each, ",
      setup.length.steps,
      " steps of ",
      options.data.batch_size * options.train.accumulate,
      " images per worker");

  device::tune(setup.device);
  device::CaptureTurn turn;
  const run_folder::CheckpointWriter::Place place{
      folder, config::to_yaml(configured), options.checkpoint.keep};
  TrainInputs inputs{options, setup.dataset, setup.validation, setup.device};
  inputs.initialise = [&](nn::Model& model) {
    setup.initial->copy_into(model);
  };
  inputs.device_copies = setup.device_copies.get();
  inputs.checkpoints = &place;
  inputs.turn = setup.back_end == BackEnd::Local ? &turn : nullptr;
  inputs.resume = resume.from ? &*resume.from : nullptr;
  inputs.hooks = session.hooks;
  doing("starting the workers");
  TrainResult result;
  const auto work = [&](comm::Communicator& world,
                        at::Device device,
                        comm::Control& control) {
    TrainInputs own = inputs;
    own.device = device;
    own.control = &control;
    own.log = world.rank() == 0 ? &*run_log : nullptr;
    if (session.watch != nullptr &&
        (own.log != nullptr || processes != nullptr)) {
      own.begun = [&] { session.watch->end(); };
    }
    TrainResult done = train_worker(world, own);
    if (own.log != nullptr || done.stopped) {
      const std::lock_guard lock(setup.mutex);
      result = std::move(done);
    }
  };
  if (processes == nullptr) {
    comm::LocalControl control(
        workers, [] { return StopSignals::requested() != 0; });
    run_local_workers(
        setup.back_end,
        workers,
        options.train.timeout,
        [&](int worker) { return device::pick_device(options.device, worker); },
        [&](comm::Communicator& world, at::Device device) {
          work(world, device, control);
        });
  } else {
    const auto world =
        processes->world(setup.back_end, setup.device, options.train.timeout);
    work(*world, setup.device, processes->control());
  }
  log.live("");
  if (result.stopped) {
    const int signal = StopSignals::requested();
    const std::string when =
        str("stopped",
            signal != 0 ? str(" by ", signal_name(signal)) : std::string(),
            " after step ",
            result.steps,
            " of ",
            setup.length.steps);
    ABT_CHECK(result.saved, Io, when, ", but no checkpoint could be written");
    throw Error(
        ErrorKind::Stopped,
        str(when,
            ", everything is saved in ",
            folder,
            "/checkpoints; the same command with --resume auto continues it"));
  }
  if (!first) {
    return {};
  }
  run_folder::check_run_lock(true);
  run_folder::return_checkpoint(folder);
  weights::save_model(
      folder + "/model.safetensors", *result.model, options.model.names);
  nlohmann::ordered_json summary = summarise(options, result);
  if (optim::makes_sparse(options.optimizer)) {
    weights::save_sparse_model(
        folder + "/model.sparse.safetensors",
        *result.model,
        options.model.names);
    summary["sparsity"] = weights::sparsity_json(*result.model, folder);
  }
  summary["damaged_images"] = damaged_images(setup.dataset);
  const std::string text = summary.dump(2) + "\n";
  run_folder::check_run_lock(true);
  atomic_write(folder + "/summary.json", text);
  return report(options, folder, summary, text);
}

}  // namespace

SessionResult train(
    const config::RunOptions& options,
    const SessionOptions& session,
    Log& log) {
  device::keep_freed_memory();
  const std::string folder =
      (std::filesystem::path(options.output) / options.name).string();
  std::optional<run_folder::RunLock> run_lock;
  if (session.processes != nullptr) {
    return train_as(options, session, folder, run_lock, log);
  }
  try {
    return train_as(options, session, folder, run_lock, log);
  } catch (const Error& error) {
    if (run_lock && (error.kind() == ErrorKind::Diverged ||
                     error.kind() == ErrorKind::PeerLost ||
                     error.kind() == ErrorKind::Io)) {
      record_failure(folder, error.exit_code(), error.what(), 0);
    }
    throw;
  }
}

std::string evaluate_run(
    const config::RunOptions& configured,
    const std::string& folder,
    const std::string& model_file,
    Log& log) {
  device::keep_freed_memory();
  const std::string path = weights::model_path(folder, model_file);
  const config::RunOptions options = with_decode_threads(configured, 1);
  const at::Device device = device::pick_device(options.device);
  const data::Dataset dataset = data::load_dataset(options.data, &log);
  std::unique_ptr<nn::Model> model =
      nn::make_model(options.model, config::input_shape(dataset));
  weights::load_model(path, *model);
  model->to(device);
  log.info("evaluating ", path, " on ", dataset.found_in);
  const data::Augment augment(options.data, dataset, options.seed);
  at::set_num_threads(threads_per_worker(options, 1));
  Score score;
  comm::run_workers(1, options.train.timeout, [&](comm::Communicator& world) {
    const Autocast autocast(options.train.precision, device.type());
    score = evaluate(
                *model,
                {dataset.test},
                augment,
                options.evaluate.batch_size,
                1,
                device,
                world)
                .all;
  });
  ABT_CHECK(
      std::isfinite(score.loss),
      Diverged,
      path,
      ": the loss over the test images is ",
      std::isnan(score.loss) ? std::string("nan") : str(score.loss));
  const nlohmann::ordered_json damaged = damaged_images(dataset);
  const nlohmann::ordered_json result = {
      {"accuracy", score.accuracy},
      {"loss", score.loss},
      {"images", dataset.test.size() - damaged["count"].get<std::int64_t>()},
      {"damaged_images", damaged},
      {"compression_ratio",
       static_cast<double>(model->dense_parameters()) /
           static_cast<double>(model->stored_parameters())},
      {"model", path}};
  return result.dump(2) + "\n";
}

}  // namespace abtrain::train
