#include "compress/schemes.h"

#include "base/named.h"

namespace abtrain::compress {

// Each is defined at the end of the scheme's source file.
extern const Scheme kPlain, kTopk, kTopkChunked, kThc, kThcSaturated, kPowerSgd, kTwoBit, kHylo,
    kThreshold, kTernary, kInt8, kInt4, kInt2, kSparseLoco;

namespace {

constexpr const Scheme* kSchemes[] = {
    &kPlain, &kTopk,      &kTopkChunked, &kThc,  &kThcSaturated, &kPowerSgd, &kTwoBit,
    &kHylo,  &kThreshold, &kTernary,     &kInt8, &kInt4,         &kInt2,     &kSparseLoco,
};

}  // namespace

std::span<const Scheme* const> schemes() {
  return kSchemes;
}

const Scheme& scheme_of(const ReducerOptions& options) {
  return find_named(kSchemes, options.name.value(), "reducer.name");
}

std::unique_ptr<Reducer> make_reducer(const ReducerOptions& options, std::uint64_t seed) {
  return scheme_of(options).make(options, seed);
}

void check(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out) {
  const Scheme& scheme = scheme_of(options);
  conflict_if(
      members > scheme.max_members, out, {section + ".name", "workers"},
      "{} sums the codes of at most {} workers, but a group has {}; expected fewer, or another "
      "reducer",
      scheme.name, scheme.max_members, members);
  if (scheme.check != nullptr) {
    scheme.check(options, section, members, out);
  }
}

bool compresses(const ReducerOptions& options) {
  return scheme_of(options).compresses;
}

at::ScalarType plain_dtype(const ReducerOptions& options) {
  return options.dtype.value_or(scheme_of(options).dtype);
}

bool has_error_feedback(const ReducerOptions& options) {
  return options.error_feedback.value_or(scheme_of(options).error_feedback);
}

std::int64_t min_numel(const ReducerOptions& options) {
  return options.min_numel.value_or(scheme_of(options).min_numel);
}

std::optional<ops::WireFormat> wire_format(const ReducerOptions& options) {
  const std::optional<ops::WireCode> code = scheme_of(options).code;
  return code ? std::optional(ops::WireFormat{*code, options.density}) : std::nullopt;
}

}  // namespace abtrain::compress
