#include "train/evaluation.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <future>

#include "data/text/tokens.h"
#include "optim/optimizer_kind.h"

namespace abtrain::train {

namespace {

constexpr int kSum = 2;  // at::Reduction::Sum

// Correct answers, summed loss and number of labels, of one worker.
struct Tally {
  double correct = 0;
  double loss = 0;
  double labels = 0;
  Score score(double bytes_per_token) const {
    const double n = std::max(1.0, labels);
    return {correct / n, loss / n, bytes_per_token};
  }
  void add(const Tally& other) {
    correct += other.correct;
    loss += other.loss;
    labels += other.labels;
  }
};

// Examples begin .. end-1, in batches. On the host the next batch is made while
// the current one is scored.
class Batches {
 public:
  Batches(
      const ExampleSource& from,
      const data::Augment& augment,
      std::int64_t begin,
      std::int64_t end,
      std::int64_t size)
      : from_(from), augment_(augment), at_(begin), end_(end), size_(size) {
    if (std::holds_alternative<OnHost>(from_)) {
      prepare();
    }
  }
  bool done() const {
    return at_ >= end_;
  }
  data::Batch take() {
    const std::int64_t begin = at_;
    at_ += size_;
    if (const auto* there = std::get_if<OnDevice>(&from_)) {
      return augment_.evaluation(
          there->images, begin, std::min(end_, at_), there->type);
    }
    data::Batch batch = next_.get();
    prepare();
    return batch;
  }

 private:
  void prepare() {
    next_ = std::async(
        std::launch::async,
        [this, begin = std::min(at_, end_), end = std::min(end_, at_ + size_)] {
          return augment_.evaluation(
              std::get<OnHost>(from_).examples, begin, end);
        });
  }

  const ExampleSource& from_;
  const data::Augment& augment_;
  std::int64_t at_;  // first example of the next batch
  const std::int64_t end_;
  const std::int64_t size_;
  std::future<data::Batch> next_;
};

}  // namespace

Scores evaluate(
    nn::Model& model,
    const ExampleSource& images,
    const data::Augment& augment,
    std::int64_t batch_size,
    int group_size,
    const at::Device& device,
    comm::Communicator& world,
    double label_smoothing) {
  const at::NoGradGuard no_grad;
  const data::Tokens* text = text_of(images);
  if (text != nullptr) {
    // Each token has as many logits as there are tokens.
    constexpr std::int64_t kMaxLogits = std::int64_t{1} << 25;
    batch_size = std::clamp<std::int64_t>(
        kMaxLogits / (augment.context() * text->vocabulary()), 1, batch_size);
  }
  const std::int64_t member = world.rank() % group_size;
  const std::int64_t count = example_count(images);
  const std::int64_t begin = count * member / group_size;
  const std::int64_t end = count * (member + 1) / group_size;
  // Summed on the device, so that the host does not wait for each batch.
  at::Tensor sums =
      at::zeros({2}, at::TensorOptions(device).dtype(at::kDouble));
  const at::Tensor correct = sums[0];
  const at::Tensor loss = sums[1];
  Tally own;
  Batches batches(images, augment, begin, end, batch_size);
  while (!batches.done()) {
    const data::Batch batch = batches.take();
    if (batch.labels.size(0) == 0) {  // all images are damaged
      continue;
    }
    const at::Tensor labels = batch.labels.to(device).flatten();
    const at::Tensor logits = model.forward(batch.inputs.to(device), false)
                                  .flatten(0, -2)
                                  .to(at::kDouble);
    correct.add_(at::eq(at::argmax(logits, 1), labels).sum());
    loss.add_(at::cross_entropy_loss(
        logits, labels, {}, kSum, /*ignore_index=*/-100, label_smoothing));
    own.labels += static_cast<double>(labels.size(0));
  }
  sums = sums.cpu();
  own.correct = sums.const_data_ptr<double>()[0];
  own.loss = sums.const_data_ptr<double>()[1];
  at::Tensor mine = at::empty({3}, at::kDouble);
  auto* values = mine.data_ptr<double>();
  values[0] = own.correct;
  values[1] = own.loss;
  values[2] = own.labels;
  at::Tensor all = at::empty({3 * world.size()}, at::kDouble);
  world.all_gather(all, mine, comm::Purpose::Metrics).wait();
  const auto* gathered = all.const_data_ptr<double>();
  Tally total;
  std::vector<Tally> groups(
      static_cast<std::size_t>(world.size() / group_size));
  for (int r = 0; r < world.size(); ++r) {
    const Tally tally{
        gathered[3 * r], gathered[3 * r + 1], gathered[3 * r + 2]};
    total.add(tally);
    groups[static_cast<std::size_t>(r / group_size)].add(tally);
  }
  const double bytes = text != nullptr ? text->bytes_per_token() : 0;
  Scores scores{total.score(bytes), {}};
  for (const Tally& tally : groups) {
    scores.groups.push_back(tally.score(bytes));
  }
  return scores;
}

double penalty(const nn::Model& model, const optim::OptimizerOptions& options) {
  const at::NoGradGuard no_grad;
  std::function<at::Tensor(const at::Tensor&)> of;
  double factor = 0;
  switch (optim::kind_of(options).penalty) {
    case optim::Penalty::None:
      return 0;
    case optim::Penalty::Squares:
      factor = options.weight_decay / 2;
      of = [](const at::Tensor& x) { return x.square(); };
      break;
    case optim::Penalty::Magnitudes:
      factor = options.l1;
      of = [](const at::Tensor& x) { return x.abs(); };
      break;
  }
  if (factor == 0) {
    return 0;
  }
  at::Tensor sum;  // on the device of the model
  const auto add = [&](const at::Tensor& tensor) {
    const at::Tensor own = of(tensor.to(at::kDouble)).sum();
    sum = sum.defined() ? sum + own : own;
  };
  for (const nn::NamedWeight& w : model.weights()) {
    add(w.weight->merged());
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (p.decays || options.decay_all) {
      add(*p.tensor);
    }
  }
  return sum.defined() ? factor * sum.item<double>() : 0;
}

}  // namespace abtrain::train
