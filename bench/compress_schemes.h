// The gradient compression schemes that benchmarks compare, by name: each
// with its defaults unless several settings of it are listed here.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/named.h"
#include "compress/schemes.h"

namespace abtrain::bench {

struct Scheme {
  std::string name;
  compress::ReducerOptions options;
};

inline std::vector<Scheme> all_schemes() {
  std::vector<Scheme> list;
  const auto add = [&](const char* name, const char* reducer) {
    list.push_back({name, {}});
    list.back().options.name = reducer;
    return &list.back().options;
  };
  add("fp32", "plain")->dtype = at::kFloat;
  add("fp16", "plain")->dtype = at::kHalf;
  add("bf16", "plain")->dtype = at::kBFloat16;
  add("topk b=.5", "topk")->bits = 0.5;
  add("topk b=2", "topk")->bits = 2;
  add("topk b=8", "topk")->bits = 8;
  add("topk-chunked b=.5", "topk-chunked")->bits = 0.5;
  add("topk-chunked b=2", "topk-chunked")->bits = 2;
  add("topk-chunked b=8", "topk-chunked")->bits = 8;
  add("powersgd r=1", "powersgd")->rank = 1;
  add("powersgd r=4", "powersgd")->rank = 4;
  add("thc", "thc");
  add("thc full", "thc")->rotation = compress::Rotation::Full;
  add("thc none", "thc")->rotation = compress::Rotation::None;
  add("hylo int8", "hylo");
  add("hylo a2a", "hylo")->transport = compress::CodeTransport::AllToAll;
  add("hylo gather", "hylo")->transport = compress::CodeTransport::Gather;
  for (const std::string& name : names_in(compress::schemes())) {
    if (std::ranges::find(list, name, [](const Scheme& scheme) { return *scheme.options.name; }) ==
        list.end()) {
      add(name.c_str(), name.c_str());
    }
  }
  return list;
}

}  // namespace abtrain::bench
