#include "sweep/search.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/scalars.h"
#include "config/check_run.h"
#include "data/dataset.h"
#include "report/compare.h"
#include "sweep/assignments.h"
#include "sweep/resolve_points.h"

namespace abtrain::sweep {

namespace {

constexpr std::int64_t kSeedsThatDecide = 2;

// A number with its unit, as "20 steps" or "0.02", times a factor; "" if it is no number.
std::string scaled(const std::string& text, double factor) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) {
    return "";
  }
  const std::string unit(end, text.data() + text.size());
  value *= factor;
  return print_number(unit.starts_with(" step") ? std::max(1.0, std::round(value)) : value) + unit;
}

// The configuration of a run with these keys, as the run would use it.
std::string content_with(const Sweep& sweep, const Choice& values) {
  const config::RunOptions options = resolve(sweep, {0, "", values}).options;
  data::DatasetShape set;
  try {
    set = data::dataset_shape(options.data);
  } catch (const Error&) {
    return content_of(options);  // training reports the error
  }
  config::check_run(options, set, set.train - options.data.validation);
  return content_of(options);
}

// True if a step takes as long in both settings: they differ at most in options of the optimizer,
// which only change values.
bool take_as_long(const Choice& a, const Choice& b) {
  const auto is_free = [](const Assignment& one) {
    return one.override.key.starts_with("optimizer.");
  };
  Choice left = a;
  Choice right = b;
  std::erase_if(left, is_free);
  std::erase_if(right, is_free);
  return contains(left, right) && contains(right, left);
}

std::vector<double> qualities_of(const std::vector<PilotResult>& results) {
  std::vector<double> all;
  std::ranges::transform(results, std::back_inserter(all), &PilotResult::quality);
  return all;
}

}  // namespace

Choice merged(const Choice& base, const Choice& over) {
  Choice all;
  std::ranges::copy_if(base, std::back_inserter(all), [&](const auto& one) {
    return std::ranges::none_of(
        over, [&](const Assignment& other) { return other.override.key == one.override.key; });
  });
  all.insert(all.end(), over.begin(), over.end());
  return all;
}

bool Search::add(const Move& move, std::size_t from, double share) {
  const Choice base = trials_.empty() ? Choice() : trials_[from].setting;
  Trial trial{.setting = base, .content = {}, .from = from};
  for (const Assignment& one : move.set) {
    trial.moved.insert(one.override.key);
  }
  for (const Move::Factor& factor : move.factors) {
    trial.moved.insert(factor.key);
  }
  if (std::ranges::count(without_effect_, trial.moved) > 1) {
    return false;
  }
  const auto steps =
      std::max<std::int64_t>(1, std::llround(share * static_cast<double>(rival_->steps)));
  const std::string text = std::to_string(steps);
  const Choice pilot = merged(
      sweep_->halving->pilot,
      {Assignment{config::literal_override("train.steps", text, rival_->place), text}});
  const auto all_keys = [&](const Choice& setting) {
    return merged(merged(rival_->set, setting), pilot);
  };
  try {
    Choice changed = move.set;
    if (!move.factors.empty()) {
      config::RunOptions options = resolve(*sweep_, {0, "", all_keys(base)}).options;
      const Fields fields = fields_of(options);
      for (const auto& [key, factor, place] : move.factors) {
        const std::string value = scaled(find_field(fields, key)->print(), factor);
        changed.push_back({config::literal_override(key, value, place), value});
      }
    }
    trial.setting = merged(base, changed);
    trial.content = content_with(*sweep_, all_keys(trial.setting));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Config) {
      throw;
    }
    if (!move.factors.empty()) {
      return false;  // out of the key's range, or longer than a pilot
    }
    trial.setting = merged(base, move.set);
    trial.content = formatted("wrong {}", trials_.size());  // reported when all runs are checked
  }
  if (std::ranges::count(trials_, trial.content, &Trial::content) > 0) {
    return false;
  }
  trials_.push_back(std::move(trial));
  return true;
}

std::vector<Search::Run> Search::explore(std::size_t target, double share) {
  const std::size_t begin = trials_.size();
  const std::size_t missing = std::min(kAtOnce, target - std::min(target, tried()));
  const auto is_enough = [&] { return trials_.size() - begin >= missing; };
  std::vector<std::size_t> bases = ranked();
  if (bases.empty()) {
    bases = {0};
  }
  for (const std::size_t base : bases) {
    for (std::size_t i = 0; i < rival_->tune.size() && !is_enough(); ++i) {
      add(rival_->tune[next_++ % rival_->tune.size()], base, share);
    }
  }
  if (trials_.empty()) {
    throw_any(
        {{rival_->place, "halving.rivals." + rival_->name + ".tune",
          "expected at least one setting that the configuration can have, such as {}"}},
        ErrorKind::Config);
  }
  std::vector<Run> runs;
  for (std::size_t i = begin; i < trials_.size(); ++i) {
    runs.push_back({i, rival_->steps});
  }
  return runs;
}

std::vector<Search::Run> Search::decide() const {
  std::vector<std::size_t> order = ranked();
  std::erase(order, 0);
  std::vector<Run> runs;
  for (std::int64_t repeat = 0; repeat < kSeedsThatDecide; ++repeat) {
    runs.push_back({0, steps_of(0), repeat});
    if (!order.empty()) {
      runs.push_back({order.front(), steps_of(order.front()), repeat});
    }
  }
  return runs;
}

void Search::learn(const std::vector<Run>& runs, const std::vector<PilotResult>& results) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Trial& trial = trials_[runs[i].setting];
    (trial.first.empty() ? trial.first : trial.repeats).push_back(results[i]);
    ++pilots_;
    pilot_seconds_ += results[i].seconds;
  }
  for (const Run& run : runs) {
    const Trial& trial = trials_[run.setting];
    if (run.setting > 0 && trial.repeats.empty() && repeats_another(run.setting)) {
      const Trial& base = trials_[trial.from];
      if (base.first.front().loss == trial.first.front().loss) {
        without_effect_.push_back(trial.moved);
      }
    }
  }
}

bool Search::repeats_another(std::size_t index) const {
  const Trial& trial = trials_[index];
  return !trial.first.empty() && std::isfinite(trial.first.front().quality) &&
         std::any_of(
             trials_.begin(), trials_.begin() + static_cast<std::ptrdiff_t>(index),
             [&](const Trial& other) {
               return !other.first.empty() &&
                      other.first.front().quality == trial.first.front().quality &&
                      other.first.front().loss == trial.first.front().loss;
             });
}

std::size_t Search::tried() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    count += repeats_another(i) ? 0 : 1;
  }
  return count;
}

std::vector<std::size_t> Search::ranked() const {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (!trials_[i].first.empty() && !repeats_another(i)) {
      order.push_back(i);
    }
  }
  std::ranges::stable_sort(
      order, std::greater(), [&](std::size_t i) { return trials_[i].first.front().quality; });
  return order;
}

std::int64_t Search::steps_of(std::size_t index) const {
  const bool is_decided = !trials_[0].repeats.empty();
  double fastest = 0;
  for (const Trial& trial : trials_) {
    if (take_as_long(trial.setting, trials_[index].setting)) {
      for (const PilotResult& result : is_decided ? trial.repeats : trial.first) {
        fastest = std::max(fastest, result.steps_per_second);
      }
    }
  }
  const double seconds = sweep_->halving->seconds;
  return seconds > 0 && fastest > 0 ? std::max<std::int64_t>(1, std::llround(seconds * fastest))
                                    : rival_->steps;
}

Search::Run Search::chosen() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < trials_.size(); ++i) {
    best = trials_[i].repeats.empty() ? best : i;
  }
  if (best > 0) {
    const auto own = qualities_of(trials_[0].repeats);
    const auto other = qualities_of(trials_[best].repeats);
    const double gain = report::mean(other) - report::mean(own);
    const double spread = std::hypot(
                              report::standard_deviation(own).value_or(0),
                              report::standard_deviation(other).value_or(0)) /
                          std::numbers::sqrt2;
    // If the rival as configured has diverged, the gain is infinite and the spread unknown.
    const bool is_rescue = !std::isfinite(report::mean(own)) && std::isfinite(report::mean(other));
    if (!is_rescue && !(gain > spread)) {
      best = 0;
    }
  }
  return {best, steps_of(best)};
}

}  // namespace abtrain::sweep
