#include "run/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>

#include <algorithm>
#include <future>

namespace abtrain::run {

namespace {

constexpr int kSum = 2;  // at::Reduction::Sum

// Correct answers, summed loss, images: of one worker.
struct Tally {
  double correct = 0;
  double loss = 0;
  double images = 0;
  Score score() const {
    const double n = std::max(1.0, images);
    return {correct / n, loss / n};
  }
  void add(const Tally& other) {
    correct += other.correct;
    loss += other.loss;
    images += other.images;
  }
};

}  // namespace

Scores evaluate(
    nn::Model& model,
    const data::Images& images,
    const data::Augment& augment,
    std::int64_t batch_size,
    int group_size,
    const at::Device& device,
    comm::Communicator& world) {
  const at::NoGradGuard no_grad;
  const std::int64_t member = world.rank() % group_size;
  const std::int64_t begin = images.size() * member / group_size;
  const std::int64_t end = images.size() * (member + 1) / group_size;
  Tally own;
  // The next batch is made while this one is scored.
  const auto prepare = [&](std::int64_t i) {
    return std::async(std::launch::async, [&, i] {
      return augment.evaluation(
          images, std::min(i, end), std::min(end, i + batch_size));
    });
  };
  std::future<data::Batch> next = prepare(begin);
  for (std::int64_t i = begin; i < end; i += batch_size) {
    const data::Batch batch = next.get();
    next = prepare(i + batch_size);
    if (batch.labels.size(0) == 0) {  // all damaged
      continue;
    }
    const at::Tensor labels = batch.labels.to(device);
    const at::Tensor logits =
        model.forward(batch.images.to(device), false).to(at::kFloat);
    own.correct +=
        at::eq(at::argmax(logits, 1), labels).sum().item<double>();
    own.loss += at::cross_entropy_loss(logits, labels, {}, kSum).item<double>();
    own.images += static_cast<double>(labels.size(0));
  }
  at::Tensor mine = at::empty({3}, at::kDouble);
  auto* values = mine.data_ptr<double>();
  values[0] = own.correct;
  values[1] = own.loss;
  values[2] = own.images;
  at::Tensor all = at::empty({3 * world.size()}, at::kDouble);
  world
      .all_gather(
          all,
          mine,
          std::vector<std::int64_t>(static_cast<std::size_t>(world.size()), 3),
          comm::Purpose::Metrics)
      .wait();
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
  Scores scores{total.score(), {}};
  for (const Tally& tally : groups) {
    scores.groups.push_back(tally.score());
  }
  return scores;
}

}  // namespace abtrain::run
