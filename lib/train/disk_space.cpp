#include "train/disk_space.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "comm/failure.h"
#include "comm/groups.h"
#include "compress/schemes.h"
#include "config/planned_sizes.h"
#include "methods/method_kind.h"
#include "optim/optimizer.h"
#include "run_folder/checkpoint.h"
#include "train/step_clock.h"

namespace abtrain::train {

namespace {

namespace fs = std::filesystem;

constexpr double kBytes = sizeof(float);  // per number (fp32)

// Count of the numbers in the states of all workers; a state that a group or all workers share
// counts once.
double numbers_of_state(
    const config::RunOptions& options, double dense, double stored, double moments) {
  const methods::MethodKind& kind = methods::kind_of(options.method);
  const bool has_residuals =
      compress::compresses(options.reducer) && compress::has_error_feedback(options.reducer);
  const double own = has_residuals ? dense : 0;
  const auto workers = static_cast<double>(options.workers);
  const double all_equal = dense * (1 + moments) + workers * own;
  if (!kind.changes_weights) {
    return all_equal;
  }
  if (kind.factors_weights) {
    // A group stores all factors, and for its trained ones also moments and the values at the last
    // synchronization.
    const auto size = options.method.group_size.value_or(
        comm::auto_group_size(static_cast<int>(options.workers)));
    const double trained = options.method.trains == methods::Trains::Both ? stored : stored / 2;
    const double of_group = stored + trained * (1 + moments);
    return std::max(all_equal, workers / static_cast<double>(size) * of_group);
  }
  // Workers' parameters differ between two averagings, so a checkpoint stores parameters and
  // moments of each worker. The last average and the outer step's state are stored once for all of
  // them.
  return workers * dense * (1 + moments) + dense * kind.copies(options.method);
}

// Number of steps between two saves; 0: none is planned.
std::int64_t steps_between(
    const config::RunOptions& options, const RunLength& length, bool validates) {
  const Duration& saves = options.checkpoint.every;
  const Duration& every = saves.value > 0 || !validates ? saves : options.evaluate.every;
  return Recurring(every, length).steps();
}

}  // namespace

DiskUse disk_use(
    const config::RunOptions& options, const data::Dataset& dataset, const RunLength& length) {
  const auto sizes = config::model_sizes(options, dataset);
  const auto dense = static_cast<double>(
      sizes ? sizes->sizes.parameters : nn::make_model(options.model, dataset)->dense_parameters());
  const double stored = sizes ? static_cast<double>(sizes->stored) : dense;
  const int moments = optim::make_optimizer(options.optimizer)->moments();
  DiskUse use{kBytes * stored, kBytes * numbers_of_state(options, dense, stored, moments)};
  const bool validates = options.data.validation > 0 || dataset.validation.size() > 0;
  if (const std::int64_t steps = steps_between(options, length, validates); steps > 0) {
    const std::int64_t best = validates ? 1 : 0;
    use.checkpoints = std::min(length.steps / steps, options.checkpoint.keep + best + 1);
  }
  return use;
}

void check_space(const DiskUse& use, const std::string& run_folder, Log& log) {
  std::error_code unknown;
  const fs::space_info space = fs::space(run_folder, unknown);
  if (unknown) {
    return;
  }
  // Existing checkpoints take no more space; the next one is written before an old one is removed.
  const std::int64_t there = std::ssize(run_folder::list_checkpoints(run_folder));
  const std::int64_t more =
      std::max(use.checkpoints - there, std::min<std::int64_t>(use.checkpoints, 1));
  const double needed = use.model + use.checkpoint * static_cast<double>(more);
  if (static_cast<double>(space.available) < needed) {
    log.warning(
        "{}: the disk has {} of free space, but this run needs about {} there: {} for "
        "model.safetensors and {} for each of {} checkpoints. Free some, choose another output, or "
        "set a smaller checkpoint.keep",
        run_folder, human_bytes(static_cast<double>(space.available)), human_bytes(needed),
        human_bytes(use.model), human_bytes(use.checkpoint), more);
  }
}

void save_model_of_run(
    const std::string& run_folder, const nn::Model& model, const weights::ModelForm& form) {
  const auto save = [&](const std::string& folder) {
    weights::save_model(folder + "/model.safetensors", model, form);
  };
  std::string problem;
  try {
    save(run_folder);
    return;
  } catch (...) {
    const auto error = std::current_exception();
    if (comm::exit_code_of(error) != static_cast<int>(ErrorKind::Io)) {
      throw;
    }
    problem = comm::message_of(error);
  }
  std::string rescue;
  try {
    rescue = make_temporary_folder();
    save(rescue);
  } catch (...) {
    std::error_code ignored;
    fs::remove(rescue, ignored);
    throw Error(
        ErrorKind::Io,
        formatted(
            "{}\nThe trained model could not be saved in a temporary folder either: {}", problem,
            comm::message_of(std::current_exception())));
  }
  throw Error(
      ErrorKind::Io,
      formatted(
          "{}\nThe trained model is in {}/model.safetensors instead: move it to a safe place. The "
          "run folder has neither a model nor a summary.json",
          problem, rescue));
}

}  // namespace abtrain::train
