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
  std::string name = "plain";  // a row of reducer_names()
  // Of plain numbers on the wire; auto: fp32 for plain and powersgd, else fp16.
  std::string dtype = "auto";  // auto | fp32 | fp16 | bf16
  double bucket_mb = 25;       // a bucket's fp32 gradients; 0: one bucket
  // auto: none for threshold and ternary, else there is.
  std::string error_feedback = "auto";  // auto | true | false
  std::string min_numel = "auto";  // smaller tensors are sent plainly
  std::int64_t dense_steps = 0;    // first steps of the run, sent plainly
  double bits = 2;                 // topk, topk-chunked: payload a coordinate
  std::string chunk = "auto";      // topk-chunked
  std::string rotation = "block";  // thc: block | full | none
  std::int64_t block = 1024;       // thc, thc-saturated: a power of two
  std::int64_t rank = 4;           // powersgd
  double threshold = 1e-3;         // twobit: of the mean gradient
  std::string select = "consensus";  // hylo: consensus | local
  double c = 1.5;                    // threshold: of the mean size
  // hylo: int8 | a2a | gather, auto is int8; threshold, ternary: int8 | gather,
  // auto is what sends less.
  std::string transport = "auto";
  std::int64_t evaluate_every = 0;   // steps between evaluations; 0: none
};

// Of all reducers, "plain" first.
std::vector<std::string> reducer_names();
// threshold and ternary: numbers as -a, 0 or +a (compress/level_codes.h).
bool has_levels(const ReducerOptions& options);

// `chunk` as a number.
std::int64_t chunk_size(const ReducerOptions& options);
// `min_numel` as a number; auto: 16384 for hylo, 1 for threshold and ternary, 4096
// for the others.
std::int64_t min_numel(const ReducerOptions& options);
// What `error_feedback` means for the scheme.
bool has_error_feedback(const ReducerOptions& options);

// The table of its keys, ranges and help (base/options.h). `extra`: a name that
// stands for another section's reducer, "" for none.
Fields fields_of(ReducerOptions& options, const std::string& extra = "");

}  // namespace abtrain::compress
