// A run as a list of stretches of equal steps with the events at their ends, computed from the
// options and the length of the run alone. A method repeats its events every round, so the list is
// short for a run of any length.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace abtrain::methods {

// How a step trains: dense, on factors, or dense with each worker alone.
enum class Phase { Full, Ab, Local };

// "full", "ab" or "local".
const char* name_of(Phase phase);

// The workers over which a step averages its gradients.
enum class Over { World, Group, Nobody };

enum class Event {
  None,                     // the run ends (Method::finish)
  Decompose,                // dense weights; the AB phase begins
  Synchronize,              // a dense phase begins
  SynchronizeAndDecompose,  // the AB phase goes on
  AverageFactors,           // the AB phase goes on, with the same ranks and bases
  TrainAlone,               // local steps begin
  SynchronizeFragment       // starts; the result is used `delay` steps later
};

struct Stretch {
  Phase phase = Phase::Full;
  Over gradients = Over::World;
  std::int64_t steps = 0;     // of one occurrence; may be 0
  Event after = Event::None;  // happens when these steps are done
  std::int64_t fragment = 0;  // of SynchronizeFragment
  // The stretch occurs `times` times: first at step `first`, then every `every` steps.
  std::int64_t first = 0;
  std::int64_t times = 1;
  std::int64_t every = 1;
};

struct Timeline {
  // The run ends in the last stretch, which is cut short but has at least one step.
  std::vector<Stretch> stretches;
  std::int64_t fragments = 0;  // of the model; 0: no SynchronizeFragment
  std::int64_t delay = 0;      // steps, of SynchronizeFragment
  // The durations, in steps, of gradual changes (the rate after a switch, the ranks); each index
  // has a fixed meaning.
  std::vector<std::int64_t> gradual = {};
  // Whether a longer run, with the same lengths in steps, passes through this run's final state:
  // true unless this run leaves out an event that would come too late. If an event would come right
  // after the last step, the longer run goes on with that event.
  bool goes_on = true;

  // The stretch whose event happens once t steps are done; if there is none, a stretch without an
  // event.
  Stretch ending_after(std::int64_t t) const;
  // The last event that has happened once t steps are done.
  struct Last {
    std::int64_t at = -1;  // steps done then; -1: nothing has happened yet
    Event event = Event::None;
  };
  Last last_event(std::int64_t t) const;
  // Steps done at the last decomposition of the run: a run that ends in a dense
  // phase decomposes once more. 0: nothing is decomposed.
  std::int64_t last_decomposition() const;
  // The first t <= last at which the other timeline has a different event; `last` if only the
  // durations of gradual changes differ; nullopt if the two runs are the same up to `last`.
  std::optional<std::int64_t> parts_from(const Timeline& other, std::int64_t last) const;
  // Steps and events of the whole run.
  std::int64_t steps(Over gradients) const;
  std::int64_t count(Event event) const;
  // The events of the first t steps.
  std::int64_t count(Event event, std::int64_t t) const;
};

// Makes the timeline of a run of `steps` steps: the stretches of `opening`, each `times` times in a
// row, then those of `round` again and again. After the last step nothing happens but the end of
// the run. Events of rounds come at least `delay` steps before the last step, because their results
// are used `delay` steps later. Apart from `times` in `opening`, only phase, gradients, steps,
// event and fragment of each stretch matter.
Timeline make_timeline(
    std::vector<Stretch> opening, std::vector<Stretch> round, std::int64_t steps,
    std::int64_t delay = 0);

}  // namespace abtrain::methods
