// Maps option names of PyTorch, torchvision, timm, Lightning and Hugging Face, and removed keys of
// abtrain, to the key to use instead, or to the reason why there is none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/options_apply.h"

namespace abtrain::config {

struct OtherWord {
  std::string_view words;   // separated by spaces, in lower case, with underscores
  std::string_view key;     // "optimizer.lr"; empty: there is none
  std::string_view remark;  // a hint on the key, or advice if there is none; may be empty
};

std::span<const OtherWord> other_words();

// Returns advice on a name such as "train.num_workers", "LR" or "batch-size" (only its last part
// counts), or on a removed key; nullopt for all other names.
std::optional<Instead> instead_of(const std::string& name);

}  // namespace abtrain::config
