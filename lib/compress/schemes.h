// The compressing schemes, one source file each.
#pragma once

#include "compress/reducer.h"

namespace abtrain::compress {

std::unique_ptr<Reducer> make_topk(const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_topk_chunked(
    const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_thc(const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_thc_saturated(
    const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_powersgd(
    const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_onebit(const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_twobit(const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_threshold(
    const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_ternary(
    const ReducerOptions&, std::uint64_t seed);
std::unique_ptr<Reducer> make_hylo(const ReducerOptions&, std::uint64_t seed);

}  // namespace abtrain::compress
