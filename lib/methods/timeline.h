// The timetable of a run: stretches of steps that train alike, each ended by an event. It follows
// from the options and the length of the run alone. Methods repeat the same stretches in rounds,
// and each is listed once, so the list is short for a run of any length.
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
  Decompose,                // splits dense weights into factors; the AB phase begins
  Synchronize,              // merges the groups' factors; a dense phase begins
  SynchronizeAndDecompose,  // merges and splits again; the AB phase goes on
  AverageFactors,           // the AB phase goes on with the same ranks and bases
  TrainAlone,               // local steps begin
  SynchronizeFragment       // starts to average one; the mean is used `delay` steps later
};

struct Stretch {
  Phase phase = Phase::Full;
  Over gradients = Over::World;
  std::int64_t steps = 0;     // in one occurrence; may be 0
  Event after = Event::None;  // happens when these steps are done
  std::int64_t fragment = 0;  // for SynchronizeFragment: which one
  // The stretch occurs `times` times: first at step `first`, then every `every` steps.
  std::int64_t first = 0;
  std::int64_t times = 1;
  std::int64_t every = 1;
};

struct Timeline {
  // The last stretch ends with the run: it has the steps that are left, at least one.
  std::vector<Stretch> stretches;
  std::int64_t fragments = 0;  // number in the model; 0: no SynchronizeFragment
  std::int64_t delay = 0;      // of SynchronizeFragment, in steps
  // Durations, in steps, of gradual changes, such as the fall of the ranks and the rise of the
  // learning rate after a switch of phase. Each index has a fixed meaning.
  std::vector<std::int64_t> gradual = {};
  // Whether a longer run, with the same durations in steps, passes through this run's state after
  // its last step. False if this run leaves out an earlier event whose result would come too late.
  // An event due right after the last step is left to the longer run.
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
  // Steps done at the last decomposition of the run. A run that ends in a dense phase decomposes at
  // its end. 0 also if nothing is decomposed.
  std::int64_t last_decomposition() const;
  // The first t <= last at which the other timeline has a different event; `last` if only the
  // durations of gradual changes differ; nullopt if the two runs are the same up to `last`.
  std::optional<std::int64_t> parts_from(const Timeline& other, std::int64_t last) const;
  // The number of steps with these gradients, or of these events, in the whole run.
  std::int64_t steps(Over gradients) const;
  std::int64_t count(Event event) const;
  // The number of these events in the first t steps.
  std::int64_t count(Event event, std::int64_t t) const;
};

// Makes the timeline of a run of `steps` steps: the stretches of `opening`, each `times` times in a
// row, then those of `round` again and again. After the last step nothing happens but the end of
// the run. The result of a round's event is used `delay` steps later; an event is left out if that
// would not be before the last step. Reads phase, gradients, steps, event and fragment of each
// stretch, and `times` in `opening`.
Timeline make_timeline(
    std::vector<Stretch> opening, std::vector<Stretch> round, std::int64_t steps,
    std::int64_t delay = 0);

}  // namespace abtrain::methods
