#include "sweep/halving_section.h"

#include <algorithm>
#include <utility>

#include "base/options.h"
#include "base/options_apply.h"
#include "base/scalars.h"

namespace abtrain::sweep {

namespace {

using Kind = Value::Kind;

// The section `halving` as it was written.
struct HalvingSections {
  double seconds = 0;
  plan::Link link;
  Value pilot, rivals, left_out;
};

Fields fields_of(HalvingSections& s) {
  Fields f;
  f.number(
      "seconds",
      s.seconds,
      between(0, kLargest),
      "training time of a run at full length; its steps follow from what the "
      "pilots took");
  f.text("bandwidth", s.link.bandwidth, "of a link, over which seconds count");
  f.text("latency", s.link.latency, "per message of that link");
  f.integer(
      "nodes",
      s.link.nodes,
      between(0, 1 << 20),
      "hosts of that network; 0: one per worker");
  f.value("pilot", s.pilot, "for pilots only");
  f.value("rivals", s.rivals, "the rivals by their names");
  f.value("left_out", s.left_out, "rivals that make no sense, and why");
  return f;
}

struct RivalSections {
  std::string why;
  Value set, tune;
};

Fields fields_of(RivalSections& s) {
  Fields f;
  f.text("why", s.why, "what it is");
  f.value("set", s.set, "its keys, train.steps among them");
  f.value("tune", s.tune, "its settings");
  return f;
}

class HalvingReader {
 public:
  HalvingReader(AssignmentReader& assignments, std::vector<Problem>& problems)
      : assignments_(assignments), problems_(problems) {}

  Halving halving(const Value& value) {
    HalvingSections sections;
    read_section(sections, value);
    Halving halving;
    halving.seconds = sections.seconds;
    halving.link = sections.link;
    if (sections.pilot.kind == Kind::Section) {
      assignments_.add_section("", sections.pilot, halving.pilot);
    }
    for (const Entry& entry : sections.left_out.entries) {
      halving.left_out.emplace_back(entry.key, entry.value.text);
    }
    for (const Entry& entry : sections.rivals.entries) {
      halving.rivals.push_back(rival(entry));
    }
    if (halving.rivals.empty()) {
      problem(
          value.place,
          "halving.rivals",
          "expected at least one rival, as in 'ddp: {set: {method.name: ddp, "
          "train.steps: 800}, tune: [{}]}'");
    }
    for (const Rival& one : halving.rivals) {
      const std::size_t wanted = halving.rivals.front().tune.size();
      if (one.tune.size() != wanted) {
        problem(
            one.place,
            "halving.rivals." + one.name + ".tune",
            formatted(
                "expected as many settings as {} has, {}, because rivals are "
                "tuned equally; got {}",
                halving.rivals.front().name,
                wanted,
                one.tune.size()));
      }
    }
    return halving;
  }

 private:
  // Reads a section's table; its problems are kept.
  template <class Read>
  void read_section(Read& sections, const Value& value) {
    ReadResult reading;
    apply(fields_of(sections), value, reading);
    std::ranges::move(reading.problems, std::back_inserter(problems_));
  }

  void
  problem(const Location& place, const std::string& key, std::string text) {
    problems_.push_back({place, key, std::move(text)});
  }

  Rival rival(const Entry& entry) {
    const std::string key = "halving.rivals." + entry.key;
    Rival rival;
    rival.name = entry.key;
    rival.place = entry.place;
    if (entry.key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"
                                    "QRSTUVWXYZ0123456789_.-") !=
        std::string::npos) {
      problem(
          entry.place,
          key,
          "expected a name of letters, digits, '_', '.' and '-', because "
          "folders are named after it");
    }
    RivalSections sections;
    read_section(sections, entry.value);
    rival.why = sections.why;
    if (sections.set.kind == Kind::Section) {
      assignments_.add_section("", sections.set, rival.set);
    }
    const auto steps =
        std::ranges::find(rival.set, "train.steps", [](const Assignment& one) {
          return one.override.key;
        });
    std::string why;
    if (steps == rival.set.end() ||
        !parse_integer(steps->text, rival.steps, why) || rival.steps < 1) {
      problem(
          entry.place,
          key + ".set",
          "expected train.steps of at least 1, of which pilots take a share");
    }
    for (const Value& item : sections.tune.items) {
      Choice choice;
      assignments_.add_section("", item, choice);
      rival.tune.push_back(std::move(choice));
    }
    if (rival.tune.empty()) {
      problem(
          entry.place,
          key + ".tune",
          "expected a list of settings; [{}] for the rival as it is");
    }
    return rival;
  }

  AssignmentReader& assignments_;
  std::vector<Problem>& problems_;
};

}  // namespace

Halving read_halving(
    const Value& section,
    AssignmentReader& assignments,
    std::vector<Problem>& problems) {
  return HalvingReader(assignments, problems).halving(section);
}

}  // namespace abtrain::sweep
