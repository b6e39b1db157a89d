#include "base/options.h"
#include "linalg/rank_rule.h"

namespace abtrain::linalg {

Fields fields_of(RankRule& r) {
  Fields f;
  f.choice<RankRuleName>(
      "rule",
      r.rule,
      {{"sigma", RankRuleName::Sigma},
       {"energy", RankRuleName::Energy},
       {"fixed", RankRuleName::Fixed},
       {"fraction", RankRuleName::Fraction},
       {"ratio", RankRuleName::Ratio},
       {"budget", RankRuleName::Budget}},
      "how the rank of a layer is chosen");
  f.number(
      "cut",
      r.cut,
      from_to_below(0, 1),
      "sigma: each decomposition keeps the singular values above this share of "
      "the largest");
  f.number(
      "keep",
      r.keep,
      above_to(0, 1),
      "energy: share of the energy that each decomposition keeps of what the "
      "one before it left: n of them may keep as little as keep^n "
      "(docs/methods.md)");
  f.integer("rank", r.rank, between(1, 1e6), "fixed: the rank");
  f.number(
      "fraction",
      r.fraction,
      above_to(0, 1),
      "fraction: share of the full rank");
  f.number(
      "ratio",
      r.ratio,
      between(1, 1e6),
      "ratio: compression of each layer; budget: of the whole model");
  return f;
}

}  // namespace abtrain::linalg
