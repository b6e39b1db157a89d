#include "report/budgets.h"

#include <algorithm>
#include <limits>

#include "base/mapped.h"
#include "base/text.h"
#include "report/welch.h"

namespace abtrain::report {

namespace {

constexpr double kAny = std::numeric_limits<double>::infinity();

// Sorts the amounts and joins those within the tolerance of the least of them;
// each group's largest.
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

Answer answer_of(const std::vector<Contender>& all, std::vector<std::size_t> within, double bytes) {
  std::ranges::stable_sort(
      within, std::ranges::greater{}, [&](std::size_t i) { return all[i].quality; });
  Answer answer{bytes};
  for (const std::size_t i : within) {
    if (answer.first.empty() || !is_better(all[answer.first.front()], all[i])) {
      answer.first.push_back(i);
    } else if (!answer.next) {
      answer.next = i;
    }
  }
  return answer;
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
  std::vector<Answer> answers;
  for (const double budget : steps_of(bytes, kSameBytes)) {
    std::vector<std::size_t> within;
    std::ranges::copy_if(
        small, std::back_inserter(within), [&](auto i) { return all[i].bytes <= budget; });
    Answer answer = answer_of(all, within, budget);
    if (answers.empty() || answers.back().first != answer.first) {
      answers.push_back(std::move(answer));
    }
  }
  return answers;
}

bool are_same(const std::vector<Answer>& a, const std::vector<Answer>& b) {
  return std::ranges::equal(a, b, [](const Answer& one, const Answer& other) {
    return one.bytes == other.bytes && one.first == other.first;
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
    if (setting.finished() == 0) {
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
  }
  return all;
}

bool is_better(const Contender& a, const Contender& b) {
  constexpr double kSeparates = 0.05;
  const auto p = welch_p(a.qualities, b.qualities);
  return a.quality > b.quality && (!p || *p < kSeparates);
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
