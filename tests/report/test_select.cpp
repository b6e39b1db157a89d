// Which runs are compared, how they are sorted, and with which they compete.
#include "report/select.h"

#include <gtest/gtest.h>

#include "base/mapped.h"
#include "base/text.h"
#include "error_of.h"
#include "report/columns.h"
#include "report/formats.h"
#include "report/front.h"
#include "report/marked_settings.h"
#include "report/traits.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

using testing::add_run;

// Three runs on images of two data sets, and two of texts.
class Select : public ::testing::Test {
 protected:
  void SetUp() override {
    add_run(folder_, {.name = "r16", .seed = 2, .accuracy = 0.9, .config = "model: {name: cnn}\n"});
    add_run(folder_, {.name = "r4", .accuracies = {0.8}, .accuracy = 0.8});
    add_run(folder_, {.name = "small", .accuracy = 0.5, .config = "data: {name: cifar10}\n"});
    for (const char* text : {"b", "a"}) {
      add_run(
          folder_, {.name = formatted("text_{}", text),
                    .reducer = "thc",
                    .accuracies = {2},
                    .accuracy = 2,
                    .text = true,
                    .config = formatted(
                        "data: {{name: text, root: /texts/{}/}}\nmodel: {{name: "
                        "gpt-nano}}\n",
                        text)});
    }
  }

  Comparison found(const std::vector<std::string>& where = {}) const {
    return compare({folder_.path()}, {}, Spectra::Skip, read_conditions(where));
  }
  static std::string names(const Comparison& comparison) {
    return join(mapped(comparison.settings, &Setting::name), " ");
  }
  static std::string marked(const Column& column, const Comparison& all) {
    return join(marked_by(column, all.settings), " ");
  }

  TempFolder folder_;
};

TEST_F(Select, RunsOnOtherDataDoNotCompete) {
  const Comparison all = found();
  EXPECT_EQ(names(all), "small r16 r4 text_a text_b");
  EXPECT_EQ(marked(choose_columns("accuracy", {})[0], all), "r16");
  EXPECT_EQ(marked(choose_columns("train_seconds", {})[0], all), "r4");
  // A run that is the only one of its data is on the front there.
  EXPECT_EQ(marked(front_columns({})[3], all), "small r16 r4 text_a text_b");
  const std::string mark = mark_text(choose_columns("bytes", {}), all.settings);
  EXPECT_EQ(mark, "best of the column, among runs of the same data");
}

TEST_F(Select, WhatDiffersIsShown) {
  const auto table = split_text(as_table(found(), choose_columns("accuracy", {}), false), '\n');
  EXPECT_EQ(table[0], "run     data           model     steps  seeds  accuracy, %");
  EXPECT_EQ(table[1], "small   cifar10        mlp          30      1       50.00");
  EXPECT_EQ(table[2], "r16     fashion-mnist  cnn          30      1       90.00*");
  EXPECT_EQ(table[4], "text_a  text a         gpt-nano     10      1           -");
  EXPECT_TRUE(shown_traits(found({"data.name=cifar10"}).settings).empty());
}

TEST_F(Select, ConditionsChooseRuns) {
  EXPECT_EQ(names(found({"data.name=cifar10"})), "small");
  EXPECT_EQ(names(found({"data.name=cifar10", "data.name='fashion-mnist'"})), "small r16 r4");
  EXPECT_EQ(names(found({"data.name=fashion-mnist", "model.name=cnn"})), "r16");
  EXPECT_EQ(names(found({"seed=2"})), "r16");
  EXPECT_EQ(names(found({"name=r4"})), "r4");
  EXPECT_EQ(names(found({"data={name: cifar10}"})), "small");
  // As a value of its type, not as a text.
  EXPECT_EQ(names(found({"optimizer.lr=1.0e-3", "seed=2"})), "r16");
}

TEST_F(Select, ConditionsThatFindNothingAreErrors) {
  const auto error = [&](const std::string& condition) {
    return abtrain::error_of([&] { found({condition}); });
  };
  EXPECT_EQ(
      error("data.name=gcide"),
      std::pair(
          66, std::string("--where data.name=gcide: no run has it; the values "
                          "there are: cifar10, fashion-mnist, text")));
  expect_error([&] { found({"data.nam=gcide"}); }, ErrorKind::Usage, {"--where data.nam=gcide"});
  EXPECT_NE(error("cifar10").second.find("expected a.b=value"), std::string::npos);
}

TEST_F(Select, SettingsAreSortedByAnyColumn) {
  Comparison all = found();
  const auto sorted = [&](const std::string& key) {
    sort_settings(all, key);
    return names(all);
  };
  EXPECT_EQ(sorted("name"), "r4 r16 small text_a text_b");
  EXPECT_EQ(sorted("accuracy"), "r16 r4 small text_a text_b");
  EXPECT_EQ(sorted("steps"), "r4 text_a text_b r16 small");
  EXPECT_EQ(sorted("bits_per_byte"), "text_a text_b r4 r16 small");
  EXPECT_EQ(sorted("model"), "r16 text_a text_b r4 small");
  for (const std::string& key : sort_keys()) {
    if (key.find("_to_target") == std::string::npos) {
      sort_settings(all, key);
    } else {
      EXPECT_THROW(sort_settings(all, key), Error) << key;
    }
  }
}

}  // namespace
}  // namespace abtrain::report
