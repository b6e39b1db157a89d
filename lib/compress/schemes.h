// The schemes that average gradients. Each has a record at the end of its source file; schemes.cpp
// lists all.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/conflict.h"
#include "compress/reducer.h"
#include "ops/wire_codes.h"

namespace abtrain::compress {

struct Scheme {
  const char* name = "";
  std::unique_ptr<Reducer> (*make)(const ReducerOptions& options, std::uint64_t seed) = nullptr;
  // Adds conflicts, as check() below does; null: there are none.
  void (*check)(
      const ReducerOptions& options, const std::string& section, std::int64_t members,
      Conflicts& out) = nullptr;
  bool compresses = true;
  // The values of `auto` for the options of the same names.
  at::ScalarType dtype = at::kHalf;
  bool error_feedback = true;
  std::int64_t min_numel = 4096;
  // The largest group that the scheme can average over: its codes cannot hold the sum of more
  // members.
  std::int64_t max_members = std::numeric_limits<std::int64_t>::max();
  // The wire code (ops/wire_codes.h) of schemes in which a member encodes a flat tensor
  // independently of all other members: int8, int4, int2 and sparseloco.
  std::optional<ops::WireCode> code = std::nullopt;
};

// Makes an R, for Scheme::make.
template <class R>
std::unique_ptr<Reducer> make(const ReducerOptions& options, std::uint64_t seed) {
  return std::make_unique<R>(options, seed);
}

// All schemes, "plain" first.
std::span<const Scheme* const> schemes();
// The scheme that the options name. Throws Error(Config) for an unknown name.
const Scheme& scheme_of(const ReducerOptions& options);

// Expects options without conflicts. `seed` is the run's seed, for random numbers. Throws
// Error(Config) for an unknown name.
std::unique_ptr<Reducer> make_reducer(const ReducerOptions& options, std::uint64_t seed);

// Adds the conflicts among the options of `section`, such as "reducer". `members`: size of the
// largest group that such a reducer serves.
void check(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out);

// False for "plain", which sends everything uncompressed.
bool compresses(const ReducerOptions& options);
// The values of `dtype`, `error_feedback` and `min_numel`, with the scheme's own in place of
// `auto`.
at::ScalarType plain_dtype(const ReducerOptions& options);
bool has_error_feedback(const ReducerOptions& options);
std::int64_t min_numel(const ReducerOptions& options);
// The wire format of a scheme with a `code`; nullopt for all others.
std::optional<ops::WireFormat> wire_format(const ReducerOptions& options);

}  // namespace abtrain::compress
