#include "base/mapped.h"
#include "base/text.h"
#include "sweep/rivals.h"

namespace abtrain::sweep {

namespace {

// "a.b: VALUE"
std::string as_yaml(const std::string& set) {
  return std::string(set).replace(set.find('='), 1, ": ");
}

std::string as_flow(const Sets& sets) {
  return "{" + join(mapped(sets, as_yaml), ", ") + "}";
}

}  // namespace

std::string rivals_yaml(const RivalList& list, std::int64_t seeds, const std::string& head) {
  std::string out = head;
  out += formatted("base: {}\nname: {}\n", in_quotes(list.config), in_quotes(list.name));
  if (!list.output.empty()) {
    out += formatted("output: {}\n", in_quotes(list.output));
  }
  out += "set:\n";
  for (const std::string& one : list.common) {
    out += "  " + as_yaml(one) + "\n";
  }
  out += "halving:\n";
  if (list.seconds > 0) {
    out += formatted("  seconds: {}\n", list.seconds);
  }
  if (!list.link.bandwidth.empty()) {
    out += "  bandwidth: " + in_quotes(list.link.bandwidth) + "\n";
    if (!list.link.latency.empty()) {
      out += "  latency: " + in_quotes(list.link.latency) + "\n";
    }
    if (list.link.nodes > 0) {
      out += formatted("  nodes: {}\n", list.link.nodes);
    }
  }
  if (list.settings > 1) {
    out += "  # Of the moves in `tune`, each from the best setting so far.\n";
  }
  out += formatted("  settings: {}\n", list.settings);
  if (list.finalist_seeds > seeds) {
    out += formatted("  finalist_seeds: {}\n", list.finalist_seeds);
  }
  out += "  pilot: " + as_flow(list.pilot) + "\n  rivals:\n";
  for (const RivalPlan& rival : list.rivals) {
    out += formatted("    {}:\n      why: {}\n      set:\n", rival.name, in_quotes(rival.why));
    for (const std::string& one : rival.set) {
      out += "        " + as_yaml(one) + "\n";
    }
    out += formatted("        train.steps: {}\n      tune:\n", rival.steps);
    for (const Sets& setting : rival.tune) {
      out += "        - " + as_flow(setting) + "\n";
    }
  }
  if (!list.left_out.empty()) {
    out += "  left_out:\n";
    for (const LeftOut& one : list.left_out) {
      const std::string why = in_quotes(one.why);
      out += formatted(
          "    {}: {}\n", one.name,
          one.kind == LeftOut::Kind::Other
              ? why
              : formatted("{{kind: {}, why: {}}}", name_of(one.kind), why));
    }
  }
  out += formatted("seeds: {}\n", seeds);
  return out;
}

}  // namespace abtrain::sweep
