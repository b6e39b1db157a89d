#include "train/waiting.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"

namespace abtrain::train {

namespace {

double own_seconds(const TimeSplit& split) {
  return split.train - split.communication;
}

}  // namespace

Waiting find_waiting(const std::vector<TimeSplit>& spent) {
  Waiting waiting;
  const auto slowest = std::ranges::max_element(spent, {}, own_seconds);
  waiting.slowest = static_cast<int>(slowest - spent.begin());
  for (const TimeSplit& split : spent) {
    const double behind = own_seconds(*slowest) - own_seconds(split);
    waiting.seconds.push_back(std::clamp(behind, 0.0, std::max(0.0, split.communication)));
  }
  if (spent.size() > 1 && slowest->train > 0) {
    const double sum = std::accumulate(waiting.seconds.begin(), waiting.seconds.end(), 0.0);
    waiting.share = sum / static_cast<double>(spent.size() - 1) / slowest->train;
  }
  return waiting;
}

nlohmann::ordered_json times_json(
    const std::vector<TimeSplit>& spent, const Waiting& waiting, std::size_t worker) {
  const TimeSplit& split = spent[worker];
  return {
      {"compute", split.compute},
      {"svd", split.svd},
      {"data", split.data},
      {"waiting", waiting.seconds[worker]},
      {"communication", split.communication - waiting.seconds[worker]}};
}

std::optional<std::string> SlowWatch::look(
    const comm::AllSpent& now, const std::vector<std::string>& hosts) {
  if (now.workers.size() < 2) {
    return std::nullopt;
  }
  if (begin_.workers.empty()) {
    begin_ = now;
    return std::nullopt;
  }
  const std::int64_t steps = now.steps - begin_.steps;
  std::vector<TimeSplit> window = now.workers;
  for (std::size_t i = 0; i < window.size(); ++i) {
    const TimeSplit& before = begin_.workers[i];
    // Decompositions are divided by layers: having more of them does not make a worker slow.
    window[i].train -= before.train + window[i].svd - before.svd;
    window[i].communication -= before.communication;
    window[i].data -= before.data;
  }
  if (steps < kSteps || std::ranges::min(window, {}, &TimeSplit::train).train < seconds_) {
    return std::nullopt;
  }
  begin_ = now;
  const Waiting waiting = find_waiting(window);
  const auto slow = static_cast<std::size_t>(waiting.slowest);
  const double own = own_seconds(window[slow]);
  const double others =
      std::transform_reduce(window.begin(), window.end(), -own, std::plus(), own_seconds) /
      static_cast<double>(window.size() - 1);
  // A single slow window may be chance.
  const bool again = suspect_ == waiting.slowest;
  suspect_ = own - others > kShare * window[slow].train ? waiting.slowest : -1;
  if (!again || !(waiting.share > kShare) || !named_.insert(waiting.slowest).second) {
    return std::nullopt;
  }
  const auto per_step = [&](double seconds) {
    return formatted("{:.3g} ms", 1e3 * seconds / static_cast<double>(steps));
  };
  const bool reads_slowly = window[slow].data > 0.5 * (own - others);
  return formatted(
      "worker {}{} makes the others wait {:.0f} % of the time: its own work takes {} per step{}, "
      "theirs {} (docs/hosts.md, 'A slow worker'); balance: auto would give it smaller batches",
      slow, slow < hosts.size() ? " on " + hosts[slow] : "", 100 * waiting.share, per_step(own),
      reads_slowly ? formatted(" ({} of it waiting for data)", per_step(window[slow].data)) : "",
      per_step(others));
}

}  // namespace abtrain::train
