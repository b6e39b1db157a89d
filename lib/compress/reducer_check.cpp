#include "compress/reducer_check.h"

#include <bit>

#include "base/text.h"

namespace abtrain::compress {

std::vector<ReducerConflict> check(
    const ReducerOptions& o,
    std::int64_t members) {
  std::vector<ReducerConflict> out;
  if ((o.name == "onebit" || o.name == "twobit") && !has_error_feedback(o)) {
    out.push_back(
        {{"error_feedback", "name"},
         str(o.name,
             " sends so little of each gradient that it only works with what "
             "it left out before: expected true")});
  }
  if (o.name == "topk" && o.bits > 48) {
    out.push_back(
        {{"bits", "name"},
         str("topk sends everything at 48 (a value of 16 and an index of 32 "
             "bits), got ",
             o.bits)});
  }
  if (o.name == "topk-chunked") {
    const auto chunk = static_cast<double>(chunk_size(o));
    if (o.bits <= 16 / chunk) {
      out.push_back(
          {{"bits", "chunk", "name"},
           str("the norms of chunks of ",
               chunk_size(o),
               " alone take ",
               16 / chunk,
               " bits per element; expected more, got ",
               o.bits)});
    }
  }
  if ((o.name == "thc" || o.name == "thc-saturated") &&
      !std::has_single_bit(static_cast<std::uint64_t>(o.block))) {
    out.push_back(
        {{"block", "name"}, str("expected a power of two, got ", o.block)});
  }
  if (o.name == "ternary" && has_error_feedback(o)) {
    out.push_back(
        {{"error_feedback", "name"},
         "ternary's random error is larger than the values it encodes, so "
         "residuals would grow without bound; expected auto or false"});
  }
  if (has_levels(o) && o.transport == "a2a") {
    out.push_back(
        {{"transport", "name"},
         str(o.name, " takes auto, gather and int8, got a2a")});
  }
  const bool int8 =
      o.transport == "int8" || (o.name == "hylo" && o.transport == "auto");
  if ((o.name == "hylo" || has_levels(o)) && int8 && members > 127) {
    out.push_back(
        {{"transport", "name"},
         str("int8 holds the sum of at most 127 workers' codes, but a group "
             "has ",
             members,
             has_levels(o) ? "; expected auto or gather"
                           : "; expected a2a or gather")});
  }
  return out;
}

Conflicts check(
    const ReducerOptions& options,
    const std::string& section,
    std::int64_t members) {
  Conflicts out;
  for (const ReducerConflict& conflict : check(options, members)) {
    out.push_back({{}, conflict.message});
    for (const std::string& key : conflict.keys) {
      out.back().keys.push_back(section + "." + key);
    }
  }
  return out;
}

}  // namespace abtrain::compress
