#include "config/check_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/interval.h"
#include "base/warmup.h"
#include "compress/schemes.h"
#include "data/data_check.h"
#include "methods/method_kind.h"
#include "optim/optimizer_kind.h"
#include "orders/order_kind.h"

namespace abtrain::config {
namespace {

void append(Conflicts more, Conflicts& out) {
  std::ranges::move(more, std::back_inserter(out));
}

StatedLength stated_length(const TrainOptions& o) {
  if (o.seconds > 0) {
    return {Duration::steps(kMaxSteps), "train.seconds"};
  }
  return o.steps > 0 ? StatedLength{Duration::steps(static_cast<double>(o.steps)), "train.steps"}
                     : StatedLength{Duration::epochs(o.epochs), "train.epochs"};
}

void check_data(const RunOptions& o, Conflicts& out) {
  append(data::check(o.data), out);
  conflict_if(
      o.data.on_device == true && o.device == device::DeviceChoice::Cpu, out,
      {"data.on_device", "device"},
      "images can be kept only on a GPU, but device is cpu; expected auto "
      "or false");
}

void check_optimizer(const RunOptions& o, Conflicts& out) {
  append(optim::check(o.optimizer, o.schedule, stated_length(o.train)), out);
  conflict_if(
      optim::kind_of(o.optimizer).owns_weights && methods::kind_of(o.method).changes_weights, out,
      {"optimizer.name", "method.name"},
      "{}'s sums of gradients assume that nothing else changes the "
      "weights, but {} averages or decomposes them; expected "
      "method.name ddp",
      o.optimizer.name, o.method.name);
}

void check_balance(const RunOptions& o, Conflicts& out) {
  const std::size_t given = o.balance.measures ? 0 : o.balance.speeds.size();
  conflict_if(
      given > 0 && o.workers == 1, out, {"balance", "workers"},
      "one worker takes all examples; expected none or auto, got a list of {}", given);
  conflict_if(
      given > 0 && o.workers > 1 && std::ssize(o.balance.speeds) != o.workers, out,
      {"balance", "workers"}, "expected one speed for each of the {} workers, got {}", o.workers,
      given);
  conflict_if(
      o.balance.is_on() && orders::kind_of(o.order).is_balanced(), out, {"balance", "order.name"},
      "{} compares the gradients of equal batches; expected none, or order.name "
      "shuffle or sequential",
      o.order.name);
}

}  // namespace

Conflicts check(const RunOptions& options) {
  Conflicts out;
  check_data(options, out);
  if (const auto check_method = methods::kind_of(options.method).check) {
    check_method(method_setup(options), stated_length(options.train), out);
  }
  compress::check(options.reducer, "reducer", options.workers, out);
  check_optimizer(options, out);
  append(orders::check(options.order, options.data.batch_size, options.train.accumulate), out);
  check_balance(options, out);
  conflict_if(
      keeps_base(options) && balances_examples(options), out, {"order.unit", "order.name"},
      "the gradients of single examples are those of all parameters, some of which are frozen; "
      "expected microbatch");
  const methods::MethodOptions& method = options.method;
  const auto check_adapter = [&](bool given, const char* key, const char* wanted) {
    conflict_if(
        options.model.adapter && trains_adapters(options) && given, out,
        {key, "model.adapter", "method.name"},
        "the adapter's own factors and scale are trained; expected {}", wanted);
  };
  check_adapter(method.start != methods::AdapterStart::Zero, "method.start", "zero");
  check_adapter(method.alpha > 0, "method.alpha", "0");
  check_adapter(method.blocks != 1, "method.blocks", "1");
  conflict_if(
      options.data.shards == data::Shards::ByClass && options.order.name != "shuffle", out,
      {"data.shards", "order.name"},
      "each worker shuffles its own part of the data; expected even, or order.name shuffle");
  conflict_if(
      !options.model.weights && !options.model.fresh.empty(), out, {"model.fresh", "model.weights"},
      "these layers are not loaded from model.weights, but model.weights "
      "is none");
  conflict_if(
      options.model.file.has_value() != (options.model.name == "exported"), out,
      {"model.file", "model.name"},
      "a model of your own needs both: expected the name exported and a .pt2 file, got {} and {}",
      options.model.name, options.model.file.value_or("none"));
  conflict_if(
      options.train.cuda_graphs == true && options.device == device::DeviceChoice::Cpu, out,
      {"train.cuda_graphs", "device"},
      "graphs need a GPU, but device is cpu; auto uses them where there "
      "is one");
  return out;
}

}  // namespace abtrain::config
