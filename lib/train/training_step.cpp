#include "train/training_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "comm/failure.h"
#include "device/tensor_text.h"
#include "nn/example_gradients.h"
#include "ops/cross_entropy.h"
#include "orders/unit_gradients.h"

namespace abtrain::train {

namespace {

// Each row's share of the labels in the batch that count.
std::vector<double> shares_of_rows(const at::Tensor& labels) {
  const at::Tensor counted = labels.ne(data::kIgnoredLabel).sum(1).to(at::kCPU, at::kDouble);
  const at::Tensor shares = counted / counted.sum().clamp_min(1);
  const auto* of = shares.const_data_ptr<double>();
  return {of, of + shares.numel()};
}

}  // namespace

TrainingStep::TrainingStep(const Parts& parts)
    : in_(parts),
      options_(parts.inputs.options.train),
      cores_(parts.inputs.device.is_cpu()),
      captures_(
          parts.inputs.device.is_cuda() ? options_.cuda_graphs != false
                                        : parts.inputs.hooks.capture_on_cpu),
      one_by_one_(parts.examples != nullptr && !nn::has_example_gradients(parts.model)),
      turn_(parts.inputs.turn != nullptr ? *parts.inputs.turn : own_turn_),
      loss_(at::zeros({}, at::TensorOptions(parts.inputs.device))),
      norm_(at::zeros({}, at::TensorOptions(parts.inputs.device))),
      rates_(parts.inputs.device) {
  if (parts.weights != nullptr) {
    gradient_weight_ = at::ones({}, loss_.options());
    loss_weight_ = at::ones({}, loss_.options());
  }
}

at::Tensor TrainingStep::forward_backward(std::int64_t t) {
  prepare(t);
  const std::int64_t count = options_.accumulate;
  in_.method.block().zero_gradients();
  loss_.zero_();
  if (in_.weights != nullptr) {
    in_.weights->begin(t, in_.method.now().gradient_group);
  }
  for (std::int64_t k = 0; k < count; ++k) {
    take_batch();
    if (in_.weights != nullptr) {
      gradient_weight_.fill_(in_.weights->of_gradient(k));
      loss_weight_.fill_(in_.weights->of_loss(k));
    }
    // Every micro-batch of every worker drops different elements.
    in_.model.seed_dropout(Random(
                               in_.inputs.options.seed, RandomPurpose::Dropout,
                               static_cast<std::uint32_t>(t * count + k),
                               static_cast<std::uint32_t>(in_.world.rank()))
                               .next_64());
    if (pass_graph_) {
      ABT_ASSERT(
          addresses() == captured_at_, "step {} was captured with tensors that have moved since",
          t + 1);
      pass_graph_.replay();
    } else {
      pass(k + 1 == count && may_overlap() ? t : -1);
    }
    if (!captures_) {
      batch_ = {};
    }
  }
  if (in_.weights != nullptr) {
    return in_.weights->has_labels() ? loss_ : at::Tensor();
  }
  return count == 1 ? loss_ : loss_ / static_cast<double>(count);
}

// A digest of the addresses of everything that a captured step works on.
std::uint64_t TrainingStep::addresses() const {
  std::uint64_t digest = 0;
  const auto add = [&](const at::Tensor& tensor) {
    const void* data = tensor.defined() ? tensor.const_data_ptr() : nullptr;
    digest = (digest ^ reinterpret_cast<std::uintptr_t>(data)) *
             0x9E3779B97F4A7C15U;  // odd, so that no address is lost
  };
  for (const at::Tensor* const tensor : in_.model.tensors()) {
    add(*tensor);
  }
  optim::ParameterBlock& block = in_.method.block();
  add(block.values());
  add(block.gradients());
  add(block.moments());
  add(batch_.inputs);
  add(batch_.labels);
  return digest;
}

// Takes the next batch. A captured pass reads the same tensors each time.
void TrainingStep::take_batch() {
  const bool first = !batch_.inputs.defined();
  in_.batches.next(batch_);
  if (captures_ && first) {
    // Copies, because the source may use its tensors again.
    batch_ = {batch_.inputs.clone(), batch_.labels.clone()};
  }
}

// Only labels of token sequences can be marked as not counting.
bool TrainingStep::ignores(const at::Tensor& labels) const {
  return in_.inputs.dataset.vocabulary > 0 && labels.dim() > 1 && !labels.is_floating_point();
}

TrainingStep::Loss TrainingStep::loss_of(
    const at::Tensor& inputs, const at::Tensor& labels, double weight, nn::Tape* tape) {
  const at::Tensor outputs = in_.model.forward(inputs, true, tape);
  if (labels.is_floating_point()) {  // targets
    const at::Tensor loss = at::mse_loss(outputs.to(at::kFloat).view(labels.sizes()), labels);
    return {loss.detach(), loss, at::full({}, weight, loss.options())};
  }
  // The op computes the gradient along with the loss, so that no pass over the logits is left for
  // the backward pass; a text has many logits.
  at::Tensor logits = outputs.detach().flatten(0, -2);
  if (logits.scalar_type() != at::kBFloat16) {
    logits = logits.to(at::kFloat);
  }
  ops::EntropyOptions options{options_.label_smoothing, weight, {}};
  if (ignores(labels)) {
    options.ignored = data::kIgnoredLabel;
  }
  const ops::LossAndGradient of =
      ops::cross_entropy(logits.contiguous(), labels.flatten(), options);
  return {of.loss, outputs, of.gradient.view(outputs.sizes()).to(outputs.scalar_type())};
}

void TrainingStep::add_loss(const at::Tensor& mean) {
  if (loss_weight_.defined()) {
    loss_.addcmul_(mean, loss_weight_);
  } else {
    loss_.add_(mean);
  }
}

// An operator of a user's model may accept values in the forward pass for which it has no
// gradients.
void TrainingStep::run_backward(const Loss& loss) const {
  if (gradient_weight_.defined()) {
    at::Tensor(loss.gradient).mul_(gradient_weight_);
  }
  try {
    loss.root.backward(loss.gradient);
  } catch (const c10::AcceleratorError&) {
    throw;
  } catch (const c10::Error&) {
    const auto error = std::current_exception();
    const auto& file = in_.inputs.options.model.file;
    if (!file || comm::exit_code_of(error) != 1) {
      throw;  // errors such as too little memory have messages of their own
    }
    throw Error(
        ErrorKind::Config, formatted(
                               "model.file: {}: the backward pass failed: {}", *file,
                               split_text(comm::message_of(error), '\n')[0]));
  }
}

void TrainingStep::pass(std::int64_t sends) {
  if (one_by_one_) {
    pass_one_by_one();
    return;
  }
  cores_.begin();
  nn::Tape tape;
  // Weighted so that the sum over the micro-batches is their mean.
  const Loss loss = loss_of(
      batch_.inputs, batch_.labels, 1.0 / static_cast<double>(options_.accumulate),
      in_.examples != nullptr ? &tape : nullptr);
  // On the CPU, a loss that is not finite is known here. Nothing is sent then: this worker's error
  // ends the others.
  const bool starts =
      sends >= 0 && (loss.value.is_cuda() || std::isfinite(loss.value.item<double>()));
  const bool waits = starts && in_.method.now().sends_early;  // for other workers, during the pass
  if (waits) {
    cores_.end();
  }
  if (starts) {
    in_.method.before_backward(sends);
  }
  run_backward(loss);
  if (!waits) {
    cores_.end();
  }
  add_loss(loss.value);
  if (in_.examples != nullptr) {
    record_examples(tape);
  }
}

void TrainingStep::record_examples(const nn::Tape& tape) {
  const at::NoGradGuard no_grad;
  optim::ParameterBlock& block = in_.method.block();
  std::vector<nn::Placed> trained;
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    trained.push_back({*block.parameters()[i].tensor, block.offset(i)});
  }
  in_.examples->step(*nn::example_gradients(tape, trained));
}

void TrainingStep::pass_one_by_one() {
  optim::ParameterBlock& block = in_.method.block();
  const std::int64_t count = batch_.labels.size(0);
  const at::Tensor before = block.gradients().clone();
  const at::Tensor rows = at::empty({count, block.numel()}, block.gradients().options());
  const std::vector<double> shares =
      ignores(batch_.labels)
          ? shares_of_rows(batch_.labels)
          : std::vector<double>(static_cast<std::size_t>(count), 1.0 / static_cast<double>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = shares[static_cast<std::size_t>(i)];
    block.zero_gradients();
    const Loss loss = loss_of(
        batch_.inputs.narrow(0, i, 1), batch_.labels.narrow(0, i, 1),
        share / static_cast<double>(options_.accumulate), nullptr);
    run_backward(loss);
    rows[i].copy_(block.gradients());
    add_loss(loss.value * share);
  }
  const at::NoGradGuard no_grad;
  block.gradients().copy_(before).add_(rows.sum(0));
  in_.examples->step(orders::BuiltGradients(rows));
}

void TrainingStep::optimize(
    double rate, const std::function<void(const at::Tensor& norm)>& see_norm) {
  const bool limited = options_.clip_norm > 0;
  cores_.begin();
  rates_.set(rate, in_.method.now().factor_lr_scale);
  at::Tensor divisor;
  if (update_graph_) {
    update_graph_.replay();
  } else if (limited) {
    divisor = clip(false);
  }
  if (limited) {
    see_norm(norm_);
  }
  if (!update_graph_) {
    in_.optimizer.step(in_.method.block(), rates_, divisor);
  }
  cores_.end();
  if (timed_) {
    timed_->end();
    trial_.push_back(std::move(*std::exchange(timed_, {})));
  }
  if (in_.inputs.hooks.seconds_of_step) {
    const double told = in_.inputs.hooks.seconds_of_step(static_cast<bool>(update_graph_));
    told_seconds_ += trial_.empty() ? 0 : told;
  }
}

// Returns the divisor of the gradients; leaves their norm in norm_.
at::Tensor TrainingStep::clip(bool fixed) {
  const at::NoGradGuard no_grad;
  const optim::Clip result = optim::clip(in_.method.block().gradients(), options_.clip_norm, fixed);
  norm_.copy_(result.norm);
  return result.divisor;
}

void TrainingStep::release() {
  update_graph_ = {};
  pass_graph_ = {};
}

void TrainingStep::prepare(std::int64_t t) {
  if (layout_ != in_.method.layout()) {
    release();
    layout_ = in_.method.layout();
    steps_ = 0;
    timed_.reset();
    trial_.clear();
    told_seconds_ = 0;
  }
  if (!captures_) {
    return;
  }
  const std::int64_t step = steps_++ - kEagerSteps;
  const bool compares = compares_forms();
  if (step == (compares ? kTrialSteps : 0) && is_worth_capturing(t)) {
    eager_seconds_ = take_trial();
    capture(t);
  }
  if (!compares) {
    return;
  }
  // The first replay is not timed, because it also uploads the graph to the device.
  constexpr std::int64_t kFirst = kTrialSteps + 1;
  if (pass_graph_ && step == kFirst + kTrialSteps && take_trial() >= eager_seconds_) {
    release();
  }
  const bool eager = step >= 0 && step < kTrialSteps;
  if (eager || (pass_graph_ && step >= kFirst && step < kFirst + kTrialSteps)) {
    timed_.emplace(in_.inputs.device);
  }
}

// True if captured and uncaptured steps are timed, and the faster form is kept.
bool TrainingStep::compares_forms() const {
  const bool own_gpu = in_.inputs.device.is_cuda() && may_overlap();
  return !options_.cuda_graphs.has_value() && in_.method.now().sends_early &&
         (own_gpu || in_.inputs.hooks.seconds_of_step);
}

// Seconds of the steps timed since the last call.
double TrainingStep::take_trial() {
  double seconds = 0;
  for (const device::Span& span : std::exchange(trial_, {})) {
    seconds += *span.seconds(true);
  }
  const double told = std::exchange(told_seconds_, 0);
  return in_.inputs.hooks.seconds_of_step ? told : seconds;
}

// The backward passes of workers that share a GPU run in one thread of
// LibTorch, which must not wait for another worker.
bool TrainingStep::may_overlap() const {
  return !in_.inputs.device.is_cuda() || in_.inputs.turn == nullptr;
}

bool TrainingStep::is_worth_capturing(std::int64_t t) const {
  for (std::int64_t done = t + 1; done < t + kWorthSteps; ++done) {
    if (done == in_.steps || in_.method.moves_after(done)) {
      return false;  // the graph would soon be dropped
    }
  }
  return in_.examples == nullptr;
}

// Workers with a GPU each need not meet: they do not disturb each other. Besides, a collective that
// waits on one GPU could block driver calls that the capture on another GPU needs.
void TrainingStep::meet() {
  if (in_.inputs.turn != nullptr) {
    in_.world.barrier();
  }
}

// A worker that has failed to capture before still meets the others.
void TrainingStep::capture(std::int64_t t) {
  const TrainInputs& inputs = in_.inputs;
  meet();
  try {
    if (inputs.hooks.capturing) {
      inputs.hooks.capturing(in_.world.rank(), t);
    }
    if (!failed_) {
      captured_at_ = addresses();
      pass_graph_ = device::Graph::capture(
          inputs.device, [this] { pass(-1); }, {in_.model.generator()}, turn_);
      update_graph_ = device::Graph::capture(
          inputs.device,
          [this] {
            in_.optimizer.step(
                in_.method.block(), rates_, options_.clip_norm > 0 ? clip(true) : at::Tensor());
          },
          {}, turn_, pass_graph_);
    }
  } catch (const device::CaptureFailed& error) {
    failed_ = true;
    release();
    ABT_CHECK(
        options_.cuda_graphs != true, Config,
        "train.cuda_graphs: on, but step {} could not be captured on {}: {}", t + 1, inputs.device,
        error.what());
    if (inputs.log != nullptr) {
      inputs.log->log().warning(
          "step {} could not be captured as a CUDA graph; continuing without "
          "one ({})",
          t + 1, error.what());
    }
  }
  meet();
}

}  // namespace abtrain::train
