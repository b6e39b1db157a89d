#include "config/check_options.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/warmup.h"
#include "compress/schemes.h"
#include "data/dataset.h"
#include "methods/method_kind.h"
#include "ops/pair_signs.h"

namespace abtrain::config {
namespace {

StatedLength stated_length(const TrainOptions& o) {
  return o.steps > 0
             ? StatedLength{Duration::steps(static_cast<double>(o.steps)),
                            "train.steps"}
             : StatedLength{Duration::epochs(o.epochs), "train.epochs"};
}

void check_schedule(const RunOptions& o, Conflicts& out) {
  const std::vector<double>& shares = o.schedule.milestones;
  if (std::adjacent_find(
          shares.begin(), shares.end(), std::greater_equal<>()) !=
      shares.end()) {
    out.push_back({{"schedule.milestones"}, "expected ascending shares"});
  }
  if (auto conflict = warmup_conflict(
          "schedule.warmup_steps",
          o.schedule.warmup_steps,
          stated_length(o.train),
          "step at the full rate",
          /*may_fill=*/true)) {
    out.push_back(std::move(*conflict));
  }
}

// data.subset, data.pool and data.standardise, for a set that is held as bytes.
void check_images(const data::DataOptions& o, Conflicts& out) {
  try {
    data::dataset_shape(o);
  } catch (const Error& error) {
    // The message begins with its key.
    const std::string message = error.what();
    const std::size_t colon = message.find(": ");
    out.push_back(
        {{message.substr(0, colon), "data.name"}, message.substr(colon + 2)});
  }
  if (o.subset > 0 && o.validation >= o.subset) {
    out.push_back(
        {{"data.validation", "data.subset"},
         str("expected less than data.subset (",
             o.subset,
             "), got ",
             o.validation)});
  }
  const char* const floats = o.standardise ? "data.standardise" : "data.pool";
  if (o.on_device == "true" && (o.standardise || o.pool > 0)) {
    out.push_back(
        {{"data.on_device", floats},
         str("images are kept on a GPU as bytes, but ",
             o.standardise ? "standardised" : "pooled",
             " images are not bytes; expected auto or false")});
  }
  for (const auto& [key, values] :
       {std::pair{"data.mean", &o.mean}, std::pair{"data.std", &o.std}}) {
    if (o.standardise && !values->empty()) {
      out.push_back(
          {{key, "data.standardise"},
           "standardised images take each pixel's own mean and deviation; "
           "expected none"});
    }
  }
}

// Options that do not go with image files.
void check_image_folder(const data::DataOptions& o, Conflicts& out) {
  const auto refuse = [&](bool given, const char* key, const char* message) {
    if (given) {
      out.push_back({{key, "data.name"}, message});
    }
  };
  refuse(
      o.subset > 0,
      "data.subset",
      "image-folder lists its files class by class, so the first of them "
      "cover only a few classes; expected 0");
  refuse(
      o.pool > 0,
      "data.pool",
      "image-folder's images are decoded and cropped for each batch, to "
      "data.image_size; expected 0");
  refuse(
      o.standardise,
      "data.standardise",
      "image-folder's images are decoded and cropped for each batch, so no "
      "pixel has a mean of its own; expected false");
  refuse(
      o.on_device == "true",
      "data.on_device",
      "image-folder's images are files that the host decodes; expected auto "
      "or false");
}

void check_data(const RunOptions& run, Conflicts& out) {
  const data::DataOptions& o = run.data;
  const auto channels =
      static_cast<std::size_t>(data::dataset_channels(o.name));
  const auto check_channels = [&](const char* key,
                                  const std::vector<double>& values) {
    if (!values.empty() && values.size() != channels) {
      out.push_back(
          {{key, "data.name"},
           str("expected ",
               channels,
               channels == 1 ? " value" : " values",
               ", one per channel, got ",
               values.size())});
    }
  };
  check_channels("data.mean", o.mean);
  check_channels("data.std", o.std);
  if (o.on_device == "true" && run.device == "cpu") {
    out.push_back(
        {{"data.on_device", "device"},
         "images can be kept only on a GPU, but device is cpu; expected auto "
         "or false"});
  }
  if (o.name != "image-folder") {
    check_images(o, out);
    return;
  }
  check_image_folder(o, out);
  if (o.resize < o.image_size) {
    out.push_back(
        {{"data.resize", "data.image_size", "data.name"},
         str("expected at least data.image_size (",
             o.image_size,
             "), got ",
             o.resize)});
  }
  if (o.crop_scale.size() != 2 || o.crop_scale[0] > o.crop_scale[1]) {
    out.push_back(
        {{"data.crop_scale", "data.name"},
         "expected two shares, the smaller one first"});
  }
}

void check_adagrad(const RunOptions& o, Conflicts& out) {
  const std::string& name = o.optimizer.name;
  if (!optim::is_adagrad(o.optimizer)) {
    return;
  }
  if (methods::kind_of(o.method).changes_weights) {
    out.push_back(
        {{"optimizer.name", "method.name"},
         str(name,
             "'s sums of gradients assume that nothing else changes the "
             "weights, but ",
             o.method.name,
             " averages or decomposes them; expected method.name ddp")});
  }
  if (optim::is_dual_averaging(o.optimizer) && o.schedule.name != "constant") {
    out.push_back(
        {{"schedule.name", "optimizer.name"},
         str("qrda-adagrad scales the sum of all gradients by the current "
             "rate: a rate that falls to 0 takes the weights back to where "
             "they started; expected constant, got ",
             o.schedule.name)});
  }
}

void check_order(const RunOptions& o, Conflicts& out) {
  const std::int64_t batch = o.data.batch_size;
  if (!balances_examples(o)) {
    return;
  }
  if (batch > ops::kMaxPairRows) {
    out.push_back(
        {{"data.batch_size", "order.unit", "order.name"},
         str("the products of all pairs of a batch's gradients are computed: "
             "expected at most ",
             ops::kMaxPairRows,
             ", got ",
             batch)});
  }
  if (o.order.name != "grab" && batch % 2 == 1) {
    out.push_back(
        {{"data.batch_size", "order.unit", "order.name"},
         str("neighbours are balanced in pairs within one batch: expected an "
             "even number, got ",
             batch)});
  }
}

}  // namespace

Conflicts check(const RunOptions& options) {
  Conflicts out;
  check_data(options, out);
  const auto add = [&](const Conflicts& found) {
    out.insert(out.end(), found.begin(), found.end());
  };
  if (const auto check_method = methods::kind_of(options.method).check) {
    add(check_method(method_setup(options), stated_length(options.train)));
  }
  add(compress::check(options.reducer, "reducer", options.workers));
  check_schedule(options, out);
  check_adagrad(options, out);
  check_order(options, out);
  if (options.model.weights == "none" && !options.model.fresh.empty()) {
    out.push_back(
        {{"model.fresh", "model.weights"},
         "these layers are not loaded from model.weights, but model.weights "
         "is none"});
  }
  if (options.train.cuda_graphs == "on" && options.device == "cpu") {
    out.push_back(
        {{"train.cuda_graphs", "device"},
         "graphs need a GPU, but device is cpu; auto uses them where there "
         "is one"});
  }
  if (options.optimizer.name == "sgd" && options.optimizer.nesterov &&
      options.optimizer.momentum == 0) {
    out.push_back(
        {{"optimizer.nesterov", "optimizer.momentum", "optimizer.name"},
         "Nesterov's form needs a momentum above 0"});
  }
  return out;
}

}  // namespace abtrain::config
