#include "linalg/driver_choice.h"

#include <ATen/ops/eye.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <stdexcept>

namespace abtrain::linalg {
namespace {

std::vector<Eigenpairs> pairs(double first, bool orthonormal = true) {
  auto vectors = at::eye(2, at::kDouble);
  if (!orthonormal) {
    vectors[0][1] = 0.1;
  }
  return {{{first, 1.0}, vectors}};
}

// Drivers that say what they were told to; the clock is a table.
class Choosing : public testing::Test {
 protected:
  Driver driver(const std::string& name, std::vector<Eigenpairs> result) {
    return {name, [this, name, result] {
              ++calls_[name];
              last_ = name;
              return result;
            }};
  }
  DriverChoice::Timer clock(std::map<std::string, double> table) {
    return [this, table](const std::function<void()>& body) {
      body();
      return table.at(last_);
    };
  }
  std::map<std::string, int> calls_;
  std::string last_;
  DriverChoice choice_;
  const BatchShape shape_{6, 2, 1};
};

TEST_F(Choosing, KeepsTheFastestAndTimesOnce) {
  const std::vector<Driver> drivers = {
      driver("slow", pairs(4)), driver("fast", pairs(4))};
  const auto timer = clock({{"slow", 9}, {"fast", 2}});
  EXPECT_EQ(choice_.run(shape_, drivers, timer)[0].values[0], 4);
  EXPECT_EQ(choice_.choices().at(shape_).kept, "fast");
  EXPECT_EQ(choice_.choices().at(shape_).tried[0].milliseconds, 9);
  choice_.run(shape_, drivers, timer);
  EXPECT_EQ(calls_["slow"], 2);
  EXPECT_EQ(calls_["fast"], 3);
  // Another shape is another question.
  choice_.run({7, 2, 1}, drivers, clock({{"slow", 1}, {"fast", 2}}));
  EXPECT_EQ(choice_.choices().at({7, 2, 1}).kept, "slow");
}

TEST_F(Choosing, AWrongOneMayNotWin) {
  const std::vector<Driver> drivers = {
      driver("slow", pairs(4)),
      driver("wrong", pairs(4 + 4e-5)),
      driver("nan", pairs(NAN)),
      driver("skew", pairs(4, false)),
      {"broken",
       []() -> std::vector<Eigenpairs> { throw std::runtime_error("no"); }},
      driver("right", pairs(4 + 1e-8))};
  const auto got = choice_.run(
      shape_,
      drivers,
      clock(
          {{"slow", 9}, {"wrong", 1}, {"nan", 1}, {"skew", 1}, {"right", 5}}));
  EXPECT_EQ(got[0].values[0], 4 + 1e-8);
  const auto& choice = choice_.choices().at(shape_);
  EXPECT_EQ(choice.kept, "right");
  for (const TimedDriver& tried : choice.tried) {
    EXPECT_EQ(
        tried.fault.empty(), tried.name == "slow" || tried.name == "right")
        << tried.name;
  }
}

TEST_F(Choosing, ErrorsOfTheYardstickComeOut) {
  const std::vector<Driver> drivers = {
      {"broken",
       []() -> std::vector<Eigenpairs> { throw std::runtime_error("no"); }},
      driver("right", pairs(4))};
  EXPECT_THROW(
      choice_.run(shape_, drivers, clock({{"right", 1}})), std::runtime_error);
}

TEST_F(Choosing, OneDriverIsNotTimed) {
  choice_.run(
      shape_, {driver("only", pairs(4))}, [](const std::function<void()>&) {
        ADD_FAILURE();
        return 0.0;
      });
  EXPECT_EQ(calls_["only"], 1);
}

}  // namespace
}  // namespace abtrain::linalg
