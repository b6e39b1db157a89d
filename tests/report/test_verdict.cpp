#include "report/verdict.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "error_of.h"
#include "report/formats.h"
#include "report/front.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

// One run per quality; it sends so many bytes, and takes so many seconds.
struct Given {
  std::string name;
  std::vector<double> qualities;
  double bytes = 1e6;
  double parameters = 1e5;
  double seconds = 10;
  WhichScore score = &Score::accuracy;
  std::string method = "ddp";
  std::string data = "digits";
  std::optional<double> link_seconds = {};
  std::vector<std::int64_t> diverged_at = {};  // of as many more runs
};

std::vector<Setting> settings_of(const std::vector<Given>& all) {
  std::vector<Setting> settings;
  for (const Given& given : all) {
    Setting setting{given.name, {}};
    for (const double quality : given.qualities) {
      RunRecord run;
      run.data = given.data;
      run.keys = {{"method.name", given.method}};
      run.summary.emplace();
      (*run.summary).*given.score = quality;
      run.summary->parameters = given.parameters;
      run.summary->bytes = given.bytes;
      run.summary->train_seconds = given.seconds;
      run.summary->link_seconds = given.link_seconds;
      setting.runs.push_back(run);
    }
    for (const std::int64_t step : given.diverged_at) {
      RunRecord run;
      run.data = given.data;
      run.keys = {{"method.name", given.method}};
      run.diverged_at = step;
      setting.runs.push_back(run);
    }
    for (RunRecord& run : setting.runs) {
      run.seed = static_cast<std::uint64_t>(&run - setting.runs.data() + 1);
    }
    settings.push_back(setting);
  }
  return settings;
}

std::vector<std::string> said(const std::vector<Given>& all) {
  return verdict(settings_of(all));
}

using Lines = std::vector<std::string>;

TEST(Verdict, NamesTheWinnerOfEachBudgetThatChangesTheAnswer) {
  EXPECT_EQ(
      said(
          {{"two_bit", {0.878, 0.88}, 1.1e6, 331'400},
           {"ab", {0.86, 0.861}, 1.1e6, 333'000},
           {"power", {0.9, 0.901}, 19.5e6, 333'000, 9},
           {"useless", {0.85, 0.851}, 10e6, 330'000, 8},
           {"dense", {0.92, 0.921}, 90e6, 2e6, 8}}),
      (Lines{
          "With at most 333,000 parameters: from 1.1 MB sent per worker, "
          "two_bit wins with 87.90 % (1.8 points above ab, seeds spread 0.1); "
          "from 19.5 MB, power wins with 90.05 % (2.2 points above two_bit, "
          "seeds spread 0.07).",
          "With any number of parameters: from 1.1 MB sent per worker, two_bit "
          "wins with 87.90 % (1.8 points above ab, seeds spread 0.1); from "
          "19.5 MB, power wins with 90.05 % (2.2 points above two_bit, seeds "
          "spread 0.07); from 90.0 MB, dense wins with 92.05 % (2.0 points "
          "above power, seeds spread 0.07).",
          "ab is dominated on every axis: two_bit is more accurate, sends no "
          "more, is no larger and takes no longer."}));
}

TEST(Verdict, AnswersWhoIsBestWithinATime) {
  std::vector<Given> all = {
      {"ab", {0.9, 0.901}, 1e6, 1e5, 31},
      {"dense", {0.88, 0.881}, 1e7, 1e6, 29},
      {"better", {0.95, 0.951}, 1e7, 1e6, 40}};
  const auto answer = [&](double seconds) {
    return best_within(settings_of(all), seconds, "on this machine");
  };
  EXPECT_EQ(
      answer(30),
      "Within 30 s of training (on this machine), ab wins with 90.05 % (2.0 points above dense, "
      "seeds spread 0.07). better (95.05 % in 40 s) took longer.");
  EXPECT_EQ(
      answer(40),
      "Within 40 s of training (on this machine), better wins with 95.05 % (5.0 points above ab, "
      "seeds spread 0.07).");
  EXPECT_EQ(
      answer(1),
      "Within 1 s of training (on this machine), no setting has finished. ab (90.05 % in 31 s), "
      "dense (88.05 % in 29 s) and better (95.05 % in 40 s) took longer.");
  // More than 5 % longer is too late, there and below the table.
  all[0].seconds = 31.6;
  EXPECT_TRUE(answer(30).ends_with("better (95.05 % in 40 s) took longer.")) << answer(30);
  EXPECT_NE(answer(30).find("dense wins with 88.05 %"), std::string::npos);
  const auto lines = verdict(settings_of(all), 30);
  EXPECT_EQ(
      lines.front(),
      "ab does not count: it trained for 32 s, more than 5 % longer than the 30 s that were asked "
      "for.");
  EXPECT_EQ(lines.size(), 2U);  // better is late too, and dense is alone
  // The link's seconds count where there is a link.
  all[0].link_seconds = 60;
  EXPECT_TRUE(
      answer(30).ends_with("dense wins with 88.05 % (seeds spread 0.07). ab (90.05 % in "
                           "60 s) and better (95.05 % in 40 s) took longer."))
      << answer(30);
  all = {{"a", {0.9, 0.92}, 1e6, 1e5, 5}, {"b", {0.91, 0.93}, 1e6, 1e5, 5}};
  EXPECT_EQ(
      answer(5),
      "Within 5 s of training (on this machine), b (92.00 %) and a (91.00 %) are not separated "
      "(a gap of 14.7 points could be seen).");
  // Asked for by steps.
  auto settings = settings_of(all);
  EXPECT_EQ(
      best_within(settings, 0, ""),
      "In 0 steps, b (92.00 %) and a (91.00 %) are not separated "
      "(a gap of 14.7 points could be seen).");
  EXPECT_TRUE(
      best_within(settings, 0, "", true).starts_with("In 0 steps, among those that ran, b"));
  EXPECT_TRUE(best_within(settings, 5, "here", true)
                  .starts_with("Within 5 s of training (here), among those that ran, b"));
  settings[0].runs[0].step = 1;
  EXPECT_EQ(best_within(settings, 0, ""), "");
  all[0].data = "letters";
  EXPECT_EQ(answer(5), "");
  EXPECT_EQ(best_within({}, 5, ""), "");
}

// A reader sees the answer before anything else.
TEST(Verdict, TheAnswerIsTheFirstLine) {
  Comparison comparison{
      .target = {}, .settings = settings_of({{"a", {0.9}}}), .varying = {}, .skipped = {}};
  const auto columns = front_columns({});
  const std::string plain = as_table(comparison, columns, false);
  const std::string markdown = as_markdown(comparison, columns);
  comparison.answer = "a wins.";
  EXPECT_EQ(as_table(comparison, columns, false), "a wins.\n\n" + plain);
  EXPECT_EQ(as_markdown(comparison, columns), "a wins.\n\n" + markdown);
}

TEST(Verdict, SecondsAreThoseOverALinkWhereOneWasAskedFor) {
  Given fast{"fast", {0.9}, 2e6, 1000, 5};
  fast.link_seconds = 50;
  Given slow{"slow", {0.8}, 2e6, 1000, 8};
  slow.link_seconds = 20;
  EXPECT_EQ(said({fast, slow}).size(), 2U);
  slow.link_seconds = 60;
  EXPECT_EQ(
      said({fast, slow}).back(),
      "slow is dominated on every axis: fast is more accurate, sends no more, "
      "is no larger and takes less time.");
}

TEST(Verdict, WhatIsDominatedStandsInTheOrderOfTheSettings) {
  const auto lines = said(
      {{"z", {0.9, 0.901}},
       {"slow", {0.8, 0.801}, 1e6, 1e5, 20},
       {"a", {0.95, 0.951}, 2e6},
       {"late", {0.85, 0.851}, 2e6, 1e5, 20},
       {"last", {0.7, 0.701}, 1e6, 1e5, 20}});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(
      lines[1],
      "slow and last are dominated on every axis: z is more accurate, sends no "
      "more, is no larger and takes less time.");
  EXPECT_EQ(
      lines[2],
      "late is dominated on every axis: a is more accurate, sends no more, is "
      "no larger and takes less time.");
}

TEST(Verdict, ALargerBudgetOfTheSameAnswersIsNotRepeated) {
  EXPECT_EQ(
      said({{"small", {0.9, 0.901}, 1e6, 1000}, {"large", {0.8, 0.801}, 2e6, 2000, 5}}),
      (Lines{"With at most 1,000 parameters: from 1.0 MB sent per worker, small "
             "wins with 90.05 % (seeds spread 0.07). With a larger model, none "
             "is better."}));
}

TEST(Verdict, WhatTheSeedsDoNotSeparateIsATie) {
  // The samples of Welch's first case, times 0.01: p = 0.106.
  const auto lines = said({{"a", {0.04, 0.06}}, {"b", {0.00, 0.02}, 1e6, 1e5, 5}});
  EXPECT_EQ(
      lines, (Lines{
                 "From 1.0 MB sent per worker, a (5.00 %) and b (1.00 %) are not separated (a gap "
                 "of "
                 "14.7 points could be seen).",
                 "Not separated means that Welch's t test of the seeds finds no difference at 5 %; "
                 "a gap that could be seen is one that it would find in 80 % of such "
                 "comparisons."}));  // a tie is no proof that b is as good
  EXPECT_EQ(
      said({{"a", {0.00, 0.02}}, {"b", {0.04, 0.06}, 1e6, 1e5, 5}}).back(),
      "a is dominated on every axis: b is as accurate, sends no more, is no "
      "larger and takes less time.");
  // t = 5 instead, so p = 1 - 5 / sqrt(27) = 0.038.
  EXPECT_EQ(
      said({{"a", {0.0707106781, 0.0907106781}}, {"b", {0.00, 0.02}, 1e6, 1e5, 5}}).front(),
      "From 1.0 MB sent per worker, a wins with 8.07 % (7.1 points above b, "
      "seeds spread 1.4).");
}

// Welch's test alone would separate nothing from seeds that spread so widely.
TEST(Verdict, ANoisySettingDoesNotTieWithWhatIsFarAway) {
  EXPECT_EQ(
      said({{"a", {0.828, 0.829}}, {"noisy", {0.1, 0.741}, 1e6, 1e5, 5}}),
      (Lines{"From 1.0 MB sent per worker, a wins with 82.85 % (40.8 points above noisy, seeds "
             "spread 0.07)."}));
  EXPECT_EQ(
      said({{"noisy", {0.77, 0.887}}, {"low", {0.42, 0.421}, 1e6, 1e5, 5}}).front(),
      "From 1.0 MB sent per worker, noisy wins with 82.85 % (40.8 points above low, seeds spread "
      "8.3).");
  // Not far away, or with runs among the other's.
  EXPECT_TRUE(
      said({{"a", {0.828, 0.829}}, {"noisy", {0.77, 0.887}}})
          .front()
          .find(" are not separated (a gap of ") != std::string::npos);
  EXPECT_TRUE(
      said({{"a", {0.828, 0.829}}, {"b", {0.815, 0.827}}, {"c", {0.81, 0.827}}})
          .front()
          .find("a (82.85 %), b (82.10 %) and c (81.85 %) are not separated") != std::string::npos);
}

TEST(Verdict, OfManyTiesTheBestAreNamed) {
  std::vector<Given> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back({formatted("s{}", i), {0.8 - 0.001 * i, 0.9 - 0.001 * i}});
  }
  EXPECT_EQ(
      said(all).front(),
      "From 1.0 MB sent per worker, s0 (85.00 %), s1 (84.90 %), s2 (84.80 %), s3 (84.70 %) and 2 "
      "more, down to s5 (84.50 %), are not separated (a gap of 73.5 points could be seen).");
  all.pop_back();
  EXPECT_NE(
      said(all).front().find("s3 (84.70 %) and s4 (84.60 %) are not separated"), std::string::npos);
}

TEST(Verdict, NoTieThroughASettingBelowOneThatIsSeparated) {
  const auto lines = said(
      {{"thc", {0.828, 0.829}},
       {"ab", {0.8, 0.801}, 1e6, 1e5, 10, &Score::accuracy, "ab"},
       {"ab_poor", {0.62, 0.835}, 1e6, 1e5, 5, &Score::accuracy, "ab"}});
  EXPECT_EQ(
      lines.front(),
      "From 1.0 MB sent per worker, thc wins with 82.85 % (2.8 points above ab, seeds spread "
      "0.07).");
  EXPECT_EQ(lines.back(), "AB-training wins at no budget here.");
}

// Of a setting that sends more, what it had reached counts within a budget.
TEST(Verdict, WithinABudgetAllAreTakenAsTheyWereThen) {
  auto settings = settings_of({{"ab", {0.8, 0.801}, 667e6}, {"ddp", {0.9, 0.901}, 1400e6}});
  for (RunRecord& run : settings[1].runs) {
    for (const auto& [bytes, accuracy] :
         {std::pair{300e6, 0.5}, {700e6, 0.85}, {1000e6, 0.87}, {1400e6, 0.9}}) {
      run.evaluations.emplace_back().accuracy = accuracy;
      run.evaluations.back().bytes = bytes;
    }
  }
  const auto lines = verdict(settings);
  EXPECT_EQ(
      lines.front(),
      "From 667.0 MB sent per worker, ab wins with 80.05 % (30.0 points above ddp before its end, "
      "seeds spread 0.07); from 700.0 MB, ddp before its end wins with 85.00 % (4.9 points above "
      "ab); from 1.4 GB, ddp wins with 90.05 % (10.0 points above ab, seeds spread 0.07).");
  EXPECT_EQ(
      lines[1], "Before its end means what an evaluation found when the setting had sent so much.");
  // One run had no evaluation by then.
  settings[1].runs[0].evaluations.erase(
      settings[1].runs[0].evaluations.begin(), settings[1].runs[0].evaluations.begin() + 3);
  EXPECT_EQ(
      verdict(settings).front(),
      "From 667.0 MB sent per worker, ab wins with 80.05 % (seeds spread 0.07); from 1.4 GB, ddp "
      "wins with 90.05 % (10.0 points above ab, seeds spread 0.07).");
}

// Evaluations of settings that tie may change places each time.
TEST(Verdict, TiesOnTheWayAreNotListedAnew) {
  auto settings = settings_of({{"a", {0.8, 0.82}, 1e6}, {"b", {0.8, 0.83}, 9e6}});
  for (const double below : {0.0, 0.02}) {
    RunRecord& run = settings[1].runs[below > 0 ? 1 : 0];
    for (const auto& [bytes, accuracy] :
         {std::pair{1e6, 0.81}, {2e6, 0.83}, {3e6, 0.8}, {4e6, 0.84}, {5e6, 0.81}}) {
      run.evaluations.emplace_back().accuracy = accuracy - below;
      run.evaluations.back().bytes = bytes;
    }
  }
  const std::string first = verdict(settings).front();
  EXPECT_EQ(first.find("from 2.0 MB"), std::string::npos) << first;
  EXPECT_NE(
      first.find("from 9.0 MB, b (81.50 %) and a (81.00 %) are not separated"), std::string::npos)
      << first;
}

TEST(Verdict, ATextHasBitsPerByteAndLessIsBetter) {
  EXPECT_EQ(
      said({{"a", {2.1, 2.102}, 1e6, 1e5, 10, &Score::bits_per_byte},
            {"b", {2.0, 2.002}, 2e6, 1e5, 5, &Score::bits_per_byte}})
          .front(),
      "From 1.0 MB sent per worker, a wins with 2.1010 bits per byte (seeds "
      "spread 0.0014); from 2.0 MB, b wins with 2.0010 bits per byte (0.1000 "
      "below a, seeds spread 0.0014).");
}

TEST(Verdict, OfARegressionR2Decides) {
  const auto lines = said(
      {{"a", {0.5, 0.502}, 1e6, 1e5, 10, &Score::r2},
       {"b", {0.6, 0.602}, 2e6, 1e5, 5, &Score::r2},
       {"c", {0.55}, 2e6, 1e5, 9, &Score::r2}});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(
      lines[0],
      "From 1.0 MB sent per worker, a wins with R² 0.5010 (seeds spread 0.0014); from 2.0 MB, b "
      "wins with R² 0.6010 (0.0510 above c, seeds spread 0.0014).");
  EXPECT_NE(lines[1].find("differences of a few hundredths may be chance"), std::string::npos);
  EXPECT_EQ(
      lines[2],
      "c is dominated on every axis: b is better, sends no more, is no larger and takes less "
      "time.");
}

TEST(Verdict, OneSeedIsSaidToBeOne) {
  EXPECT_EQ(
      said({{"a", {0.9}, 1e6}, {"b", {0.91, 0.911}, 2e6}}),
      (Lines{
          "From 1.0 MB sent per worker, a wins with 90.00 %; from 2.0 MB, b "
          "wins with 91.05 % (1.1 points above a, seeds spread 0.07).",
          "Some settings have only one seed: differences of a few tenths of a "
          "point may be chance."}));
  EXPECT_TRUE(said({{"a", {0.9}}}).empty());
}

TEST(Verdict, SaysWhereABTrainingWins) {
  const Given ab{"ab", {0.9, 0.901}, 1e6, 1e5, 10, &Score::accuracy, "ab"};
  EXPECT_EQ(
      said({ab, {"ddp", {0.95, 0.951}, 2e6}}).back(), "AB-training wins from 1.0 MB up to 2.0 MB.");
  EXPECT_EQ(
      said({ab, {"ddp", {0.9, 0.902}, 2e6, 1e5, 5}}).back(),
      "AB-training wins from 1.0 MB up to 2.0 MB and is not separated from the best from "
      "2.0 MB on.");
  EXPECT_EQ(said({ab, {"ddp", {0.95, 0.951}, 1e6}}).back(), "AB-training wins at no budget here.");
}

TEST(Verdict, ASeedThatDivergedIsTheWorstResult) {
  Given wild{"wild", {0.99, 0.991}, 1e6, 1e5, 4};
  wild.diverged_at = {7};
  Given gone{"gone", {}};
  gone.diverged_at = {7, 7, 12};
  const std::vector<Given> all = {wild, {"a", {0.9, 0.901}}, {"b", {0.8, 0.801}}, gone};
  const auto lines = said(all);
  ASSERT_EQ(lines.size(), 4U);  // the second says that b is dominated
  EXPECT_EQ(
      lines[0],
      "From 1.0 MB sent per worker, a wins with 90.05 % (10.0 points above b, seeds spread 0.07).");
  EXPECT_EQ(
      lines[2],
      "wild counts as the worst, with 2 of 3 runs finished: it diverged at step 7 with seed 3.");
  EXPECT_EQ(lines[3], "gone has no result: it diverged at steps 7 and 12 with seeds 1, 2 and 3.");
  EXPECT_TRUE(best_within(settings_of(all), 30, "here")
                  .ends_with("seeds spread 0.07). wild and gone diverged."));
  EXPECT_TRUE(best_within(settings_of(all), 0, "")
                  .ends_with("seeds spread 0.07). wild and gone diverged."));
  // Nobody is left.
  EXPECT_EQ(best_within(settings_of({gone}), 0, ""), "No setting has finished. gone diverged.");
  EXPECT_EQ(
      best_within(settings_of({gone}), 30, "here"),
      "Within 30 s of training (here), no setting has finished. gone diverged.");
}

TEST(Verdict, DataSetsDoNotCompete) {
  const auto lines = said(
      {{"a", {0.9, 0.901}},
       {"b", {0.8, 0.801}},
       {"c", {0.7, 0.701}, 1e6, 1e5, 10, &Score::accuracy, "ddp", "letters"}});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].find("digits: From 1.0 MB"), 0U) << lines[0];
}

}  // namespace
}  // namespace abtrain::report
