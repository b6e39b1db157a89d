#include "base/options.h"
#include "linalg/rank_rule.h"

namespace abtrain::linalg {

Fields fields_of(RankRule& r) {
  Fields f;
  Names<RankRuleName> names;
  for (const RankRuleKind& kind : rank_rules()) {
    names.emplace_back(kind.name, kind.rule);
  }
  f.choice("rule", r.rule, names, "how the rank of a layer is chosen");
  f.number(
       "cut", r.cut, from_to_below(0, 1),
       "each decomposition keeps the singular values above this share of "
       "the largest")
      .of({"sigma"}, "rule");
  f.number(
       "keep", r.keep, above_to(0, 1),
       "share of a layer's energy that a cut keeps; in training, no "
       "later cut goes below the rank of the first")
      .of({"energy"}, "rule");
  f.integer("rank", r.rank, between(1, 1e6), "the rank of every factored layer")
      .of({"fixed"}, "rule");
  f.number(
       "ratio", r.ratio, between(1, 1e6),
       "compression of each layer, or for budget of the whole model")
      .of({"ratio", "budget"}, "rule");
  f.number(
       "floor", r.floor, between(0, 1),
       "each layer keeps at least this share of its rank under equal compression of all layers")
      .of({"budget"}, "rule");
  f.auto_or_integer(
       "multiple", r.multiple, between(1, 1024),
       "all ranks are multiples of this, rounded down where a ratio is given, otherwise up; "
       "auto: 8 for bf16 on a GPU, else 1")
      .free(MayChange::ToAuto);
  return f;
}

}  // namespace abtrain::linalg
