// Lets the trained model of a run continue a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/run_options.h"
#include "weights/model_file.h"

namespace abtrain::train {

struct GenerateOptions {
  weights::RunModel model;
  // The text to continue or, if the run's tokens are not bytes, token IDs separated
  // by spaces. nullopt stands for a newline, and is an Error(Usage) if the tokens
  // are not bytes.
  std::optional<std::string> prompt;
  std::int64_t tokens = 500;  // number of tokens to add
  double temperature = 0.8;   // divides the logits; 0: the likeliest token
  std::int64_t top_k = 0;     // samples among this many likeliest tokens; 0: among all
  std::uint64_t seed = 1;
};

// Returns the prompt and its continuation, in the prompt's form. The same options give the same
// text on the CPU. The model sees the last data.context tokens; the run's data set need not be
// present. Throws Config if the run trains no text, Usage for a prompt that holds no tokens of the
// vocabulary.
std::string generate(const config::RunOptions& configured, const GenerateOptions& options);

}  // namespace abtrain::train
