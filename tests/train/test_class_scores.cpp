// What an evaluation says of each class.
#include "train/class_scores.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "train/evaluation.h"

namespace abtrain::train {
namespace {

using nlohmann::ordered_json;

at::Tensor answers_of(const std::vector<std::int64_t>& numbers) {
  return at::tensor(numbers, at::kLong).view({-1, 3});
}

ordered_json evaluation_of(
    const std::vector<std::int64_t>& numbers, std::int64_t classes,
    const std::vector<std::string>& names = {}) {
  ordered_json evaluation = {{"accuracy", 0.5},
                             {"loss", 1.25},
                             {"images", 4},
                             {"damaged_images", {{"count", 1}}},
                             {"compression_ratio", 2},
                             {"model", "runs/m"}};
  add_class_scores(evaluation, answers_of(numbers), classes, names);
  return evaluation;
}

TEST(ClassScores, CountWhatIsTakenForWhat) {
  const ordered_json evaluation =
      evaluation_of({0, 0, 1, 0, 2, 1, 2, 2, 1, 0, 2, 1}, 3, {"cat", "d\x1b", "eel"});
  EXPECT_EQ(evaluation["confusion"], ordered_json::parse("[[1, 0, 2], [0, 0, 0], [0, 0, 1]]"));
  EXPECT_EQ(
      evaluation["per_class"][0],
      (ordered_json{{"class", 0}, {"name", "cat"}, {"count", 3}, {"accuracy", 1.0 / 3}}));
  EXPECT_EQ(
      evaluation["per_class"][1],
      (ordered_json{{"class", 1}, {"name", "d\x1b"}, {"count", 0}, {"accuracy", nullptr}}));
  EXPECT_FALSE(evaluation.contains("top5"));
  EXPECT_EQ(
      evaluation_text(evaluation),
      "accuracy 50.00 %, loss 1.2500: 4 images (1 damaged ones left out), runs/m, compression "
      "ratio 2.00\n"
      "\n"
      "class      images    accuracy\n"
      "0 cat           3     33.33 %\n"
      "1 d\\x1b         0           -\n"
      "2 eel           1    100.00 %\n"
      "\n"
      "true, predicted    0   1   2\n"
      "0 cat              1   0   2\n"
      "1 d\\x1b            0   0   0\n"
      "2 eel              0   0   1\n");
}

// Arrays are no images, and a regression has no accuracy.
TEST(ClassScores, SayWhatTheExamplesAre) {
  ordered_json evaluation = evaluation_of({0, 0, 1, 1, 1, 1}, 2);
  evaluation.erase("images");
  evaluation["examples"] = 2;
  const std::string text = evaluation_text(evaluation);
  EXPECT_NE(text.find("loss 1.2500: 2 examples ("), std::string::npos) << text;
  EXPECT_NE(text.find("\nclass   examples    accuracy\n"), std::string::npos) << text;
  evaluation.erase("per_class");
  evaluation["r2"] = 0.5;
  EXPECT_TRUE(evaluation_text(evaluation).starts_with("R² 0.5000, loss 1.2500: 2 examples"));
}

TEST(ClassScores, ShowTheWorstOfManyClasses) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t c = 0; c < 30; ++c) {  // class 11 and those after it are never right
    numbers.insert(numbers.end(), {c, c > 10 ? 0 : c, c % 2});
  }
  const ordered_json evaluation = evaluation_of(numbers, 31);
  EXPECT_EQ(evaluation["top5"], 0.5);
  EXPECT_EQ(evaluation["per_class"].size(), 31U);
  EXPECT_EQ(evaluation["confusion"].size(), 31U);
  const std::string text = evaluation_text(evaluation);
  EXPECT_NE(text.find("accuracy 50.00 %, top-5 50.00 %, loss"), std::string::npos) << text;
  EXPECT_NE(text.find("\n11 "), std::string::npos) << text;
  EXPECT_NE(text.find("\n20 "), std::string::npos) << text;
  for (const char* other : {"\n10 ", "\n21 ", "\n30 ", "predicted"}) {
    EXPECT_EQ(text.find(other), std::string::npos) << text;
  }
  EXPECT_NE(text.find("worst of 31 classes"), std::string::npos) << text;
  // A table of so many classes would be as large as a model.
  EXPECT_FALSE(evaluation_of(numbers, 1001).contains("confusion"));
}

TEST(RankedClasses, TheLikeliestFirstAndOfEqualOnesTheFirst) {
  const at::Tensor logits = at::tensor(std::vector<double>{1, 3, 3, 2, 3, 0}, at::kDouble);
  EXPECT_TRUE(
      ranked_classes(logits.view({2, 3}))
          .equal(at::tensor(std::vector<std::int64_t>{1, 2, 0, 1, 0, 2}, at::kLong).view({2, 3})));
}

}  // namespace
}  // namespace abtrain::train
