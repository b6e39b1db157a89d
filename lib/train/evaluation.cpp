#include "train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "optim/optimizer_kind.h"

namespace abtrain::train {

namespace {

constexpr int kSum = 2;  // at::Reduction::Sum

// `sums` of a classification: [correct answers, loss, count of labels]. Of a regression: [squared
// targets, squared errors, count of examples, the sum of each target].
Score score_of(const at::Tensor& sums, double bytes_per_token) {
  const auto* sum = sums.const_data_ptr<double>();
  const double n = std::max(1.0, sum[2]);
  const std::int64_t targets = sums.numel() - 3;
  if (targets == 0) {
    return {sum[0] / n, sum[1] / n, bytes_per_token};
  }
  double variation = sum[0];
  for (std::int64_t i = 0; i < targets; ++i) {
    variation -= sum[3 + i] * sum[3 + i] / n;
  }
  return {// If all targets are equal, only rounding errors remain.
          variation > 1e-12 * sum[0] ? 1 - sum[1] / variation : 0,
          sum[1] / n / static_cast<double>(targets), 0,
          /*regression=*/true};
}

}  // namespace

at::Tensor ranked_classes(const at::Tensor& logits) {
  return std::get<1>(at::sort(logits, /*stable=*/true, /*dim=*/1, /*descending=*/true));
}

void for_batches(
    std::int64_t begin, std::int64_t end, std::int64_t size, std::launch when,
    const std::function<data::Batch(std::int64_t, std::int64_t)>& batch,
    const std::function<void(const data::Batch&)>& use) {
  const auto batch_at = [&](std::int64_t first) {
    return batch(std::min(first, end), std::min(first + size, end));
  };
  std::future<data::Batch> next = std::async(when, batch_at, begin);
  for (std::int64_t first = begin; first < end; first += size) {
    const data::Batch now = next.get();
    next = std::async(when, batch_at, first + size);
    if (now.labels.size(0) > 0) {
      use(now);
    }
  }
}

Score evaluate(
    nn::Model& model, const ExampleSource& images, const data::Augment& augment,
    std::int64_t batch_size, const at::Device& device, comm::Communicator& world,
    double label_smoothing, std::vector<at::Tensor>* answers) {
  const at::NoGradGuard no_grad;
  const auto* there = std::get_if<OnDevice>(&images);
  const auto* here = std::get_if<OnHost>(&images);
  // Each token may have as many logits as the vocabulary has tokens.
  constexpr std::int64_t kMaxLogits = std::int64_t{1} << 25;
  batch_size = std::clamp<std::int64_t>(kMaxLogits / augment.logits(), 1, batch_size);
  const std::int64_t count = there != nullptr ? there->images.size() : here->examples.size();
  const std::int64_t begin = count * world.rank() / world.size();
  const std::int64_t end = count * (world.rank() + 1) / world.size();
  const auto batch_at = [&](std::int64_t first, std::int64_t last) {
    return there != nullptr ? augment.evaluation(there->images, first, last, there->type)
                            : augment.evaluation(here->examples, first, last);
  };
  // On the host the next batch is made while the current one is scored.
  const auto when = there != nullptr ? std::launch::deferred : std::launch::async;
  // Summed on the device, so that the host does not wait for each batch.
  const std::int64_t width = 3 + augment.targets();
  at::Tensor sums = at::zeros({width}, at::TensorOptions(device).dtype(at::kDouble));
  for_batches(begin, end, batch_size, when, batch_at, [&](const data::Batch& batch) {
    if (augment.targets() > 0) {
      const at::Tensor targets = batch.labels.to(device, at::kDouble);
      const at::Tensor outputs =
          model.forward(batch.inputs.to(device), false).to(at::kDouble).view(targets.sizes());
      sums.add_(at::cat(
          {at::stack(
               {targets.square().sum(), (outputs - targets).square().sum(),
                at::full_like(targets.sum(), targets.size(0))}),
           targets.sum(0)}));
      return;
    }
    const at::Tensor labels = batch.labels.to(device).flatten();
    const at::Tensor logits =
        model.forward(batch.inputs.to(device), false).flatten(0, -2).to(at::kDouble);
    const at::Tensor likeliest = at::argmax(logits, 1);
    sums.add_(at::stack(
        {at::eq(likeliest, labels).sum(),
         at::cross_entropy_loss(logits, labels, {}, kSum, data::kIgnoredLabel, label_smoothing),
         at::ne(labels, data::kIgnoredLabel).sum()}));
    if (answers != nullptr) {
      const at::Tensor first_five =
          ranked_classes(logits).narrow(1, 0, std::min<std::int64_t>(5, logits.size(1)));
      const at::Tensor among = at::eq(first_five, labels.unsqueeze(1)).any(1).to(at::kLong);
      answers->push_back(at::stack({labels, likeliest, among}, 1));
    }
  });
  sums = sums.cpu();
  at::Tensor all = at::empty({width * world.size()}, at::kDouble);
  world.all_gather(all, sums, comm::Purpose::Metrics).wait();
  at::Tensor total = at::zeros({width}, at::kDouble);
  for (const at::Tensor& of_worker : all.view({world.size(), width}).unbind()) {
    total.add_(of_worker);
  }
  return score_of(total, augment.bytes_per_token());
}

double penalty(const nn::Model& model, const optim::OptimizerOptions& options) {
  const at::NoGradGuard no_grad;
  const optim::Penalty kind = optim::kind_of(options).penalty;
  const bool squares = kind == optim::Penalty::Squares;
  const double factor = squares ? options.weight_decay / 2 : options.l1;
  if (kind == optim::Penalty::None || factor == 0) {
    return 0;
  }
  at::Tensor sum;  // on the device of the model
  const auto add = [&](const at::Tensor& tensor) {
    const at::Tensor x = tensor.to(at::kDouble);
    const at::Tensor own = (squares ? x.square() : x.abs()).sum();
    sum = sum.defined() ? sum + own : own;
  };
  for (const nn::NamedWeight& w : model.weights()) {
    if (!w.weight->is_frozen()) {
      const at::Tensor& rest = w.weight->rest;  // frozen part of an adapter
      add(rest.defined() ? w.weight->merged() - rest : w.weight->merged());
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (!p.is_frozen && (p.decays || options.decay_all)) {
      add(*p.tensor);
    }
  }
  return sum.defined() ? factor * sum.item<double>() : 0;
}

}  // namespace abtrain::train
