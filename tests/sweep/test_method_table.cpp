#include "sweep/method_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compress/schemes.h"
#include "config/config.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

constexpr const char* kTable =
    "name: mine\nworkers: 4\n"
    "data: {name: fashion-mnist, batch_size: 50}\n"
    "model: {name: mlp, hidden: [256, 256]}\n"
    "method: {name: ab, warmup_steps: 20, sync_every: 30, rank: {rule: fixed, rank: 12}}\n"
    "train: {steps: 200}\n";

class MethodTables : public testing::SweepFiles {
 protected:
  MethodTable table(
      const Sets& sets = {}, const std::optional<plan::TimeRequest>& request = {}) const {
    Log log;
    return method_table(folder_.add("mine.yaml", kTable), sets, request, {}, log);
  }
  static const MethodTable::Row* find(const MethodTable& table, const std::string& name) {
    const auto row = std::ranges::find(table.rows, name, &MethodTable::Row::name);
    return row == table.rows.end() ? nullptr : &*row;
  }
};

TEST_F(MethodTables, EveryRowHasTheBytesOfItsOwnPlan) {
  const MethodTable table = this->table();
  EXPECT_EQ(table.configured, "ab");
  for (const MethodTable::Row& row : table.rows) {
    const config::RunOptions o = config::read_config(folder_ / "mine.yaml", row.set, {});
    const data::DatasetShape set = plan::planned_data(o.data).shape;
    const auto sizes = config::model_sizes(o, set);
    ASSERT_TRUE(sizes) << row.name;
    EXPECT_EQ(o.train.steps, 200) << row.name;
    const double bytes = plan::planned_bytes(o, sizes->sizes, config::run_length(o, set.train));
    EXPECT_EQ(row.outline.bytes.least, bytes) << row.name;
    EXPECT_EQ(row.outline.bytes.most, bytes) << row.name;
  }
  const auto bytes = [](const MethodTable::Row& row) { return row.outline.bytes.most; };
  EXPECT_TRUE(std::ranges::is_sorted(table.rows, {}, bytes));
}

TEST_F(MethodTables, EveryReducerHasARow) {
  const MethodTable table = this->table();
  for (const compress::Scheme* scheme : compress::schemes()) {
    const std::string name = scheme->name;
    if (scheme->compresses) {
      EXPECT_NE(find(table, name == "powersgd" ? name : "ddp_" + name), nullptr) << name;
    }
  }
  for (const char* name : {"ddp", "ddp_bf16", "local_sgd", "diloco", "ab", "ab_recipe"}) {
    EXPECT_NE(find(table, name), nullptr) << name;
  }
}

TEST_F(MethodTables, TheConfigurationIsARowOfItsOwnWhereNoneEqualsIt) {
  const MethodTable table = this->table({"method.name=ddp", "reducer.name=int4", "reducer.bits=3"});
  EXPECT_EQ(table.configured, find(table, "configured") == nullptr ? "ddp" : "configured");
}

TEST_F(MethodTables, ShowsBoundsWhereOnlySpectraTellTheRanks) {
  const MethodTable table = this->table({"method.rank.rule=sigma"});
  const MethodTable::Row& ab = *find(table, "ab");
  EXPECT_LT(ab.outline.bytes.least, ab.outline.bytes.most);
  EXPECT_LT(ab.outline.stored.least, ab.outline.stored.most);
  const std::string text = method_table_text(table);
  EXPECT_NE(text.find(" MB to "), std::string::npos) << text;
  EXPECT_NE(text.find("A to B: the ranks follow from the spectra"), std::string::npos);
  EXPECT_EQ(method_table_text(this->table()).find("A to B"), std::string::npos);
}

TEST_F(MethodTables, HasTheSecondsOfTheLinkAlone) {
  plan::TimeRequest request{.network = {.nodes = 4, .rate = 1e8}, .compute = plan::ComputeTime{}};
  const MethodTable table = this->table({}, request);
  const MethodTable::Row& ddp = *find(table, "ddp");
  // On top of the bytes over the rate: headers, 66 bytes of every 1448, and latencies.
  const double bits = 8 * ddp.outline.bytes.most * (1 + 66.0 / 1448);
  EXPECT_NEAR(ddp.outline.communication->most / (bits / 1e8), 1, 0.05);
  EXPECT_FALSE(table.measured);
  const std::string text = method_table_text(table);
  EXPECT_NE(text.find("4 nodes, links of 100 Mbit/s each way"), std::string::npos);
  EXPECT_EQ(text.find("Training:"), std::string::npos) << text;
}

// A model without a layer to factor has all other methods.
TEST_F(MethodTables, LeavesOutAbTrainingWhereNothingCanBeFactored) {
  const MethodTable table = this->table({"method.name=ddp", "model.name=softmax"});
  EXPECT_EQ(find(table, "ab_recipe"), nullptr);
  EXPECT_EQ(find(table, "small_ddp"), nullptr);
  EXPECT_NE(find(table, "ddp_int4"), nullptr);
  EXPECT_EQ(table.parameters, 0);
  const auto left_out = method_table_json(table)["left_out"];
  EXPECT_TRUE(std::ranges::any_of(left_out, [](const auto& one) {
    return one["name"] == "ab_recipe" &&
           one["why"].template get<std::string>().find("no layer to factor") != std::string::npos;
  })) << left_out;
}

TEST_F(MethodTables, ShowsEachWarningOnceWithItsMethods) {
  const std::string text = method_table_text(table({"method.rank.rank=1"}));
  const std::string warning =
      "ab: method.rank: 2 of the 2 layers that AB-training factors get rank 1";
  const auto place = text.find(warning);
  ASSERT_NE(place, std::string::npos) << text;
  EXPECT_EQ(text.find("2 of the 2 layers", place + warning.size()), std::string::npos);
}

}  // namespace
}  // namespace abtrain::sweep
