#include "train/generate.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/scalars.h"
#include "config/run_length.h"
#include "device/devices.h"
#include "train/setup.h"
#include "weights/model_file.h"

namespace abtrain::train {

namespace {

using Tokens = std::vector<std::int64_t>;

Tokens tokens_of(const std::optional<std::string>& prompt, const data::DataOptions& data) {
  Tokens tokens;
  if (data.tokens == data::TokenType::Bytes) {
    for (const char byte : prompt.value_or("\n")) {
      tokens.push_back(static_cast<std::uint8_t>(byte));
    }
  } else {
    ABT_CHECK(
        prompt, Usage,
        "--prompt: this run's tokens are numbers; expected at least one to "
        "continue");
    for (const std::string& word : split_text(*prompt, ' ')) {
      std::int64_t token = -1;
      std::string why;
      ABT_CHECK(
          word.empty() ||
              (parse_integer(word, token, why) && token >= 0 && token < data::vocabulary_of(data)),
          Usage,
          "--prompt: expected token IDs from 0 to {}, separated by spaces, because this run's "
          "tokens are not bytes; got '{}'",
          data::vocabulary_of(data) - 1, word);
      if (!word.empty()) {
        tokens.push_back(token);
      }
    }
  }
  ABT_CHECK(!tokens.empty(), Usage, "--prompt: expected at least one token, got none");
  return tokens;
}

std::string text_of(const Tokens& tokens, const data::DataOptions& data) {
  std::string text;
  for (const std::int64_t token : tokens) {
    text += data.tokens == data::TokenType::Bytes
                ? std::string(1, static_cast<char>(token))
                : (text.empty() ? "" : " ") + std::to_string(token);
  }
  return text;
}

// Samples a token from its logits.
std::int64_t drawn(const at::Tensor& logits, const GenerateOptions& options, Random& random) {
  const std::int64_t most =
      options.top_k == 0 ? logits.size(0) : std::min(options.top_k, logits.size(0));
  // topk() returns the likeliest first.
  const auto [values, places] = at::topk(logits, options.temperature == 0 ? 1 : most);
  if (values.size(0) == 1) {
    return places.item<std::int64_t>();
  }
  const at::Tensor shares = at::softmax(values / options.temperature, 0);
  const auto* share = shares.const_data_ptr<double>();
  double left = random.uniform();
  std::int64_t i = 0;
  while (i + 1 < shares.size(0) && left >= share[i]) {
    left -= share[i++];
  }
  return places[i].item<std::int64_t>();
}

}  // namespace

std::string generate(const config::RunOptions& configured, const GenerateOptions& options) {
  const at::NoGradGuard no_grad;
  const data::DataOptions& data = configured.data;
  ABT_CHECK(
      data::is_text(data), Config,
      "{}: expected a run that trains on a text, but its data.name is {}",
      options.model.shown(), data.name);
  const at::Device device = device::pick_device(configured.device);
  const auto model =
      model_at_work(configured, config::text_shape(data), options.model.path(), device);
  Tokens tokens = tokens_of(options.prompt, data);
  Random random(options.seed, RandomPurpose::Generate);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const auto seen = std::min<std::ptrdiff_t>(std::ssize(tokens), data.context);
    const at::Tensor window =
        at::tensor(Tokens(tokens.end() - seen, tokens.end()), at::kLong).unsqueeze(0).to(device);
    const at::Tensor logits = model->forward(window, false)[0][seen - 1].cpu().to(at::kDouble);
    ABT_CHECK(
        logits.isfinite().all().item<bool>(), Diverged, "{}: its logits are not finite",
        options.model.shown());
    tokens.push_back(drawn(logits, options, random));
  }
  return text_of(tokens, data);
}

}  // namespace abtrain::train
