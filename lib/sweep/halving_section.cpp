#include "sweep/halving_section.h"

#include <algorithm>

#include "base/error.h"
#include "base/options.h"
#include "base/scalars.h"

namespace abtrain::sweep {

namespace {

const Names<LeftOut::Kind> kKinds = {
    {"other", LeftOut::Kind::Other}, {"diverged", LeftOut::Kind::Diverged}};

// The parts of the section `halving` that have keys of their own.
struct HalvingSections {
  Value pilot, rivals, left_out;
};

Fields fields_of(Halving& halving, HalvingSections& s) {
  Fields f;
  f.number(
      "seconds", halving.seconds, between(0, kLargest),
      "training time of a run at full length; its steps follow from what the "
      "pilots took");
  f.text("bandwidth", halving.link.bandwidth, "of a link, over which seconds count");
  f.text("latency", halving.link.latency, "per message of that link");
  f.integer(
      "nodes", halving.link.nodes, between(0, 1 << 20), "hosts of that network; 0: one per worker");
  f.integer(
      "settings", halving.settings, between(0, 1000),
      "that each rival may try; 0: as many as its `tune` has");
  f.integer(
      "finalist_seeds", halving.finalist_seeds, between(0, 10000),
      "seeds of the two best rivals, if more than `seeds`");
  f.value("pilot", s.pilot, "for pilots only");
  f.value("rivals", s.rivals, "the rivals by their names");
  f.value("left_out", s.left_out, "rivals that do not take part, and why");
  return f;
}

struct RivalSections {
  Value set, tune;
};

Fields fields_of(Rival& rival, RivalSections& s) {
  Fields f;
  f.text("why", rival.why, "what it is");
  f.value("set", s.set, "its keys, train.steps among them");
  f.value("tune", s.tune, "the moves that it may try, the first of them from `set`");
  return f;
}

Rival read_rival(const Entry& entry, AssignmentReader& reader) {
  const std::string key = "halving.rivals." + entry.key;
  Rival rival;
  rival.name = entry.key;
  rival.place = entry.place;
  if (entry.key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
                                  "STUVWXYZ0123456789_.-") != std::string::npos) {
    reader.problem(
        entry.place, key,
        "expected a name of letters, digits, '_', '.' and '-', because "
        "folders are named after it");
  }
  RivalSections sections;
  reader.read(fields_of(rival, sections), entry.value);
  reader.add_section("", sections.set, rival.set);
  const auto steps = std::ranges::find(
      rival.set, "train.steps", [](const Assignment& one) { return one.override.key; });
  std::string why;
  if (steps == rival.set.end() || !parse_integer(steps->text, rival.steps, why) ||
      rival.steps < 1) {
    reader.problem(
        entry.place, key + ".set",
        "expected train.steps of at least 1, of which pilots take a share");
  }
  for (const Value& item : sections.tune.items) {
    rival.tune.push_back(reader.move(item));
  }
  if (rival.tune.empty()) {
    reader.problem(
        entry.place, key + ".tune", "expected a list of settings; [{}] for the rival as it is");
  }
  return rival;
}

// Reads a reason alone, or {kind: diverged, why: REASON}.
LeftOut read_left_out(const Entry& entry, AssignmentReader& reader) {
  LeftOut one{entry.key, entry.value.text};
  if (entry.value.kind == Value::Kind::Section) {
    Fields f;
    f.choice("kind", one.kind, kKinds, "whether it diverged");
    f.text("why", one.why, "the reason");
    reader.read(f, entry.value);
  } else if (entry.value.kind != Value::Kind::Scalar) {
    reader.problem(
        entry.place, "halving.left_out." + entry.key,
        "expected a reason, or {kind: diverged, why: REASON}; got " + describe(entry.value));
  }
  return one;
}

}  // namespace

std::string name_of(LeftOut::Kind kind) {
  return name_in(kKinds, kind);
}

Halving read_halving(const Value& section, AssignmentReader& reader) {
  Halving halving;
  HalvingSections sections;
  reader.read(fields_of(halving, sections), section);
  reader.add_section("", sections.pilot, halving.pilot);
  for (const Entry& entry : sections.left_out.entries) {
    halving.left_out.push_back(read_left_out(entry, reader));
  }
  for (const Entry& entry : sections.rivals.entries) {
    halving.rivals.push_back(read_rival(entry, reader));
  }
  if (halving.rivals.empty()) {
    reader.problem(
        section.place, "halving.rivals",
        "expected at least one rival, as in 'ddp: {set: {method.name: ddp, "
        "train.steps: 800}, tune: [{}]}'");
  }
  for (const Rival& one : halving.rivals) {
    const Rival& first = halving.rivals.front();
    if (halving.settings == 0 && one.tune.size() != first.tune.size()) {
      reader.problem(
          one.place, "halving.rivals." + one.name + ".tune",
          formatted(
              "expected as many settings as {} has, {}, because rivals are "
              "tuned equally, or halving.settings; got {}",
              first.name, first.tune.size(), one.tune.size()));
    }
  }
  if (halving.settings == 0 && !halving.rivals.empty()) {
    halving.settings = std::ssize(halving.rivals.front().tune);
  }
  return halving;
}

void give_all(Halving& halving, const Choice& common, AssignmentReader& reader) {
  for (const Assignment& given : common) {
    const std::string& key = given.override.key;
    if (key == "train.steps") {
      reader.problem(given.override.place, key, "stands in each rival's own set, as its length");
      continue;
    }
    for (Rival& rival : halving.rivals) {
      const auto own =
          std::ranges::find(rival.set, key, [](const Assignment& one) { return one.override.key; });
      if (own == rival.set.end()) {
        continue;
      }
      if (key.ends_with(".name") && own->text != given.text) {
        reader.problem(
            given.override.place, key,
            formatted("cannot hold for all: the rival {} needs {}", rival.name, own->text));
      }
      rival.set.erase(own);
    }
  }
}

}  // namespace abtrain::sweep
