#include "methods/timeline.h"

#include <algorithm>

namespace abtrain::methods {

const char* name_of(Phase phase) {
  return phase == Phase::Full ? "full" : phase == Phase::Ab ? "ab" : "local";
}

Stretch Timeline::ending_after(std::int64_t t) const {
  for (const Stretch& s : stretches) {
    const std::int64_t since = t - (s.first + s.steps);
    if (s.after != Event::None && since >= 0 && since % s.every == 0 && since / s.every < s.times) {
      return s;
    }
  }
  return {};
}

std::optional<std::int64_t> Timeline::parts_from(const Timeline& other, std::int64_t last) const {
  for (std::int64_t t = 0; t <= last; ++t) {
    if (ending_after(t).after != other.ending_after(t).after) {
      return t;
    }
  }
  return gradual == other.gradual ? std::nullopt : std::optional(last);
}

Timeline::Last Timeline::last_event(std::int64_t t) const {
  Last last;
  for (const Stretch& s : stretches) {
    const std::int64_t end = s.first + s.steps;
    if (s.after != Event::None && t >= end) {
      const std::int64_t k = std::min((t - end) / s.every, s.times - 1);
      if (end + k * s.every > last.at) {
        last = {end + k * s.every, s.after};
      }
    }
  }
  return last;
}

std::int64_t Timeline::last_decomposition() const {
  std::int64_t last = 0;
  for (const Stretch& s : stretches) {
    const bool decomposes = s.after == Event::Decompose ||
                            s.after == Event::SynchronizeAndDecompose ||
                            (s.after == Event::None && s.phase == Phase::Full);
    if (decomposes) {
      last = std::max(last, s.first + (s.times - 1) * s.every + s.steps);
    }
  }
  return last;
}

std::int64_t Timeline::steps(Over gradients) const {
  std::int64_t sum = 0;
  for (const Stretch& s : stretches) {
    sum += s.gradients == gradients ? s.times * s.steps : 0;
  }
  return sum;
}

std::int64_t Timeline::count(Event event) const {
  std::int64_t sum = 0;
  for (const Stretch& s : stretches) {
    sum += s.after == event ? s.times : 0;
  }
  return sum;
}

std::int64_t Timeline::count(Event event, std::int64_t t) const {
  std::int64_t sum = 0;
  for (const Stretch& s : stretches) {
    const std::int64_t end = s.first + s.steps;
    if (s.after == event && t >= end) {
      sum += std::min((t - end) / s.every + 1, s.times);
    }
  }
  return sum;
}

Timeline make_timeline(
    std::vector<Stretch> opening, std::vector<Stretch> round, std::int64_t steps,
    std::int64_t delay) {
  Timeline timeline;
  timeline.delay = delay;
  const std::int64_t latest = steps - 1;  // for an event whose result is used at once
  const auto end_in = [&](const Stretch& last, std::int64_t first) {
    timeline.stretches.push_back(
        {last.phase, last.gradients, steps - first, Event::None, last.fragment, first});
  };
  std::int64_t t = 0;
  for (Stretch& s : opening) {
    s.first = t;
    const std::int64_t wanted = s.times;
    s.every = wanted > 1 ? s.steps : 1;
    s.times = s.steps == 0 ? wanted : std::min(wanted, (latest - t) / s.steps);
    t += s.times * s.steps;
    if (s.times > 0) {
      timeline.stretches.push_back(s);
    }
    if (s.times < wanted) {
      end_in(s, t);
      return timeline;
    }
  }
  std::int64_t every = 0;
  for (const Stretch& s : round) {
    every += s.steps;
  }
  for (Stretch& s : round) {
    s.first = t;
    s.every = every;
    t += s.steps;
    s.times = t > latest - delay ? 0 : (latest - delay - t) / every + 1;
    timeline.goes_on = timeline.goes_on && t + s.times * every >= steps;
    if (s.times > 0) {
      timeline.stretches.push_back(s);
    }
  }
  // The run ends in the stretch that comes next: the first with the fewest occurrences.
  const Stretch& last = *std::ranges::min_element(round, {}, &Stretch::times);
  end_in(last, last.first + last.times * every);
  return timeline;
}

}  // namespace abtrain::methods
