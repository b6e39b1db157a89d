#include "train/ledger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace abtrain::train {

namespace {

using nlohmann::ordered_json;
using Scopes = std::map<std::string, comm::TrafficMeter::ByPurpose>;

ordered_json to_json(const Scopes& scopes) {
  ordered_json json = ordered_json::object();
  for (const auto& [scope, purposes] : scopes) {
    for (const comm::Traffic& t : purposes) {
      json[scope].push_back({t.bytes, t.calls, t.seconds});
    }
  }
  return json;
}

// The largest count accepted from a checkpoint: sums of such counts still fit into 64 bits.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 56;

Scopes from_json(const ordered_json& json) {
  Scopes scopes;
  bool ok = json.is_object();
  for (const auto& [scope, purposes] : json.items()) {
    auto& all = scopes[scope];
    ok = ok && purposes.is_array() && purposes.size() == all.size();
    for (std::size_t p = 0; ok && p < all.size(); ++p) {
      const ordered_json& t = purposes[p];
      ok = t.is_array() && t.size() == 3 && read_json(t[0], all[p].bytes) &&
           read_json(t[1], all[p].calls) && read_json(t[2], all[p].seconds) &&
           std::clamp<std::int64_t>(all[p].bytes, 0, kMaxBytes) == all[p].bytes;
    }
  }
  ABT_CHECK(
      ok, DamagedData,
      "the checkpoint's value 'traffic': expected bytes, calls and seconds for "
      "each purpose, got {}",
      shown(json));
  return scopes;
}

// Saves or loads several numbers under one name.
void archive_numbers(
    state::Archive& archive, const std::string& name, std::initializer_list<double*> numbers) {
  std::vector<double> values;
  for (const double* number : numbers) {
    values.push_back(*number);
  }
  archive.value(name, values);
  ABT_CHECK(
      values.size() == numbers.size(), DamagedData,
      "the checkpoint's {} has {} values, expected {}", name, values.size(), numbers.size());
  const double* value = values.data();
  for (double* number : numbers) {
    *number = *value++;
  }
}

// All members of WorkerFigures are doubles.
using Numbers = std::array<double, sizeof(WorkerFigures) / sizeof(double)>;

}  // namespace

WorkerFigures operator+(const WorkerFigures& a, const WorkerFigures& b) {
  auto sum = std::bit_cast<Numbers>(a);
  std::ranges::transform(sum, std::bit_cast<Numbers>(b), sum.begin(), std::plus());
  return std::bit_cast<WorkerFigures>(sum);
}

void Ledger::start() {
  watch_ = Stopwatch();
  paused_seconds_ = meter_.seconds();
}

Ledger::Pause Ledger::begin_pause() {
  const Stopwatch watch;
  meter_.settle(true);
  return {watch, meter_.seconds()};
}

void Ledger::end_pause(const Pause& pause, double TimeSplit::*account) {
  meter_.settle(true);
  own_.seconds.*account += pause.watch.seconds();
  paused_seconds_ += meter_.seconds() - pause.communicated;
}

TimeSplit Ledger::spent(const WorkerFigures& counts) const {
  TimeSplit s = (own_ + counts).seconds;
  s.train = train_seconds();
  s.communication = meter_.seconds() - paused_seconds_;
  s.compute = s.train - s.communication - s.svd - s.data;
  return s;
}

WorkerFigures Ledger::figures(const WorkerFigures& counts, double trained_parameters) {
  meter_.settle(true);
  const auto bytes = [&](comm::Purpose purpose) {
    return static_cast<double>(meter_.of(purpose).bytes);
  };
  WorkerFigures f = own_ + counts;
  f.traffic = {
      .gradient = bytes(comm::Purpose::Gradient),
      .sync = bytes(comm::Purpose::Sync),
      .factors = bytes(comm::Purpose::Factors),
      .orders = bytes(comm::Purpose::Orders),
      .metrics = bytes(comm::Purpose::Metrics),
      .inside_groups = static_cast<double>(
          meter_.of("group", comm::Purpose::Gradient).bytes +
          meter_.of("group", comm::Purpose::Orders).bytes),
      .full_phase = f.traffic.full_phase,
      .ab_phase = f.traffic.ab_phase,
      .switches = f.traffic.switches};
  f.traffic.between_groups = f.traffic.total() - f.traffic.inside_groups;
  f.seconds = spent(counts);
  f.trained_parameters = trained_parameters;
  return f;
}

void Ledger::archive(state::Archive& archive, const WorkerFigures& counts) {
  double shown = seconds();
  // A restored meter lacks the seconds in barriers, so less has to be subtracted after a resume.
  double paused = paused_seconds_ - meter_.other_seconds();
  ordered_json traffic = to_json(meter_.scopes());
  WorkerFigures all = own_ + counts;
  archive.value("seconds", shown);
  archive.value("evaluate_seconds", all.seconds.evaluate);
  archive.value("checkpoint_seconds", all.seconds.checkpoint);
  archive.value("metrics_seconds", paused);
  archive.value("svd_seconds", all.seconds.svd);
  archive.value("data_seconds", all.seconds.data);
  archive_numbers(
      archive, "reducer_seconds",
      {&all.reducer.encode, &all.reducer.collective, &all.reducer.decode});
  archive_numbers(archive, "vnmse", {&all.reducer.vnmse_sum, &all.reducer.vnmse_count});
  archive.value("traffic", traffic);
  archive_numbers(
      archive, "traffic_by_phase",
      {&all.traffic.full_phase, &all.traffic.ab_phase, &all.traffic.switches});
  if (!archive.is_loading()) {
    return;
  }
  constexpr double kMaxSeconds = 1e9;
  ABT_CHECK(
      shown >= 0 && shown < kMaxSeconds, DamagedData,
      "the checkpoint's value 'seconds': expected 0 to {}, got {}", kMaxSeconds, shown);
  watch_ = Stopwatch(shown);
  paused_seconds_ = paused;
  meter_.restore(from_json(traffic));
  own_ = all;
}

void Ledger::average(std::vector<state::State>& states) {
  Scopes mean;
  const auto n = static_cast<double>(states.size());
  paused_seconds_ = 0;
  own_.seconds.svd = own_.seconds.data = 0;
  TrafficSplit& split = own_.traffic;
  split.full_phase = split.ab_phase = split.switches = 0;
  for (state::State& state : states) {
    auto archive = state::Archive::loading(state);
    Ledger other;
    other.archive(archive, {});
    for (const auto& [scope, purposes] : other.meter_.scopes()) {
      for (std::size_t p = 0; p < purposes.size(); ++p) {
        mean[scope][p] += purposes[p];
      }
    }
    paused_seconds_ += other.paused_seconds_ / n;
    own_.seconds.svd += other.own_.seconds.svd / n;
    own_.seconds.data += other.own_.seconds.data / n;
    split.full_phase += other.own_.traffic.full_phase / n;
    split.ab_phase += other.own_.traffic.ab_phase / n;
    split.switches += other.own_.traffic.switches / n;
  }
  for (auto& [scope, purposes] : mean) {
    for (comm::Traffic& traffic : purposes) {
      traffic.bytes = std::llround(static_cast<double>(traffic.bytes) / n);
      traffic.calls = std::llround(static_cast<double>(traffic.calls) / n);
      traffic.seconds /= n;
    }
  }
  meter_.restore(mean);
}

}  // namespace abtrain::train
