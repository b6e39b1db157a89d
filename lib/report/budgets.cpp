#include "report/budgets.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "base/mapped.h"
#include "base/text.h"
#include "report/welch.h"

namespace abtrain::report {

namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// Sorts the amounts and groups those within the tolerance of their group's smallest; returns each
// group's largest.
std::vector<double> steps_of(std::vector<double> amounts, double tolerance) {
  std::ranges::sort(amounts);
  std::vector<double> steps;
  double least = 0;
  for (const double amount : amounts) {
    if (!steps.empty() && amount <= least * tolerance) {
      steps.back() = amount;
    } else {
      steps.push_back(amount);
      least = amount;
    }
  }
  return steps;
}

bool is_far_below(const Contender& b, const Contender& a) {
  constexpr double kSpreads = 10;
  constexpr double kLeast = 0.01;  // one point; for bits per byte, 1 % of them
  const double unit = a.score == &Score::bits_per_byte ? std::abs(a.quality) : 1;
  return std::ranges::max(b.qualities) < std::ranges::min(a.qualities) &&
         a.quality - b.quality > std::max(kLeast * unit, kSpreads * a.usual_spread);
}

bool are_separated(const Contender& a, const Contender& b) {
  const auto p = welch_p(a.qualities, b.qualities);
  return p && (*p < kSignificant || is_far_below(b, a));
}

// `present`: the indices of the contenders that compete.
Answer answer_of(std::vector<Contender> all, std::vector<std::size_t> present, double bytes) {
  std::ranges::stable_sort(
      present, std::ranges::greater{}, [&](std::size_t i) { return all[i].quality; });
  Answer answer{bytes};
  bool is_decided = false;
  for (const std::size_t i : present) {
    if (answer.first.empty() || (!is_decided && !is_better(all[answer.first.front()], all[i]))) {
      answer.first.push_back(i);
      continue;
    }
    is_decided = is_decided || are_separated(all[answer.first.front()], all[i]);
    answer.next = answer.next.value_or(i);
  }
  answer.at = std::move(all);
  return answer;
}

bool has_same_winner(const Answer& a, const Answer& b) {
  const std::size_t winner = a.first.front();
  return b.first.front() == winner && a.at[winner].is_on_its_way == b.at[winner].is_on_its_way;
}

// True if the winner changes at a budget at which no further setting ends. Settings that tie before
// their end may change places with each evaluation; this does not count.
bool is_overtaken(const Answer& before, const Answer& now) {
  const std::size_t winner = before.first.front();
  return before.first.size() == 1 ? now.first.front() != winner
                                  : std::ranges::count(now.first, winner) == 0;
}

std::vector<Answer> answers_within(const std::vector<Contender>& all, double parameters) {
  std::vector<std::size_t> small;
  std::vector<double> bytes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].parameters.value_or(kAny) <= parameters) {
      small.push_back(i);
      bytes.push_back(all[i].bytes);
    }
  }
  const double least = std::ranges::min(bytes);
  for (const std::size_t i : small) {
    for (const auto& way : all[i].ways) {
      for (const Contender::Waypoint& point : way) {
        if (point.bytes > least && point.bytes < all[i].bytes) {
          bytes.push_back(point.bytes);
        }
      }
    }
  }
  std::vector<Answer> answers;
  double before = 0;
  for (const double budget : steps_of(bytes, kSameBytes)) {
    std::vector<Contender> at = all;
    std::vector<std::size_t> present;
    const bool is_end = std::ranges::any_of(
        small, [&](std::size_t i) { return all[i].bytes > before && all[i].bytes <= budget; });
    before = budget;
    for (const std::size_t i : small) {
      if (auto one = within(all[i], budget)) {
        at[i] = std::move(*one);
        present.push_back(i);
      }
    }
    Answer answer = answer_of(std::move(at), std::move(present), budget);
    const auto changes = [&](const Answer& last) {
      return is_end ? last.first != answer.first || !has_same_winner(last, answer)
                    : is_overtaken(last, answer);
    };
    if (answers.empty() || changes(answers.back())) {
      answers.push_back(std::move(answer));
    }
  }
  return answers;
}

bool are_same(const std::vector<Answer>& a, const std::vector<Answer>& b) {
  return std::ranges::equal(a, b, [](const Answer& one, const Answer& other) {
    return one.bytes == other.bytes && one.first == other.first && has_same_winner(one, other);
  });
}

bool dominates(const Contender& a, const Contender& b) {
  if (a.parameters.has_value() != b.parameters.has_value() || b.quality > a.quality ||
      a.bytes > b.bytes || a.parameters.value_or(0) > b.parameters.value_or(0) * kSameSize ||
      a.seconds > b.seconds * kSameSeconds) {
    return false;
  }
  return is_better(a, b) || b.bytes > a.bytes * kSameBytes ||
         b.parameters.value_or(0) > a.parameters.value_or(0) * kSameSize ||
         b.seconds > a.seconds * kSameSeconds;
}

}  // namespace

std::vector<Contender> contenders(
    const std::vector<Setting>& settings, const std::vector<std::size_t>& members) {
  std::vector<Contender> all;
  for (const std::size_t i : members) {
    const Setting& setting = settings[i];
    if (setting.finished() == 0 || setting.has_diverged()) {
      continue;
    }
    const auto sizes = setting.values(of_summary(&Summary::parameters));
    const auto is_finished = [](const RunRecord& run) { return run.summary.has_value(); };
    const auto seconds = [](const Summary& summary) {
      return summary.link_seconds.value_or(summary.train_seconds);
    };
    all.push_back(
        {.name = printable(setting.name),
         .is_ab = setting.runs.front().value_of("method.name") == "ab",
         .score = std::ranges::find_if(setting.runs, is_finished)->summary->which(),
         .qualities = setting.values(of_summary(&Summary::quality)),
         .quality = quality_of(setting),
         .parameters =
             sizes.size() == setting.finished() ? std::optional(mean(sizes)) : std::nullopt,
         .bytes = mean(setting.values(of_summary(&Summary::bytes))),
         .seconds = mean(setting.values(of_summary(seconds)))});
    for (const RunRecord& run : setting.runs) {
      if (run.summary) {
        all.back().ways.push_back(mapped(run.evaluations, [](const Evaluation& e) {
          return Contender::Waypoint{e.bytes, e.quality()};
        }));
      }
    }
  }
  std::vector<double> spreads;
  for (const Contender& one : all) {
    if (const auto spread = standard_deviation(one.qualities)) {
      spreads.push_back(*spread);
    }
  }
  std::ranges::sort(spreads);
  for (Contender& one : all) {
    one.usual_spread = spreads.empty() ? 0 : spreads[(spreads.size() - 1) / 2];  // the lower median
  }
  return all;
}

std::optional<Contender> within(const Contender& one, double bytes) {
  if (one.bytes <= bytes) {
    return one;
  }
  Contender out = one;
  out.is_on_its_way = true;
  out.bytes = bytes;
  out.qualities.clear();
  for (const auto& way : one.ways) {
    const auto later = std::ranges::upper_bound(way, bytes, {}, &Contender::Waypoint::bytes);
    if (later == way.begin()) {
      return std::nullopt;
    }
    out.qualities.push_back(std::prev(later)->quality);
  }
  if (out.qualities.empty()) {
    return std::nullopt;
  }
  out.quality = mean(out.qualities);
  return out;
}

Answer winner_of(const std::vector<Contender>& all) {
  std::vector<std::size_t> present(all.size());
  std::iota(present.begin(), present.end(), std::size_t{0});
  return answer_of(all, std::move(present), kAny);
}

bool is_better(const Contender& a, const Contender& b) {
  const bool is_compared = a.qualities.size() > 1 && b.qualities.size() > 1;
  return a.quality > b.quality && (!is_compared || are_separated(a, b));
}

std::vector<SizeBudget> size_budgets(const std::vector<Contender>& all) {
  const auto size_of = [](const Contender& one) { return one.parameters.value_or(kAny); };
  const std::vector<double> steps = steps_of(mapped(all, size_of), kSameSize);
  std::vector<SizeBudget> budgets;
  for (const double size : steps) {
    auto answers = answers_within(all, size);
    if (budgets.empty() || !are_same(budgets.back().answers, answers)) {
      const bool is_any = size == steps.back();
      budgets.push_back({is_any ? std::nullopt : std::optional(size), std::move(answers)});
    }
  }
  return budgets;
}

std::vector<std::optional<std::size_t>> dominators(const std::vector<Contender>& all) {
  std::vector<std::optional<std::size_t>> found(all.size());
  for (std::size_t b = 0; b < all.size(); ++b) {
    for (std::size_t a = 0; a < all.size(); ++a) {
      if (dominates(all[a], all[b]) && (!found[b] || all[a].quality > all[*found[b]].quality)) {
        found[b] = a;
      }
    }
  }
  return found;
}

}  // namespace abtrain::report
