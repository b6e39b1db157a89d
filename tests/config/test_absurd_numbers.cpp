// Every number of every table at its bounds and far beyond: each is refused by
// name or works; nothing crashes, hangs or ends in an internal error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "base/named.h"
#include "base/options_apply.h"
#include "comm/failure.h"
#include "compress/schemes.h"
#include "config/config.h"
#include "error_of.h"
#include "linalg/rank_rule.h"
#include "plan/plan.h"
#include "toy_run.h"

namespace abtrain::config {
namespace {

using Texts = std::vector<std::string>;

// Small runs that between them use every key.
struct Base {
  std::string name;
  Texts sets;
  Texts sections;  // keys that matter to it
  bool trains = true;
};

void PrintTo(const Base& base, std::ostream* out) {
  *out << base.name;
}

Texts common() {
  return {
      "workers=2",
      "model.hidden=[8]",
      "data.batch_size=4",
      "train.steps=2",
      "evaluate.every=0",
      "method.warmup_steps=0",
      "method.sync_every=1",
      "method.full_rank_steps=0",
      "method.keep_dense=[]",
      "method.rank={rule: fixed, rank: 2}",
      "schedule.warmup_steps=0",
      "reducer.min_numel=8",
      "reducer.name=plain"};
}

// The overrides with which a key has an effect: the first choice that has it, of each section.
Texts choices_for(const std::string& key) {
  RunOptions options;
  Texts choices;
  if (key.starts_with("method.outer.wire.")) {  // ab takes few wires
    choices.emplace_back("method.name=diloco");
  }
  if (key == "optimizer.l1" || key == "optimizer.delta") {  // ab changes weights
    choices.emplace_back("method.name=ddp");
  }
  std::string prefix;
  const Fields all = fields_of(options);
  const std::vector<Field>* fields = &all.list();
  for (const std::string& part : split_text(key, '.')) {
    const Field& field = *std::ranges::find(*fields, part, &Field::key);
    const std::string decides = prefix + field.decided_by;
    if (!field.owners.empty() && (choices.empty() || decides != "method.name")) {
      choices.push_back(decides + "=" + field.owners.front());
    }
    prefix += part + ".";
    fields = &field.section;
  }
  return choices;
}

struct Number {
  std::string key;
  bool is_list = false;
  Texts bounds;  // the least and largest that the table takes
};

// The numeric keys, by what their tables say they want.
std::vector<Number> numbers() {
  RunOptions options;
  std::vector<Number> found;
  const Fields fields = fields_of(options);
  each_key(fields.list(), [&](const std::string& key, const Field& field) {
    const std::regex numeric("integer|number|duration");
    if (!std::regex_search(field.wanted, numeric)) {
      return;
    }
    Number number{key, field.wanted.starts_with("a list"), {}};
    static const std::regex closed("from ([-0-9.e]+) to ([-0-9.e]+)");
    static const std::regex above("above ([0-9.e]+) and at most ([0-9.e]+)");
    static const std::regex below("from ([0-9.e]+) to below ([0-9.e]+)");
    std::smatch match;
    if (field.wanted.ends_with("2^64-1")) {
      number.bounds = {"0", "18446744073709551615"};
    } else if (std::regex_search(field.wanted, match, closed)) {
      number.bounds = {match[1], match[2]};
    } else if (std::regex_search(field.wanted, match, above)) {
      number.bounds = {"1e-30", match[2]};
    } else if (std::regex_search(field.wanted, match, below)) {
      number.bounds = {match[1], "0.999999"};
    } else {
      ADD_FAILURE() << key << " has no bounds: " << field.wanted;
    }
    found.push_back(number);
  });
  return found;
}

std::string set_to(const Number& number, const std::string& value) {
  return number.is_list ? number.key + "=[" + value + "]" : number.key + "=" + value;
}

// The exit code of `body`; what it says where that is none of a user's making.
template <class Body>
int code_of(const Body& body, const std::string& what) {
  try {
    body();
  } catch (...) {
    const auto error = std::current_exception();
    const int code = comm::exit_code_of(error);
    EXPECT_NE(code, 1) << what << ": " << comm::message_of(error);
    return code;
  }
  return 0;
}

TEST(AbsurdNumbers, AreRefusedByName) {
  const auto all = numbers();
  EXPECT_GT(all.size(), 70U);
  for (const Number& number : all) {
    for (const char* value :
         {"9223372036854775807", "-9223372036854775808", "288230376151711744", "-1", "1e300",
          "-1e300", "1e999", ".nan", ".inf", "-.inf", "340282366920938463463374607431768211456"}) {
      Texts sets = common();
      std::ranges::copy(choices_for(number.key), std::back_inserter(sets));
      sets.push_back(set_to(number, value));
      // Rates go up to what fp32 holds, seeds to 2^64 - 1.
      const double read = std::strtod(value, nullptr);
      const double low = std::strtod(number.bounds[0].c_str(), nullptr);
      const double high = std::strtod(number.bounds[1].c_str(), nullptr);
      const char first = value[value[0] == '-' ? 1 : 0];
      if (std::isdigit(first) != 0 && read >= low && read <= high) {
        EXPECT_NO_THROW(read_config("", sets)) << sets.back();
        continue;
      }
      SCOPED_TRACE(sets.back());
      expect_error([&] { read_config("", sets); }, ErrorKind::Config, {number.key + ": expected"});
    }
  }
}

class Bounds : public ::testing::TestWithParam<Base> {};

// What a table takes at its bounds, planned and where it is small trained.
TEST_P(Bounds, WorkOrAreRefused) {
  const Base& base = GetParam();
  const data::Dataset toy = testing::toy_dataset(64, 1, 16);
  for (const Number& number : numbers()) {
    if (std::ranges::none_of(base.sections, [&](const std::string& section) {
          return number.key.starts_with(section);
        })) {
      continue;
    }
    Texts values = number.bounds;
    values.emplace_back("2147483648");
    for (const std::string& value : values) {
      Texts sets = common();
      sets.insert(sets.end(), base.sets.begin(), base.sets.end());
      sets.push_back(set_to(number, value));
      const std::string& what = sets.back();
      RunOptions options;
      int code = code_of([&] { options = read_config("", sets); }, what);
      EXPECT_TRUE(code == 0 || code == 78) << what;
      if (code != 0) {
        continue;
      }
      code = code_of([&] { plan::plan_text(options); }, what);
      EXPECT_TRUE(code == 0 || code == 78) << what << ": " << code;
      const bool is_long = number.key == "train.epochs" || number.key == "train.steps" ||
                           number.key == "train.timeout";
      if (code != 0 || is_long || !base.trains || options.workers > 8 ||
          nn::make_model(options.model, toy)->dense_parameters() > 2'000'000) {
        continue;
      }
      options.data.batch_size = std::min<std::int64_t>(options.data.batch_size, 8);
      code = code_of([&] { testing::train_all(options, toy); }, what);
      // A huge rate may well break the model.
      EXPECT_TRUE(code == 0 || code == 70 || code == 78) << what << ": " << code;
    }
  }
}

std::vector<Base> bases() {
  std::vector<Base> all = {
      {"ddp",
       {"method.name=ddp"},
       {"workers", "seed", "data.", "optimizer.", "schedule.", "train.", "checkpoint.",
        "evaluate."}},
      {"ab", {"method.name=ab"}, {"workers", "method."}},
      {"ab_full_rank",
       {"method.name=ab", "method.full_rank_steps=1", "method.sync_every=2",
        "method.rank.rule=energy"},
       {"method."}},
      {"local", {"method.name=local-sgd"}, {"workers", "method."}},
      {"diloco",
       {"method.name=diloco", "method.sync_every=2"},
       {"workers", "method.", "reducer.dense_steps"}},
      {"adagrad", {"method.name=ddp", "optimizer.name=qcmd-adagrad"}, {"optimizer."}},
      {"muon", {"method.name=ddp", "optimizer.name=muon"}, {"optimizer."}},
      {"sgd",
       {"method.name=ddp", "optimizer.name=sgd", "schedule.name=step"},
       {"optimizer.", "schedule."}},
      {"grab",
       {"method.name=ddp", "order.name=cd-grab", "order.wire=int8"},
       {"order.", "train.", "data."}},
      {"cnn", {"method.name=ddp", "model.name=cnn", "model.channels=[4]"}, {"model."}},
      {"resnet", {"method.name=ddp", "model.name=resnet18", "model.width=0.02"}, {"model."}},
      {"vit", {"method.name=ddp", "model.name=vit-tiny"}, {"model."}, false}};
  for (const std::string& name : names_in(linalg::rank_rules())) {
    all.push_back({name, {"method.rank.rule=" + name}, {"method.rank"}});
  }
  for (const std::string& name : names_in(compress::schemes())) {
    all.push_back(
        {name, {"method.name=ddp", "reducer.bits=4", "reducer.name=" + name}, {"reducer."}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Bounds, ::testing::ValuesIn(bases()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace abtrain::config
