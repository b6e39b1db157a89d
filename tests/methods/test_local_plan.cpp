// When and what methods of local steps synchronize.
#include "methods/local/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "error_of.h"
#include "methods/local/fragment.h"

namespace abtrain::methods {
namespace {

// Step -> fragment, written down round by round.
std::map<std::int64_t, std::int64_t> drawn(const LocalPlan& plan) {
  std::map<std::int64_t, std::int64_t> events;
  for (std::int64_t round = 0; round < 40; ++round) {
    for (std::int64_t f = 0; f < plan.fragments; ++f) {
      const std::int64_t t =
          plan.warmup + round * plan.interval + (f + 1) * plan.interval / plan.fragments;
      if (t + plan.delay < plan.steps) {
        EXPECT_EQ(events.count(t), 0U);
        events[t] = f;
      }
    }
  }
  return events;
}

TEST(LocalPlan, FollowsTheTimelineForAllSmallPlans) {
  for (std::int64_t w = 0; w <= 5; ++w) {
    for (std::int64_t h = 1; h <= 9; ++h) {
      for (std::int64_t f = 1; f <= h; ++f) {
        for (std::int64_t d = 0; d * f < h; ++d) {
          const LocalPlan plan{w, h, f, d, 31};
          const auto expected = drawn(plan);
          const Timeline timeline = local_timeline(plan);
          EXPECT_EQ(timeline.steps(Over::World), w);
          EXPECT_EQ(timeline.steps(Over::Nobody), 31 - w);
          EXPECT_EQ(timeline.count(Event::SynchronizeFragment), std::ssize(expected));
          std::int64_t free = 0;  // when the last one was applied
          for (std::int64_t t = 0; t <= 31; ++t) {
            SCOPED_TRACE(formatted("W {} H {} F {} D {} t {}", w, h, f, d, t));
            const Stretch ended = timeline.ending_after(t);
            const auto found = expected.find(t);
            if (t == w) {
              EXPECT_EQ(ended.after, Event::TrainAlone);
              continue;
            }
            ASSERT_EQ(
                ended.after, found != expected.end() ? Event::SynchronizeFragment : Event::None);
            if (found != expected.end()) {
              EXPECT_EQ(ended.fragment, found->second);
              EXPECT_GE(t, free);  // one under way
              free = t + d;
            }
          }
        }
      }
    }
  }
}

MethodOptions diloco_options(double interval, std::int64_t fragments, int delay) {
  MethodOptions o;
  o.name = "diloco";
  o.warmup_steps = Duration::percent(10);
  o.sync_every = Duration::steps(interval);
  o.fragments = fragments;
  o.delay = delay;
  return o;
}

std::string fault_of(const MethodOptions& options) {
  return expect_error([&] { make_local_plan(options, {100, 200}); }, ErrorKind::Config);
}

TEST(LocalPlan, ReadsTheOptions) {
  const LocalPlan plan = make_local_plan(diloco_options(12, 3, 3), {100, 200});
  EXPECT_EQ(plan.warmup, 20);
  EXPECT_EQ(plan.interval, 12);
  EXPECT_EQ(plan.fragments, 3);
  EXPECT_EQ(plan.delay, 3);
  EXPECT_EQ(plan.steps, 200);
  MethodOptions local = diloco_options(12, 3, 3);
  local.name = "local-sgd";  // whose models are never cut
  EXPECT_EQ(make_local_plan(local, {100, 200}).fragments, 1);
  EXPECT_EQ(make_local_plan(local, {100, 200}).delay, 0);
}

TEST(LocalPlan, RefusesWhatDoesNotFit) {
  EXPECT_EQ(
      fault_of(diloco_options(4, 5, 0)),
      "method.fragments: expected at most method.sync_every (4 steps), got 5");
  EXPECT_NO_THROW(make_local_plan(diloco_options(10, 3, 3), {100, 200}));
  EXPECT_EQ(
      fault_of(diloco_options(10, 3, 4)),
      "method.delay: expected less than method.sync_every / method.fragments "
      "(10 / 3 steps), got 4");
  EXPECT_EQ(
      fault_of(diloco_options(10, 1, 10)),
      "method.delay: expected less than method.sync_every / method.fragments "
      "(10 / 1 steps), got 10");
  // Products that 64 bits do not hold.
  fault_of(diloco_options(10, 4, std::numeric_limits<int>::max()));
  MethodOptions huge = diloco_options(12, 4, 0);
  huge.sync_every = Duration::epochs(1e8);
  huge.delay = std::int64_t{1} << 62;
  fault_of(huge);
  MethodOptions late = diloco_options(10, 1, 0);
  late.warmup_steps = Duration::epochs(2);
  EXPECT_EQ(
      fault_of(late),
      "method.warmup_steps: a warm-up of 200 steps leaves no local step in a "
      "run of 200");
}

// Layers of these sizes, each a weight and (but the first) a bias of 3; the
// first parameter stands before all weights. Weights come first in the buffer.
std::vector<compress::Slot> slots_of_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<compress::Slot> slots;
  std::int64_t offset = 0;
  const auto add = [&](std::string name, std::int64_t numel, int position) {
    slots.push_back({std::move(name), offset, {numel}, position});
    offset += numel;
  };
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    add(formatted("w{}", i), sizes[i], i == 0 ? 1 : static_cast<int>(2 * i));
  }
  add("first", 3, 0);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    add(formatted("b{}", i), 3, static_cast<int>(2 * i + 1));
  }
  return slots;
}

std::vector<int> weights_of(std::size_t layers) {
  std::vector<int> positions;
  for (std::size_t i = 0; i < layers; ++i) {
    positions.push_back(i == 0 ? 1 : static_cast<int>(2 * i));
  }
  return positions;
}

// The smallest largest part, by trying all cuts.
std::int64_t best(const std::vector<std::int64_t>& sizes, std::size_t from, int parts) {
  std::int64_t sum = 0;
  std::int64_t least = std::int64_t{1} << 40;
  for (std::size_t i = from; i < sizes.size(); ++i) {
    sum += sizes[i] + 3;
    if (parts == 1) {
      least = sum;
    } else if (i + 1 < sizes.size()) {
      least = std::min(least, std::max(sum, best(sizes, i + 1, parts - 1)));
    }
  }
  return parts == 1 ? sum : least;
}

TEST(Fragments, AreWholeLayersInOrderAndTheLargestIsTheSmallestPossible) {
  const std::vector<std::vector<std::int64_t>> models = {
      {5},
      {1, 1},
      {7, 1, 1, 1, 9},
      {100, 3, 3, 3, 3, 3, 3, 80, 2, 2},
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
  for (const auto& sizes : models) {
    const auto slots = slots_of_sizes(sizes);
    const auto layers = static_cast<std::int64_t>(sizes.size());
    for (std::int64_t count = 1; count <= layers; ++count) {
      const auto fragments = cut_fragments(slots, weights_of(sizes.size()), count);
      ASSERT_EQ(static_cast<std::int64_t>(fragments.size()), count);
      std::int64_t largest = 0;
      int last = -1;  // position
      std::size_t tensors = 0;
      for (const Fragment& fragment : fragments) {
        largest = std::max(largest, fragment.numel);
        std::int64_t numel = 0;
        std::vector<int> positions;
        for (const compress::Slot& slot : fragment.slots) {
          EXPECT_EQ(slot.offset, numel);
          numel += slot.numel();
          positions.push_back(slot.position);
        }
        EXPECT_EQ(numel, fragment.numel);
        std::ranges::sort(positions);
        ASSERT_FALSE(positions.empty());
        EXPECT_EQ(positions.front(), last + 1);  // neighbors
        EXPECT_EQ(positions.front() % 2, 0);     // a weight, or the first of all
        last = positions.back();
        tensors += fragment.slots.size();
        // The ranges are the slots' places in the buffer, in their order.
        std::vector<std::int64_t> places, wanted;
        for (const compress::Range& range : fragment.ranges) {
          for (std::int64_t k = 0; k < range.size; ++k) {
            places.push_back(range.begin + k);
          }
        }
        for (const compress::Slot& slot : fragment.slots) {
          const auto original = std::ranges::find(slots, slot.name, &compress::Slot::name);
          for (std::int64_t k = 0; k < slot.numel(); ++k) {
            wanted.push_back(original->offset + k);
          }
        }
        EXPECT_EQ(places, wanted);
      }
      EXPECT_EQ(tensors, slots.size());
      EXPECT_EQ(largest, best(sizes, 0, static_cast<int>(count)));
    }
  }
}

TEST(Fragments, MoreThanLayersAreRefused) {
  EXPECT_EQ(
      error_of([&] {
        cut_fragments(slots_of_sizes({4, 4, 4}), weights_of(3), 4);
      }),
      Thrown(78, "method.fragments: expected at most the 3 layers of the model, got 4"));
}

}  // namespace
}  // namespace abtrain::methods
