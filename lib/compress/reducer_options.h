// Options of a `reducer:` section: how gradients are averaged over a group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain {
class Fields;
}

namespace abtrain::compress {

struct ReducerOptions {
  std::string name = "plain";  // one of reducer_names()
  // Wire type of uncompressed values; auto: fp32 for plain and powersgd, else
  // fp16.
  std::string dtype = "auto";  // auto | fp32 | fp16 | bf16
  double bucket_mb = 25;       // MiB of fp32 gradients per bucket; 0: one
  // auto: false for threshold and ternary, else true.
  std::string error_feedback = "auto";  // auto | true | false
  std::string min_numel = "auto";  // smaller tensors are sent uncompressed
  std::int64_t dense_steps = 0;    // first steps of the run, sent uncompressed
  double bits = 2;                 // topk, topk-chunked: payload per element
  std::string chunk = "auto";      // topk-chunked: elements per chunk
  std::string rotation = "block";  // thc: block | full | none
  std::int64_t block = 1024;       // thc, thc-saturated: a power of two
  std::int64_t rank = 4;           // powersgd
  double threshold = 1e-3;         // twobit: in units of the mean gradient
  std::string select = "consensus";  // hylo: consensus | local
  double c = 1.5;                    // threshold: factor on the mean magnitude
  // hylo: int8 | a2a | gather, auto is int8. threshold, ternary: int8 | gather,
  // auto is whichever sends less.
  std::string transport = "auto";
  std::int64_t evaluate_every = 0;   // steps between evaluations; 0: none
};

// All reducers, "plain" first.
std::vector<std::string> reducer_names();
// True for threshold and ternary, which code elements as -a, 0 or +a
// (compress/level_reducer.h).
bool has_levels(const ReducerOptions& options);

// `chunk` as a number.
std::int64_t chunk_size(const ReducerOptions& options);
// `min_numel` as a number; auto: 16384 for hylo, 1 for threshold and ternary,
// 4096 for the others.
std::int64_t min_numel(const ReducerOptions& options);
// The value of `error_feedback`; auto depends on the scheme.
bool has_error_feedback(const ReducerOptions& options);

// The table of its keys, ranges and help texts (base/options.h). `extra` is an
// additional name, one that stands for another section's reducer; "" for none.
Fields fields_of(ReducerOptions& options, const std::string& extra = "");

}  // namespace abtrain::compress
