#include "config/check_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/scalars.h"
#include "base/text.h"
#include "compress/schemes.h"
#include "config/planned_sizes.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "device/devices.h"
#include "methods/method_kind.h"
#include "nn/example_gradients.h"
#include "nn/families.h"
#include "optim/optimizer.h"
#include "orders/balancer.h"
#include "orders/order_kind.h"

namespace abtrain::config {

double state_bytes(const RunOptions& options, std::int64_t parameters) {
  const int moments = optim::make_optimizer(options.optimizer)->moments();
  const int residuals = compress::compresses(options.reducer) ? 1 : 0;
  const auto copies_of = methods::kind_of(options.method).copies;
  const double copies = 2 + moments + residuals +
                        (copies_of != nullptr ? copies_of(options.method) : 0) +
                        orders::order_copies(
                            options.order, balances_examples(options) ? options.data.batch_size : 0,
                            static_cast<int>(options.workers));
  return 4.0 * static_cast<double>(parameters) * copies;
}

std::int64_t trained_parameters(const RunOptions& options, const data::ExampleShape& shape) {
  const std::optional<PlannedSizes> planned = model_sizes(options, shape);
  if (!planned) {
    return nn::make_model(options.model, shape)->dense_parameters();
  }
  return trains_adapters(options) ? trained_parameters(*planned) : planned->sizes.parameters;
}

double base_bytes(const RunOptions& options, std::int64_t parameters) {
  return keeps_base(options) ? 4.0 * static_cast<double>(parameters) : 0;
}

void check_memory(
    const RunOptions& options, const data::ExampleShape& shape, int local_workers,
    std::int64_t image_bytes) {
  const at::Device device = device::pick_device(options.device);
  const std::int64_t memory = device::info_of(device).memory_bytes;
  const auto model = nn::make_model(options.model, shape);
  const std::int64_t parameters = model->dense_parameters();
  const double one = state_bytes(options, trained_parameters(options, shape));
  const auto gpus = static_cast<int>(device::cuda_devices().size());
  const int sharing = device.is_cuda() ? (local_workers + gpus - 1) / gpus : local_workers;
  const double images = static_cast<double>(image_bytes) + base_bytes(options, parameters);
  const double all = one * static_cast<double>(sharing) + images;
  const double available = static_cast<double>(memory) - images;
  ABT_CHECK(
      memory <= 0 || all <= static_cast<double>(memory), Config,
      "workers: {} workers need {} for parameters, gradients, moments and "
      "residuals in a dense step{}, but this machine's {}{}; {}",
      sharing, human_bytes(all),
      images > 0 ? formatted(
                       " and {} of {}", human_bytes(images),
                       !keeps_base(options) ? "images"
                       : image_bytes > 0    ? "images and frozen parameters"
                                            : "frozen parameters")
                 : "",
      device.is_cuda() ? "GPU has " : "memory is ", human_bytes(static_cast<double>(memory)),
      one <= available ? formatted("at most {} fit", static_cast<std::int64_t>(available / one))
                       : "not one fits");
  const double largest = model->largest_result(options.data.batch_size);
  ABT_CHECK(
      memory <= 0 || largest <= static_cast<double>(memory), Config,
      "data.batch_size: one operator of {} returns {} for {} examples, but this machine's {}{}; "
      "expected a smaller batch (a larger train.accumulate can make up for it)",
      options.model.file.value_or(options.model.name), human_bytes(largest),
      options.data.batch_size, device.is_cuda() ? "GPU has " : "memory is ",
      human_bytes(static_cast<double>(memory)));
}

RunLength check_run(
    const RunOptions& options, const data::ExampleShape& shape, std::int64_t train_images) {
  ABT_CHECK(
      !shape.regression || options.train.label_smoothing == 0, Config,
      "train.label_smoothing: expected 0, because the data have numbers to predict, not labels; "
      "got {}",
      print_number(options.train.label_smoothing));
  const RunLength length = run_length(options, train_images);
  const auto model = nn::make_model(options.model, shape);
  ABT_CHECK(model->untrainable().empty(), Config, "{}", model->untrainable());
  ABT_CHECK(
      !orders::kind_of(options.order).is_balanced() ||
          options.order.unit != orders::OrderUnit::Example || !nn::mixes_examples(*model),
      Config,
      "order.unit: example needs the gradient of each example, but {} has "
      "batch norm, which mixes the examples of a batch; expected microbatch",
      options.model.name);
  ABT_CHECK(
      !orders::kind_of(options.order).is_balanced() || !shape.ignores_labels ||
          options.workers == 1,
      Config,
      "order.name: {} decides the order during training, but some labels of the data are {} and do "
      "not count, so {} workers must know it in advance to weigh their contributions; expected "
      "shuffle or sequential",
      options.order.name, data::kIgnoredLabel, options.workers);
  ABT_CHECK(
      options.model.init != nn::InitName::Zeros || model->weights().size() == 1, Config,
      "model.init: {} has hidden layers, which get no gradient if they start at "
      "zero; expected kaiming or orthogonal, got zeros",
      options.model.name);
  ABT_CHECK(
      options.model.width == 1 || nn::can_scale(options.model), Config,
      "model.width: expected 1, because {} has no layer to widen; got {}", options.model.name,
      print_number(options.model.width));
  ABT_CHECK(
      options.model.drop_rate == 0 || options.model.name != "exported", Config,
      "model.drop_rate: expected 0, because an exported model has its own dropout; set the rates "
      "in the module before abtrain.save_model(); got {}",
      print_number(options.model.drop_rate));
  model_sizes(options, shape);  // throws if the ranks do not fit
  ABT_CHECK(
      trains_adapters(options) || model->frozen_parameters() < model->dense_parameters(), Config,
      "model.frozen: leaves no parameter to train");
  ABT_CHECK(
      options.data.shards == data::Shards::Even ||
          (!shape.regression && !shape.ignores_labels &&
           (shape.context == 0 || !shape.token_labels || data::is_text(options.data))),
      Config, "data.shards: by-class needs text, or one label for each example; expected even");
  // The bytes of all workers, at sixteen per parameter and step, must fit into
  // 63 bits.
  const auto parameters = static_cast<double>(model->dense_parameters());
  ABT_CHECK(
      length.by_clock || 16 * parameters * static_cast<double>(length.steps) *
                                 static_cast<double>(options.workers) <
                             9e18,
      Config,
      "{}{} steps of {}{}{} parameters send more bytes than a 64-bit counter "
      "holds; expected fewer",
      options.train.steps > 0 ? "train.steps: " : "train.epochs: ", with_commas(length.steps),
      options.workers, options.workers == 1 ? " worker and " : " workers and ",
      with_commas(static_cast<std::int64_t>(parameters)));
  if (const auto check = methods::kind_of(options.method).check_run) {
    check(options.method, length, *model);
  }
  return length;
}

}  // namespace abtrain::config
