// Language models on the command line: a run, its text, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "program.h"
#include "small_run.h"
#include "temp_folder.h"

namespace abtrain {
namespace {

class TextCommands : public ::testing::Test {
 protected:
  TextCommands() {
    std::string text;
    for (int i = 0; i < 400; ++i) {
      text += "The quick brown fox jumps over the lazy dog. ";
    }
    text_ = folder_.add("text", text);
  }
  // The arguments of a run on the text, whose folder is runs/text.
  std::string arguments(const std::string& more = "") const {
    return "--config gcide_gpt --output '" + folder_.path() +
           "' --name run --set data.name=text --set data.root='" + text_ +
           "' --set data.context=16 --set data.test_share=0.1 --set "
           "model.layers=1 --set 'method.keep_dense=[default]' --set model.features=32 --set "
           "workers=2 --set "
           "method.group_size=1 --set train.steps=40 --set "
           "schedule.warmup_steps=2 --set method.warmup_steps=5 --set "
           "method.sync_every=10 --set "
           "'method.rank={rule: fixed, rank: 4}' --set method.anneal_steps=0 "
           "--set "
           "evaluate.every=20 " +
           more;
  }
  std::string here() const {
    return "cd '" + folder_.path() + "' && XDG_CACHE_HOME='" + folder_.file("cache") + "' ";
  }
  void expect_refused(const std::string& line, int code, const std::string& part) const {
    expect_exit(code, line, {part}, here());
  }

  TempFolder folder_;
  std::string text_;
};

TEST_F(TextCommands, ARunReportsBitsPerByteAndContinuesAText) {
  expect_has(output_of(arguments(), here()), "  bits per byte     ");
  const std::string summary = content(folder_.file("run/summary.json"));
  expect_has(summary, "\"perplexity\": ");
  EXPECT_FALSE(contains(summary, "\"accuracy\": "));

  const auto text = [&](const std::string& more) {
    return output_of("generate run --tokens 30 " + more, here());
  };
  const std::string first = text("--prompt 'The quick'");
  EXPECT_TRUE(first.starts_with("The quick"));
  EXPECT_EQ(first.size(), 9U + 30U + 1U);
  EXPECT_EQ(text("--prompt 'The quick'"), first);
  EXPECT_NE(text("--prompt 'The quick' --seed 2"), first);
  const std::string likeliest = text("--temperature 0");
  EXPECT_EQ(text("--temperature 0 --seed 2"), likeliest);
  EXPECT_EQ(text("--top-k 1"), likeliest);

  // The text itself is needed to measure the model, not to use it.
  std::filesystem::remove(text_);
  EXPECT_EQ(text("--top-k 1"), likeliest);
  expect_refused("evaluate run", 66, "no such file or folder");
  expect_refused("predict run text", 78, "`abtrain generate` continues a text");
  expect_has(
      output_of("export run -o merged.safetensors --form merged", here()), "Hugging Face's names");
  for (const char* form : {"factored", "merged"}) {
    expect_exit(0, std::string("export run --force -o file.safetensors --form ") + form, {}, here());
    EXPECT_EQ(output_of("generate file.safetensors --tokens 30 --top-k 1", here()), likeliest);
  }
}

// Tokens of another program in several files, with a test text of their own.
TEST_F(TextCommands, ARunOnTokensGoesOnWithTheSameBits) {
  const auto add_tokens = [&](const std::string& name, int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      const int token = 3 * (i % 7) + i % 2;
      bytes += {static_cast<char>(token), static_cast<char>(token > 12)};
    }
    folder_.add(name, bytes);
  };
  std::filesystem::create_directory(folder_.file("tokens"));
  add_tokens("tokens/a.bin", 4001);
  add_tokens("tokens/b.bin", 3000);
  add_tokens("test.bin", 500);
  const std::string tokens = arguments(
      "--set data.root=tokens --set data.test=test.bin --set "
      "data.tokens=uint16 --set data.vocabulary=300 --set "
      "checkpoint.every=20 --set checkpoint.keep=3 ");
  expect_exit(0, tokens, {}, here());
  // The test text has moved since.
  std::filesystem::create_directory(folder_.file("moved"));
  std::filesystem::rename(folder_.file("test.bin"), folder_.file("moved/test.bin"));
  expect_exit(
      0,
      replaced(tokens, "--name run", "--name rest") +
          "--set data.test=moved/test.bin --resume run/checkpoints/step-0000000020",
      {}, here());
  EXPECT_EQ(
      content(folder_.file("run/model.safetensors")),
      content(folder_.file("rest/model.safetensors")));

  expect_refused("generate run", 2, "--prompt: this run's tokens are numbers; expected");
  expect_refused("generate run --prompt '5 300'", 2, "from 0 to 299");
  const std::string text = output_of("generate run --prompt '5 6' --tokens 3 --seed 4", here());
  EXPECT_TRUE(text.starts_with("5 6 ")) << text;
  EXPECT_EQ(std::ranges::count(text, ' '), 4) << text;
}

TEST_F(TextCommands, DamagedTextsAreRefusedWithOneMessage) {
  expect_refused(arguments("--set data.root=nowhere"), 66, "nowhere: no such file");
  expect_refused(
      arguments("--set data.root=auto"), 78,
      "data.root: expected the file or folder that holds the text");
  expect_refused(
      arguments("--set data.context=100000"), 78,
      "data.context: a window takes 100,000 tokens and the one after them");
  expect_refused(
      arguments("--set data.tokens=uint16 --set data.vocabulary=1000"), 65,
      "text: expected tokens, as data.tokens says, found text");
  expect_refused(
      arguments("--set model.name=mlp"), 78,
      "model.name: mlp takes images, but the data set has text");
  ASSERT_EQ(run_shell("seq 30000 | gzip >'" + folder_.file("cut.gz") + "'").exit_code, 0);
  std::filesystem::resize_file(folder_.file("cut.gz"), 80);
  expect_refused(
      arguments("--set data.root=cut.gz"), 65, "cut.gz: expected the end of its gzip stream");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("run/summary.json")));
}

TEST_F(TextCommands, OnlyATextCanBeContinued) {
  expect_exit(0, small_run(folder_));
  expect_refused(
      "generate small", 78,
      "small: expected a run that trains on a text, but its data.name is "
      "fashion-mnist");
}

}  // namespace
}  // namespace abtrain
