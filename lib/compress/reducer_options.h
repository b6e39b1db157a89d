// Options of a `reducer:` section: how gradients are averaged over a group.
// Tested in tests/compress/test_schemes.cpp.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <string>

namespace abtrain {
class Fields;
}

namespace abtrain::compress {

// How codes are sent (compress/code_sums.h, compress/levels.cpp).
enum class CodeTransport { Int8, AllToAll, Gather };
// What the Hadamard transform of thc spans: a block, all elements, or nothing.
enum class Rotation { Block, Full, None };

// nullopt stands for `auto`: the value then depends on the scheme.
struct ReducerOptions {
  // A name in schemes(); nullopt: the options of another section apply (or_else()).
  std::optional<std::string> name = "plain";
  std::optional<at::ScalarType> dtype = {};  // of uncompressed values on the wire
  double bucket_mb = 25;                     // MiB of fp32 gradients per bucket; 0: one bucket
  std::optional<bool> error_feedback = {};
  std::optional<std::int64_t> min_numel = {};   // smaller tensors: uncompressed
  std::int64_t dense_steps = 0;                 // first steps of the run, sent uncompressed
  double bits = 2;                              // topk, topk-chunked: payload per element
  std::optional<std::int64_t> chunk = {};       // topk-chunked: elements per chunk
  Rotation rotation = Rotation::Block;          // thc
  std::int64_t block = 1024;                    // thc, thc-saturated: a power of two
  std::int64_t rank = 4;                        // powersgd
  double threshold = 1e-3;                      // twobit: on the magnitude of gradient + residual
  double error_decay = 1;                       // int8, int4, int2, sparseloco: residual's factor
  double density = 1.0 / 64;                    // sparseloco: share of the elements that are sent
  double c = 1.5;                               // threshold: factor on the mean magnitude
  std::optional<CodeTransport> transport = {};  // hylo, threshold, ternary
  std::int64_t evaluate_every = 0;              // steps between evaluations; 0: none

  // These options if they have a name, else the other section's.
  const ReducerOptions& or_else(const ReducerOptions& other) const {
    return name ? *this : other;
  }
};

// fp32, fp16 or bf16.
const char* dtype_name(at::ScalarType dtype);

// The table of the options' keys, ranges and help texts (base/options.h). `other`: the word for a
// missing name; "" if the section must have a name.
Fields fields_of(ReducerOptions& options, const std::string& other = "");

}  // namespace abtrain::compress
