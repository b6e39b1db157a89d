// Configurations that are wrong in a key, a value or their syntax: each case
// with all that must be reported. One case per form of a value has the whole
// message; of the others place, key and what is special count.
#include "wrong_config.h"

namespace abtrain::config {
namespace {

using testing::case_name;
using Case = testing::WrongCase;

class WrongConfig : public ::testing::TestWithParam<Case> {};

TEST_P(WrongConfig, ReportsAll) {
  testing::expect_problems(GetParam());
}

const Case kKeys[] = {
    {"unknown_key",
     "wokers: 4\n",
     {"workers=4"},
     {"c.yaml:1:1: error: wokers: unknown key, did you mean 'workers'?"}},
    {"unknown_inner_key",
     "method:\n  name: ab\n  sinc: full\n",
     {},
     {"c.yaml:3:3: error: method.sinc: unknown key, did you mean "
      "'method.sync'?"}},
    {"key_of_another_section",
     "lr: 1e-3\n",
     {},
     {"c.yaml:1:1: error: lr: unknown key, did you mean 'optimizer.lr'?"}},
    {"unknown_section", "telemetry: {a: 1}\n", {}, {"c.yaml:1:1: error: telemetry: unknown key"}},
    {"repeated_key",
     "seed: 1\nname: x\nseed: 2\n",
     {},
     {"c.yaml:3:1: error: seed: given twice, first at 1:1"}},
    {"repeated_section",
     "train: {epochs: 1}\ntrain: {steps: 3}\n",
     {},
     {"c.yaml:2:1: error: train: given twice, first at 1:1"}},
    {"repeated_key_in_flow",
     "train: {epochs: 1, epochs: 2}\n",
     {},
     {"c.yaml:1:20: error: train.epochs: given twice, first at 1:9"}},
    {"merge_key",
     "train: &t {epochs: 1}\ndata:\n  <<: 3\n",
     {},
     {"c.yaml:3:3: error: merge keys (<<) are not supported; use 'extends'"}},
    {"alias",
     "seed: &s 1\nname: *s\n",
     {},
     {"c.yaml:2:7: error: aliases (*name) are not supported; write the value "
      "out"}},
    {"aliases_of_aliases",
     "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b, *b]\n",
     {},
     {"c.yaml:2:8: error: aliases (*name) are not supported; write the value "
      "out"}},
    {"sweep_file",
     "name: x\nbase: mlp\ngrid: {workers: [1, 2]}\n",
     {},
     {"c.yaml:2:1: error: base: this is a sweep file, not a configuration; "
      "`abtrain sweep c.yaml` trains its points"}},
    {"tag",
     "seed: !!int 3\n",
     {},
     {"c.yaml:1:7: error: tags are not supported, got tag:yaml.org,2002:int"}},
    {"key_that_is_a_list", "[a, b]: 3\n", {}, {"c.yaml:1:1: error: expected a key, got a list"}},
    {"scalar_for_a_section",
     "method: ab\n",
     {},
     {"c.yaml:1:9: error: method: expected a section, as in "
      "'method: {name: ab}', got 'ab'"}},
    {"list_for_a_section",
     "train:\n  - epochs: 3\n",
     {},
     {"c.yaml:2:3: error: train: expected a section, as in "
      "'train: {epochs: 6}', got a list"}},
    {"nothing_for_a_section",
     "data:\nseed: 1\n",
     {},
     {"c.yaml:1:1: error: data: expected a section, as in "
      "'data: {name: fashion-mnist}', got nothing"}},
    {"section_for_a_scalar",
     "seed: {a: 1}\n",
     {},
     {"c.yaml:1:7: error: seed: expected an integer from 0 to 2^64-1, got a "
      "section"}},
};

const Case kValues[] = {
    {"text_for_an_integer",
     "train: {steps: many}\n",
     {},
     {"c.yaml:1:16: error: train.steps: expected an integer from 0 to "
      "100000000, got 'many'"}},
    {"octal",
     "train: {steps: 010}\n",
     {},
     {"c.yaml:1:16: error: train.steps: expected ... got '010' (write it "
      "without the leading zero)"}},
    {"hexadecimal", "seed: 0x10\n", {}, {"c.yaml:1:7: error: seed: expected ... got '0x10'"}},
    {"fraction_for_an_integer",
     "workers: 4.0\n",
     {},
     {"c.yaml:1:10: error: workers: expected ... got '4.0'"}},
    {"negative_seed", "seed: -1\n", {}, {"c.yaml:1:7: error: seed: expected ... got '-1'"}},
    {"too_large",
     "seed: 18446744073709551616\n",
     {},
     {"c.yaml:1:7: error: seed: expected ... got '18446744073709551616'"}},
    {"quoted_number",
     "train: {epochs: \"3\"}\n",
     {},
     {"c.yaml:1:17: error: train.epochs: expected ... got \"3\" (leave the "
      "quotes off)"}},
    {"yes_for_true",
     "optimizer: {decay_all: yes}\n",
     {},
     {"c.yaml:1:24: error: optimizer.decay_all: expected ... got 'yes'"}},
    {"nan",
     "optimizer: {lr: .nan}\n",
     {},
     {"c.yaml:1:17: error: optimizer.lr: expected ... got '.nan' (not a finite "
      "number)"}},
    {"infinite",
     "optimizer: {weight_decay: inf}\n",
     {},
     {"c.yaml:1:27: error: optimizer.weight_decay: expected ... got 'inf' (not "
      "a finite number)"}},
    {"beyond_a_double",
     "optimizer: {lr: 1e999}\n",
     {},
     {"c.yaml:1:17: error: optimizer.lr: expected a number above 0 and at most "
      "1e38, got '1e999' (beyond what a double can hold)"}},
    {"fp16",
     "train: {precision: fp16}\n",
     {},
     {"c.yaml:1:20: error: train.precision: expected one of auto, fp32, bf16, got "
      "'fp16' (fp16 is not supported; use bf16)"}},
    {"zero_rate",
     "optimizer: {lr: 0}\n",
     {},
     {"c.yaml:1:17: error: optimizer.lr: expected ... got '0'"}},
    {"out_of_range",
     "train:\n  label_smoothing: 1\n",
     {},
     {"c.yaml:2:20: error: train.label_smoothing: expected ... got '1'"}},
    {"empty_value",
     "train:\n  epochs:\n  steps: 3\n",
     {},
     {"c.yaml:2:3: error: train.epochs: expected ... got nothing"}},
    {"null_value", "name: ~\n", {}, {"c.yaml:1:1: error: name: expected ... got nothing"}},
    {"empty_text",
     "output: \"\"\n",
     {},
     {"c.yaml:1:9: error: output: expected ... got \"\" (it is empty)"}},
    {"wrong_choice",
     "optimizer: {name: adam}\n",
     {},
     {"c.yaml:1:19: error: optimizer.name: expected one of sgd, adamw, muon, "
      "qcmd-adagrad, qrda-adagrad, got 'adam' (did you mean 'adamw'?)"}},
    {"wrong_rank_rule",
     "method: {rank: {rule: fix}}\n",
     {},
     {"c.yaml:1:23: error: method.rank.rule: expected ... got 'fix' (did you "
      "mean 'fixed'?)"}},
    {"wrong_group_size",
     "method: {group_size: half}\n",
     {},
     {"c.yaml:1:22: error: method.group_size: expected auto or an integer from "
      "1 to 65536, got 'half'"}},
    {"wrong_unit",
     "checkpoint: {every: 10 minutes}\n",
     {},
     {"c.yaml:1:21: error: checkpoint.every: expected a duration from 0 to "
      "100000000, as in 110, 2 epochs or 5 %, got '10 minutes' (the unit must "
      "be steps, epochs or %)"}},
    {"fraction_of_a_step",
     "method: {sync_every: 1.5}\n",
     {},
     {"c.yaml:1:22: error: method.sync_every: expected ... got '1.5' (steps "
      "are whole numbers)"}},
    {"scalar_for_a_list",
     "model: {hidden: 64}\n",
     {},
     {"c.yaml:1:17: error: model.hidden: expected ... got '64' (write [64])"}},
    {"wrong_items",
     "model:\n  hidden: [64, 0, x]\n",
     {},
     {"c.yaml:2:16: error: model.hidden: expected ... got '0'",
      "c.yaml:2:19: error: model.hidden: expected ... got 'x'"}},
    {"empty_list",
     "model: {hidden: []}\n",
     {},
     {"c.yaml:1:17: error: model.hidden: expected a list, each item an integer "
      "from 1 to 1000000, got a list (it is empty)"}},
    {"name_with_a_slash",
     "name: a/b\n",
     {},
     {"c.yaml:1:7: error: name: expected ... got 'a/b' (a name cannot contain "
      "slashes)"}},
    {"name_of_a_parent",
     "name: ..\n",
     {},
     {"c.yaml:1:7: error: name: expected ... got '..' (that already stands for "
      "a folder)"}},
};

const Case kSyntax[] = {
    {"unclosed_list",
     "seed: 1\nmodel: {hidden: [1, 2}\n",
     {},
     {"c.yaml:2:22: error: not valid YAML: illegal flow end"}},
    {"unclosed_quote",
     "name: \"ab\nseed: 1\n",
     {},
     {"c.yaml:1:7: error: not valid YAML: the quote is not closed"}},
    {"unclosed_single_quote",
     "output: 'it''s\n",
     {},
     {"c.yaml:1:9: error: not valid YAML: the quote is not closed"}},
    {"block_text_for_a_name",
     "name: |\n  a\n  \"b\n",
     {},
     {"c.yaml:1:7: error: name: expected ... got \"a \"b \" (a name cannot "
      "contain control characters)"}},
    {"two_colons", "name: a: b\n", {}, {"c.yaml:1:8: error: not valid YAML: illegal map value"}},
    {"column_after_an_umlaut",
     "name: \"\xC3\xBC\" x\n",
     {},
     {"c.yaml:1:11: error: not valid YAML: end of map not found"}},
    {"tab",
     "train:\n\tepochs: 3\n",
     {},
     {"c.yaml:2:1: error: a tab in the indentation; use spaces"}},
    {"no_blank_after_the_colon",
     "name: a\nseed:3\n",
     {},
     {"c.yaml:2:1: error: seed:3: unknown key (put a space after the ':')"}},
    {"a_list", "- a\n", {}, {"c.yaml:1:1: error: expected keys, as in 'workers: 4', got a list"}},
    {"a_scalar",
     "hello\n",
     {},
     {"c.yaml:1:1: error: expected keys, as in 'workers: 4', got 'hello'"}},
    {"only_a_comment", "# nothing\n", {}, {"c.yaml:1:1: error: the file is empty; expected keys"}},
    {"two_documents",
     "seed: 1\n---\nseed: 2\n",
     {},
     {"c.yaml:2:1: error: a second document begins; expected only one"}},
    {"latin_1", "seed: 1\nname: caf\xE9\n", {}, {"c.yaml:2:10: error: not UTF-8 text"}},
    {"binary",
     std::string(
         "\x7F"
         "ELF\x02\x01\0\0",
         8),
     {},
     {"c.yaml:1:1: error: not a text file: it holds control characters"}},
    {"utf_16", std::string("\xFF\xFEs\0e\0", 6), {}, {"c.yaml:1:1: error: not UTF-8 text"}},
    {"windows_line_ends",
     "seed: 1\r\nsede: 2\r\n",
     {},
     {"c.yaml:2:1: error: sede: unknown key, did you mean 'seed'?"}},
};

INSTANTIATE_TEST_SUITE_P(Keys, WrongConfig, ::testing::ValuesIn(kKeys), case_name);
INSTANTIATE_TEST_SUITE_P(Values, WrongConfig, ::testing::ValuesIn(kValues), case_name);
INSTANTIATE_TEST_SUITE_P(Syntax, WrongConfig, ::testing::ValuesIn(kSyntax), case_name);

TEST(ConfigProblems, ShowTheLineAndACaret) {
  std::string whole;
  testing::problems_of({"", "# c\nmodel: {hiden: [3]}\n", {}, {}}, &whole);
  EXPECT_NE(whole.find("\n  2 | model: {hiden: [3]}\n    |         ^"), std::string::npos) << whole;
}

}  // namespace
}  // namespace abtrain::config
