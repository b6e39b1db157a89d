// Names from PyTorch, torchvision, timm, Lightning and Hugging Face, and removed keys of abtrain:
// the key to use instead, or why there is none.
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
  std::string_view remark;  // what to know of the key, or what to do without one; may be empty
};

std::span<const OtherWord> other_words();

// What to use instead of a name such as "train.num_workers", "LR" or "batch-size" (its last part
// counts), or of a removed key; nullopt for all other names.
std::optional<Instead> instead_of(const std::string& name);

}  // namespace abtrain::config
