// A run as a list of stretches of equal steps, with what happens at their ends,
// computed from the options and the length of the run alone. Whatever a method
// does comes back every round, so that the list is short for a run of any
// length.
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
  // There are `times` occurrences, the first at step `first`, the others each
  // `every` steps later.
  std::int64_t first = 0;
  std::int64_t times = 1;
  std::int64_t every = 1;
};

struct Timeline {
  // The last one is what the run ends in: cut, but with at least one step.
  std::vector<Stretch> stretches;
  std::int64_t fragments = 0;  // of the model; 0: no SynchronizeFragment
  std::int64_t delay = 0;      // steps, of SynchronizeFragment
  // Steps over which something changes gradually (the rate after a switch, the
  // ranks), each of one meaning.
  std::vector<std::int64_t> gradual = {};
  // Whether a longer run, with the same lengths in steps, passes through the
  // state after the last step: no event before it is left out because it comes
  // too late. An event after that step is the first thing that the longer run does.
  bool goes_on = true;

  // The stretch whose event happens once t steps are done; one without an event
  // if none does.
  Stretch ending_after(std::int64_t t) const;
  // The last event once t steps are done.
  struct Last {
    std::int64_t at = -1;  // steps done then; -1: nothing has happened yet
    Event event = Event::None;
  };
  Last last_event(std::int64_t t) const;
  // Steps done at the last decomposition of the run: a run that ends in a dense
  // phase decomposes once more. 0: nothing is decomposed.
  std::int64_t last_decomposition() const;
  // The first t <= last after which the other timeline has a different event. If
  // there is none but gradual changes take different numbers of steps, `last`.
  // nullopt: up to `last`, the two runs are the same.
  std::optional<std::int64_t> parts_from(const Timeline& other, std::int64_t last) const;
  // Steps and events of the whole run.
  std::int64_t steps(Over gradients) const;
  std::int64_t count(Event event) const;
  // Of these, the events of the first t steps.
  std::int64_t count(Event event, std::int64_t t) const;
};

// The run of `steps` steps that begins with the stretches `opening`, each as often
// as its `times` says in a row, and then repeats those of `round`. Nothing but the
// end of the run happens after its last step. `delay`: events of rounds happen so
// many steps earlier than that, because their result is used so much later.
// Otherwise needs only phase, gradients, steps and event of each stretch.
Timeline make_timeline(
    std::vector<Stretch> opening, std::vector<Stretch> round, std::int64_t steps,
    std::int64_t delay = 0);

}  // namespace abtrain::methods
