#include <charconv>

#include "base/options.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

namespace {

// The text was validated when it was read.
std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::vector<std::string> reducer_names() {
  return {
      "plain",
      "topk",
      "topk-chunked",
      "thc",
      "thc-saturated",
      "powersgd",
      "onebit",
      "twobit",
      "hylo",
      "threshold",
      "ternary"};
}

bool has_levels(const ReducerOptions& options) {
  return options.name == "threshold" || options.name == "ternary";
}

std::int64_t min_numel(const ReducerOptions& options) {
  if (options.min_numel == "auto") {
    return options.name == "hylo" ? 16384 : has_levels(options) ? 1 : 4096;
  }
  return number(options.min_numel);
}

bool has_error_feedback(const ReducerOptions& options) {
  return options.error_feedback == "auto" ? !has_levels(options)
                                          : options.error_feedback == "true";
}

std::int64_t chunk_size(const ReducerOptions& options) {
  if (options.chunk == "auto") {
    return options.bits < 1 ? 128 : 64;
  }
  return number(options.chunk);
}

Fields fields_of(ReducerOptions& o, const std::string& extra) {
  Fields f;
  std::vector<std::string> names = reducer_names();
  if (!extra.empty()) {
    names.insert(names.begin(), extra);
  }
  f.choice("name", o.name, names, "how gradients are averaged over a group");
  f.choice(
      "dtype",
      o.dtype,
      {"auto", "fp32", "fp16", "bf16"},
      "type of uncompressed values on the wire; auto: fp32 for plain and "
      "powersgd, else fp16");
  f.number(
      "bucket_mb",
      o.bucket_mb,
      between(0, 1e6),
      "MiB of gradients per bucket, sent during the backward pass; 0: one "
      "bucket");
  f.choice(
      "error_feedback",
      o.error_feedback,
      {"auto", "true", "false"},
      "add what was not sent to the next gradient; auto: false for threshold "
      "and ternary, else true");
  f.auto_or_integer(
      "min_numel",
      o.min_numel,
      between(1, 1e12),
      "tensors with fewer elements are sent uncompressed; auto: 16384 for "
      "hylo, 1 for threshold and ternary, else 4096");
  f.integer(
      "dense_steps",
      o.dense_steps,
      between(0, kMostSteps),
      "first steps of the run, in which everything is sent uncompressed");
  f.number(
      "bits",
      o.bits,
      above_to(0, 64),
      "topk, topk-chunked: payload bits per element of the gradient");
  f.auto_or_integer(
      "chunk",
      o.chunk,
      between(2, 1 << 20),
      "topk-chunked: elements per chunk; auto: 128 if bits is below 1, else "
      "64");
  f.choice(
      "rotation",
      o.rotation,
      {"block", "full", "none"},
      "thc: what the Hadamard transform spans");
  f.integer(
      "block",
      o.block,
      between(2, 32768),
      "thc, thc-saturated: elements per block, a power of two");
  f.integer("rank", o.rank, between(1, 65536), "powersgd: rank of the product");
  f.number(
      "threshold",
      o.threshold,
      above_to(0, kLargest),
      "twobit: an element is sent once the magnitude of its gradient plus "
      "residual reaches this");
  f.number(
      "c",
      o.c,
      above_to(0, kLargest),
      "threshold: an element is sent if its magnitude is above c times its "
      "tensor's mean magnitude");
  f.choice(
      "select",
      o.select,
      {"consensus", "local"},
      "hylo: all workers choose kernels together, or each chooses its own");
  f.choice(
      "transport",
      o.transport,
      {"auto", "int8", "a2a", "gather"},
      "how codes are sent; hylo's linear layers: auto is int8; threshold and "
      "ternary: not a2a, auto is whichever sends less");
  f.integer(
      "evaluate_every",
      o.evaluate_every,
      between(0, kMostSteps),
      "steps between evaluations of the estimate against the true mean; 0: "
      "none");
  return f;
}

}  // namespace abtrain::compress
