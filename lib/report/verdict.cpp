#include "report/verdict.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/mapped.h"
#include "base/text.h"
#include "report/budgets.h"
#include "report/welch.h"

namespace abtrain::report {

namespace {

// Expresses qualities: accuracies in percent, R², or bits per byte.
struct Words {
  WhichScore score;
  bool is_accuracy = score == &Score::accuracy;
  bool is_text = score == &Score::bits_per_byte;

  std::string level(double quality) const {
    Score of;
    of.*score = is_text ? -quality : quality;
    return of.text();
  }
  // A difference or a spread in words; "" if it is too small to be shown.
  std::string amount(double quality) const {
    const double shown = is_accuracy ? 100 * quality : quality;
    const int decimals = !is_accuracy ? 4 : shown < 0.095 ? 2 : 1;
    const std::string text = formatted("{:.{}f}", shown, decimals);
    return text == formatted("{:.{}f}", 0.0, decimals) ? "" : text;
  }
  // "0.3 points above ab"
  std::string lead(double quality, const std::string& other) const {
    const std::string by = amount(quality);
    return by.empty()     ? "barely ahead of " + other
           : is_text      ? by + " below " + other
           : !is_accuracy ? by + " above " + other
           : by == "1.0"  ? "1.0 point above " + other
                          : by + " points above " + other;
  }
};

// Rounds up, to three digits, so that "at most" stays true.
std::string parameters_text(double parameters) {
  double unit = 1;
  while (parameters / unit >= 1000) {
    unit *= 10;
  }
  return with_commas(static_cast<std::int64_t>(std::ceil(parameters / unit) * unit));
}

std::string size_text(const SizeBudget& budget) {
  return budget.parameters
             ? formatted("with at most {} parameters", parameters_text(*budget.parameters))
             : "with any number of parameters";
}

// The sentences about one data set.
class Judge {
 public:
  explicit Judge(std::vector<Contender> all)
      : all_(std::move(all)), words_{all_.front().score}, budgets_(size_budgets(all_)) {}

  // The winner if bytes and parameters cost nothing.
  std::string winner() const {
    return answer_text(winner_of(all_));
  }

  std::vector<std::string> sentences() const {
    std::vector<std::string> lines;
    for (const SizeBudget& budget : budgets_) {
      lines.push_back(winners(budget));
    }
    const auto has_tie = [](const SizeBudget& budget) {
      return std::ranges::any_of(
          budget.answers, [](const Answer& a) { return a.first.size() > 1; });
    };
    if (std::ranges::any_of(budgets_, has_tie)) {
      lines.emplace_back(
          "Not separated means that Welch's t test of the seeds finds no difference at 5 %; a gap "
          "that could be seen is one that it would find in 80 % of such comparisons.");
    }
    const auto is_on_its_way = [](const SizeBudget& budget) {
      return std::ranges::any_of(
          budget.answers, [](const Answer& a) { return a.at[a.first.front()].is_on_its_way; });
    };
    if (std::ranges::any_of(budgets_, is_on_its_way)) {
      lines.emplace_back(
          "Before its end means what an evaluation found when the setting had sent so much.");
    }
    const auto alone =
        std::ranges::count_if(all_, [](const Contender& c) { return c.qualities.size() < 2; });
    if (alone > 0) {
      lines.push_back(
          (alone < std::ssize(all_) ? "Some settings have only one seed"
                                    : "There is only one seed per setting") +
          std::string(": differences of a few ") +
          (words_.is_text       ? "hundredths of a bit per byte"
           : words_.is_accuracy ? "tenths of a point"
                                : "hundredths") +
          " may be chance.");
    }
    add_dominated(lines);
    const auto is_ab = std::ranges::count(all_, true, &Contender::is_ab);
    if (is_ab > 0 && is_ab < std::ssize(all_)) {
      lines.push_back(about_ab());
    }
    return lines;
  }

 private:
  bool is_one_size() const {
    return budgets_.size() == 1 && !budgets_.front().parameters;
  }

  static std::string shown(const Contender& one) {
    return one.name + (one.is_on_its_way ? " before its end" : "");
  }

  // " (a gap of 0.4 points could be seen)": the largest such gap between the winner and a setting
  // that ties with it.
  std::string gap_text(const Answer& answer) const {
    double gap = 0;
    for (const std::size_t i : answer.first) {
      if (i != answer.first.front()) {
        gap = std::max(
            gap, visible_gap(answer.at[answer.first.front()].qualities, answer.at[i].qualities)
                     .value_or(0));
      }
    }
    const std::string text = words_.amount(gap);
    const std::string unit = !words_.is_accuracy ? "" : text == "1.0" ? " point" : " points";
    return text.empty() ? "" : formatted(" (a gap of {}{} could be seen)", text, unit);
  }

  // "small_thc wins with 88.74 % (0.3 points above ab, seeds spread 0.1)"
  std::string answer_text(const Answer& answer) const {
    const Contender& first = answer.at[answer.first.front()];
    if (answer.first.size() > 1) {
      const auto named = [&](std::size_t i) {
        const Contender& one = answer.at[i];
        return formatted("{} ({})", shown(one), words_.level(one.quality));
      };
      constexpr std::size_t kNamed = 4;
      if (answer.first.size() <= kNamed + 1) {
        return listed(mapped(answer.first, named)) + " are not separated" + gap_text(answer);
      }
      const std::vector<std::size_t> best(answer.first.begin(), answer.first.begin() + kNamed);
      return formatted(
          "{} and {} more, down to {}, are not separated{}", join(mapped(best, named), ", "),
          answer.first.size() - kNamed, named(answer.first.back()), gap_text(answer));
    }
    std::vector<std::string> notes;
    if (answer.next) {
      const Contender& next = answer.at[*answer.next];
      notes.push_back(words_.lead(first.quality - next.quality, shown(next)));
    }
    const double sd = standard_deviation(first.qualities).value_or(0);
    if (const auto spread = words_.amount(sd); !spread.empty()) {
      notes.push_back("seeds spread " + spread);
    }
    return shown(first) + " wins with " + words_.level(first.quality) +
           (notes.empty() ? "" : " (" + join(notes, ", ") + ")");
  }

  std::string winners(const SizeBudget& budget) const {
    std::vector<std::string> parts;
    for (const Answer& answer : budget.answers) {
      parts.push_back(formatted(
          "from {}{}, {}", human_bytes(answer.bytes), parts.empty() ? " sent per worker" : "",
          answer_text(answer)));
    }
    const bool is_last = &budget == &budgets_.back();
    std::string text = (is_one_size() ? "" : size_text(budget) + ": ") + join(parts, "; ");
    text.front() = static_cast<char>(std::toupper(text.front()));
    return text + "." +
           (is_last && budget.parameters ? " With a larger model, none is better." : "");
  }

  // Says how `a` compares with `b`, which `a` dominates.
  std::string by_what(const Contender& a, const Contender& b) const {
    std::vector<std::string> parts = {
        is_better(a, b) ? (words_.is_accuracy ? "is more accurate" : "is better")
                        : (words_.is_accuracy ? "is as accurate" : "is as good"),
        b.bytes > a.bytes * kSameBytes ? "sends less" : "sends no more"};
    if (a.parameters && b.parameters) {
      parts.emplace_back(*b.parameters > *a.parameters * kSameSize ? "is smaller" : "is no larger");
    }
    parts.emplace_back(
        b.seconds > a.seconds * kSameSeconds ? "takes less time" : "takes no longer");
    return formatted("{} {}", a.name, listed(parts));
  }

  // Adds one sentence for all settings that one setting dominates in the same respects.
  void add_dominated(std::vector<std::string>& lines) const {
    const auto by = dominators(all_);
    NamesByReason groups;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (by[i]) {
        add_name(groups, by_what(all_[*by[i]], all_[i]), all_[i].name);
      }
    }
    for (const auto& [why, names] : groups) {
      lines.push_back(formatted(
          "{} {} dominated on every axis: {}.", listed(names), names.size() == 1 ? "is" : "are",
          why));
    }
  }

  // "wins" if only AB-training is first, "is not separated from the best" if it ties, else "".
  std::string ab_verb(const Answer& answer) const {
    const auto count =
        std::ranges::count_if(answer.first, [&](std::size_t i) { return all_[i].is_ab; });
    return count == 0                          ? ""
           : count == std::ssize(answer.first) ? "wins"
                                               : "is not separated from the best";
  }

  // "wins from 1.1 MB up to 19.5 MB"
  std::string ab_within(const SizeBudget& budget) const {
    struct Stretch {
      std::string verb;
      double from = 0;
      std::optional<double> to = {};
    };
    std::vector<Stretch> stretches;
    std::string before;
    for (const Answer& answer : budget.answers) {
      const std::string verb = ab_verb(answer);
      if (verb != before && !before.empty()) {
        stretches.back().to = answer.bytes;
      }
      if (verb != before && !verb.empty()) {
        stretches.push_back({verb, answer.bytes});
      }
      before = verb;
    }
    return listed(mapped(stretches, [](const Stretch& stretch) {
      return formatted(
          "{} from {} {}", stretch.verb, human_bytes(stretch.from),
          stretch.to ? "up to " + human_bytes(*stretch.to) : "on");
    }));
  }

  std::string about_ab() const {
    std::vector<std::string> parts;
    for (const SizeBudget& budget : budgets_) {
      if (const std::string where = ab_within(budget); !where.empty()) {
        parts.push_back(where + (is_one_size() ? "" : " " + size_text(budget)));
      }
    }
    return parts.empty() ? "AB-training wins at no budget here."
                         : "AB-training " + join(parts, "; it ") + ".";
  }

  std::vector<Contender> all_;
  Words words_;
  std::vector<SizeBudget> budgets_;
};

// Removes and returns the contenders that trained longer than kInTime times `seconds` (0: no
// limit).
std::vector<Contender> taken_late(std::vector<Contender>& all, double seconds) {
  const auto late = std::ranges::stable_partition(
      all, [&](const Contender& one) { return seconds == 0 || one.seconds <= kInTime * seconds; });
  const std::vector<Contender> taken(late.begin(), late.end());
  all.erase(late.begin(), late.end());
  return taken;
}

// "wild has no result: it diverged at step 12 with seeds 1 and 2."
std::vector<std::string> about_diverged(const std::vector<Setting>& settings) {
  std::vector<std::string> lines;
  for (const Setting& setting : settings) {
    std::vector<std::string> steps;
    std::vector<std::string> seeds;
    for (const RunRecord& run : setting.runs) {
      if (!run.diverged_at) {
        continue;
      }
      seeds.push_back(std::to_string(run.seed));
      if (const auto step = std::to_string(*run.diverged_at);
          std::ranges::count(steps, step) == 0) {
        steps.push_back(step);
      }
    }
    if (seeds.empty()) {
      continue;
    }
    lines.push_back(formatted(
        "{} {}: it diverged at step{} {} with seed{} {}.", printable(setting.name),
        setting.finished() == 0 ? "has no result"
                                : formatted(
                                      "counts as the worst, with {} of {} runs finished",
                                      setting.finished(), setting.runs.size()),
        steps.size() == 1 ? "" : "s", listed(steps), seeds.size() == 1 ? "" : "s", listed(seeds)));
  }
  return lines;
}

}  // namespace

std::vector<std::string> verdict(const std::vector<Setting>& settings, double seconds) {
  std::vector<std::string> lines;
  const auto groups = by_data(settings);
  for (const auto& members : groups) {
    auto all = contenders(settings, members);
    const std::vector<Contender> late = taken_late(all, seconds);
    for (const Contender& one : late) {
      lines.push_back(formatted(
          "{} does not count: it trained for {}, more than 5 % longer than the {:g} s that were "
          "asked for.",
          one.name, human_seconds(one.seconds), seconds));
    }
    if (all.size() < 2) {
      continue;
    }
    const std::string data =
        groups.size() < 2 ? "" : printable(settings[members.front()].runs.front().data) + ": ";
    for (const auto& line : Judge(std::move(all)).sentences()) {
      lines.push_back(data + line);
    }
  }
  std::ranges::move(about_diverged(settings), std::back_inserter(lines));
  return lines;
}

std::string best_within(
    const std::vector<Setting>& settings, double seconds, const std::string& where,
    bool is_partial) {
  const char* among = is_partial ? "among those that ran, " : "";
  std::vector<std::string> lost;
  for (const Setting& setting : settings) {
    if (setting.has_diverged()) {
      lost.push_back(printable(setting.name));
    }
  }
  const std::string diverged = lost.empty() ? "" : formatted(" {} diverged.", listed(lost));
  const auto groups = by_data(settings);
  if (groups.size() != 1) {
    return "";
  }
  auto all = contenders(settings, groups.front());
  if (seconds == 0) {
    std::set<std::int64_t> steps;
    for (const Setting& setting : settings) {
      for (const RunRecord& run : setting.runs) {
        if (!run.diverged_at) {
          steps.insert(run.step);
        }
      }
    }
    return all.empty()        ? lost.empty() ? "" : "No setting has finished." + diverged
           : steps.size() > 1 ? ""
                              : formatted(
                                    "In {} steps, {}{}.{}", with_commas(*steps.begin()), among,
                                    Judge(std::move(all)).winner(), diverged);
  }
  const std::vector<Contender> late = taken_late(all, seconds);
  const auto result = [&](const Contender& one) {
    return formatted(
        "{} ({} in {})", one.name, Words{one.score}.level(one.quality), human_seconds(one.seconds));
  };
  const std::vector<std::string> longer = mapped(late, result);
  if (all.empty() && longer.empty() && lost.empty()) {
    return "";
  }
  const std::string best =
      all.empty() ? "no setting has finished" : among + Judge(std::move(all)).winner();
  return formatted(
      "Within {:g} s of training ({}), {}.{}{}", seconds, where, best,
      longer.empty() ? "" : formatted(" {} took longer.", listed(longer)), diverged);
}

}  // namespace abtrain::report
