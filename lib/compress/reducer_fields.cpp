#include <algorithm>

#include "base/named.h"
#include "base/options.h"
#include "base/text.h"
#include "compress/schemes.h"

namespace abtrain::compress {

namespace {

// Returns the help text on `auto`: "auto: 16384 for hylo, 1 for threshold and ternary, else 4096".
template <class Print>
std::string of_auto(Print print) {
  const std::string usual = print(Scheme());
  std::vector<std::string> others;
  for (const Scheme* scheme : schemes()) {
    const std::string value = print(*scheme);
    if (value != usual && std::ranges::find(others, value) == others.end()) {
      others.push_back(value);
    }
  }
  std::string text = "auto: ";
  for (const std::string& value : others) {
    std::vector<std::string> names;
    for (const Scheme* scheme : schemes()) {
      if (print(*scheme) == value) {
        names.emplace_back(scheme->name);
      }
    }
    text += formatted("{} for {}, ", value, join(names, " and "));
  }
  return text + "else " + usual;
}

}  // namespace

const char* dtype_name(at::ScalarType dtype) {
  return dtype == at::kHalf ? "fp16" : dtype == at::kBFloat16 ? "bf16" : "fp32";
}

Fields fields_of(ReducerOptions& o, const std::string& other) {
  Fields f;
  const std::vector<std::string> named = names_in(schemes());
  std::vector<std::string> compressing;
  for (const Scheme* scheme : schemes()) {
    if (scheme->compresses) {
      compressing.emplace_back(scheme->name);
    }
  }
  std::vector<std::string> typed = named;
  if (other == "auto") {  // may select "plain", which has a dtype
    typed.push_back(other);
  }
  Names<std::optional<std::string>> names;
  if (!other.empty()) {
    names.emplace_back(other, std::nullopt);
  }
  for (const std::string& name : named) {
    names.emplace_back(name, name);
  }
  f.choice<std::optional<std::string>>(
      "name", o.name, names, "how gradients are averaged over a group");
  const std::string dtype =
      of_auto([](const Scheme& scheme) { return std::string(dtype_name(scheme.dtype)); });
  f.choice<std::optional<at::ScalarType>>(
       "dtype", o.dtype,
       {{"auto", std::nullopt}, {"fp32", at::kFloat}, {"fp16", at::kHalf}, {"bf16", at::kBFloat16}},
       ("type of uncompressed values on the wire; " + dtype).c_str())
      .of(typed);
  f.number(
       "bucket_mb", o.bucket_mb, between(0, 1e6),
       "MiB of gradients per bucket, as in PyTorch's bucket_cap_mb, sent during "
       "the backward pass; 0: one bucket")
      .of(named);
  const std::string feedback = of_auto(
      [](const Scheme& scheme) { return std::string(scheme.error_feedback ? "true" : "false"); });
  f.auto_or_flag(
       "error_feedback", o.error_feedback,
       ("add what was not sent to the next gradient; " + feedback).c_str())
      .of(compressing);
  const std::string least =
      of_auto([](const Scheme& scheme) { return std::to_string(scheme.min_numel); });
  f.auto_or_integer(
       "min_numel", o.min_numel, between(1, 1e12),
       ("tensors with fewer elements are sent uncompressed; " + least).c_str())
      .of(compressing);
  f.integer(
       "dense_steps", o.dense_steps, between(0, kMaxSteps),
       "first steps of the run, in which everything is sent uncompressed")
      .of(compressing);
  f.number("bits", o.bits, above_to(0, 64), "payload bits per element of the gradient")
      .of({"topk", "topk-chunked"});
  f.choice<Rotation>(
       "rotation", o.rotation,
       {{"block", Rotation::Block}, {"full", Rotation::Full}, {"none", Rotation::None}},
       "what the Hadamard transform spans")
      .of({"thc"});
  f.integer("block", o.block, between(2, 32768), "elements per block, a power of two")
      .of({"thc", "thc-saturated"});
  f.integer("rank", o.rank, between(1, 65536), "rank of the product").of({"powersgd"});
  f.number(
       "threshold", o.threshold, above_to(0, kLargest),
       "an element is sent once the magnitude of its gradient plus "
       "residual reaches this")
      .of({"twobit"});
  f.number(
       "c", o.c, above_to(0, kLargest),
       "an element is sent if its magnitude is above c times its "
       "tensor's mean magnitude")
      .of({"threshold"});
  f.number(
       "error_decay", o.error_decay, between(0, 1),
       "factor applied to what was not sent before it is added to the next gradient")
      .of({"int8", "int4", "int2", "sparseloco"});
  f.number("density", o.density, above_to(0, 1), "share of the elements that are sent")
      .of({"sparseloco"});
  f.choice<std::optional<CodeTransport>>(
       "transport", o.transport,
       {{"auto", std::nullopt},
        {"int8", CodeTransport::Int8},
        {"a2a", CodeTransport::AllToAll},
        {"gather", CodeTransport::Gather}},
       "how codes are sent; auto: for hylo's linear layers int8, for threshold and ternary "
       "whichever sends less; a2a: only for hylo")
      .of({"hylo", "threshold", "ternary"});
  f.integer(
       "evaluate_every", o.evaluate_every, between(0, kMaxSteps),
       "steps between evaluations of the estimate against the true mean; 0: "
       "none")
      .of(compressing);
  return f;
}

}  // namespace abtrain::compress
