// Texts: files that are mapped, unpacked, cut into windows.
#include "data/text/text_set.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/text.h"
#include "data/augment.h"
#include "data/loader.h"
#include "data/text/text_files.h"
#include "data/text/tokens.h"
#include "data_files.h"
#include "with_variables.h"

namespace abtrain::data {
namespace {

// Little-endian numbers of `width` bytes.
Bytes numbers_of(const std::vector<std::uint32_t>& tokens, int width) {
  Bytes out;
  for (const std::uint32_t token : tokens) {
    for (int byte = 0; byte < width; ++byte) {
      out.push_back(static_cast<std::uint8_t>(token >> (8 * byte)));
    }
  }
  return out;
}

Bytes with_header(
    std::vector<std::uint32_t> header, const std::vector<std::uint32_t>& tokens, int width) {
  header.resize(256);
  return joined(numbers_of(header, 4), numbers_of(tokens, width));
}

Bytes counting(std::size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), 0);
  return bytes;
}

int mappings_of(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += static_cast<int>(line.find(folder) != std::string::npos);
  }
  return count;
}

class Texts : public ::testing::Test {
 protected:
  Texts() {
    std::filesystem::create_directory(folder_.file("text"));
    options_.name = "text";
    options_.root = folder_.file("text");
    options_.context = 5;
    options_.test_share = 0.25;
  }
  std::string place(const std::string& name) const {
    return folder_.file("text/" + name);
  }
  void expect_refusal(ErrorKind kind, const std::vector<std::string>& parts) const {
    expect_error([&] { load_dataset(options_); }, kind, parts);
  }
  static std::vector<TextFile> files_of(
      const std::string& path, TokenType type = TokenType::Bytes) {
    Account account;
    return text_files(path, type, nullptr, account);
  }
  static Indices read(const Tokens& tokens) {
    Indices all(static_cast<std::size_t>(tokens.size()));
    tokens.read(0, all);
    return all;
  }
  std::size_t unpacked() const {
    std::error_code none;  // of the folder, if nothing was unpacked
    const std::filesystem::directory_iterator files(folder_.file("cache/abtrain/text"), none);
    return static_cast<std::size_t>(std::distance(files, {}));
  }

  TempFolder folder_;
  const testing::WithVariables cache_{{"XDG_CACHE_HOME", folder_.file("cache")}};
  DataOptions options_;
};

TEST_F(Texts, AreCutIntoWindowsThatPredictTheNextToken) {
  write_file(place("a"), counting(80));
  const Dataset set = load_dataset(options_);
  EXPECT_EQ(set.classes, 256);
  EXPECT_EQ(set.context, 5);
  // 60 tokens to train on, 20 to test: the last window of each has no label for
  // its last token.
  EXPECT_EQ(set.train.size(), 11);
  EXPECT_EQ(set.test.size(), 3);
  const DatasetShape shape = dataset_shape(options_);
  EXPECT_EQ(shape.train, 11);
  EXPECT_EQ(shape.test, 3);
  EXPECT_EQ(shape.classes, 256);
  EXPECT_EQ(shape.context, 5);
  const Augment augment(options_, set, 1);
  const Batch batch = augment.training(set.train, Indices{10, 0}, 3);
  EXPECT_EQ(batch.inputs.sizes(), (Indices{2, 5}));
  EXPECT_TRUE(at::equal(batch.labels, batch.inputs + 1));
  EXPECT_EQ(batch.inputs[0][0].item<std::int64_t>(), 50);
  EXPECT_EQ(batch.inputs[1][4].item<std::int64_t>(), 4);
  const Batch test = augment.evaluation(set.test, 1, 3);
  EXPECT_EQ(test.inputs[0][0].item<std::int64_t>(), 65);
  EXPECT_EQ(test.labels[1][4].item<std::int64_t>(), 75);
}

TEST_F(Texts, FollowEachOtherInTheOrderOfTheirPaths) {
  const Bytes all = counting(100);
  std::filesystem::create_directory(place("b"));
  write_file(place("a"), Bytes(all.begin(), all.begin() + 7));
  write_file(place("b/a"), gzipped(Bytes(all.begin() + 7, all.begin() + 60)));
  write_file(place("b/b"), {});
  write_file(place("c"), Bytes(all.begin() + 60, all.end()));
  write_file(place(".hidden"), all);
  std::filesystem::create_directory(place(".git"));
  write_file(place(".git/config"), all);
  const Tokens tokens(files_of(*options_.root), TokenType::Bytes, 256);
  EXPECT_EQ(read(tokens), first(100));
  Indices some(60);
  tokens.read(5, some);  // of three files
  EXPECT_EQ(some.front(), 5);
  EXPECT_EQ(some.back(), 64);
}

TEST_F(Texts, OnlyLargeFilesTakeMappings) {
  for (int i = 0; i < 50; ++i) {
    write_file(place(formatted("{:02}", i)), counting(100));
  }
  write_file(place("large"), counting(100'000));
  const Dataset set = load_dataset(options_);
  EXPECT_EQ(mappings_of(place("")), 1);
  // Bytes of both kinds of files: the last of a small one and the first of the large one.
  const Augment augment(options_, set, 1);
  const Batch batch = augment.evaluation(set.train, 999, 1001);
  EXPECT_EQ(batch.inputs[0][4].item<std::int64_t>(), 99);
  EXPECT_EQ(batch.inputs[1][0].item<std::int64_t>(), 0);
}

TEST_F(Texts, UnpackAGzipFileOnce) {
  const Bytes plain = counting(3'000'000);
  write_file(place("a.gz"), gzipped(plain));
  const auto paths = files_of(place("a.gz"));
  EXPECT_EQ(paths.size(), 1U);
  EXPECT_EQ(paths[0].path, place("a.gz"));
  const std::string mapped = paths[0].mapped;
  EXPECT_TRUE(mapped.starts_with(folder_.file("cache/abtrain/text/")));
  EXPECT_EQ(std::filesystem::file_size(mapped), plain.size());
  EXPECT_EQ(files_of(place("a.gz"))[0].mapped, mapped);
  EXPECT_EQ(unpacked(), 1U);
  // A file that has changed is unpacked again.
  write_file(place("a.gz"), gzipped(counting(10)));
  const auto again = files_of(place("a.gz"));
  EXPECT_NE(again[0].mapped, mapped);
  EXPECT_EQ(std::filesystem::file_size(again[0].mapped), 10U);
}

// As `cat a.gz b.gz` and bgzip write it; the second begins anywhere, and also
// where the reader's buffer ends.
TEST_F(Texts, UnpackAllMembersOfAGzipFile) {
  const Bytes more = random_bytes(200'000);
  for (std::size_t count = 65'480; count < 65'560; ++count) {
    const Bytes part(more.begin(), more.begin() + static_cast<long>(count));
    write_file(place("a.gz"), joined(joined(gzipped(part), gzipped({})), gzipped(more)));
    const Bytes all = joined(part, more);
    ASSERT_EQ(read_file(files_of(place("a.gz"))[0].mapped), std::string(all.begin(), all.end()))
        << count;
  }
}

TEST_F(Texts, BelieveTheNameOfAGzipFile) {
  Bytes packed = gzipped(counting(10'000));
  packed[0] = 0;
  for (const char* name : {"a.gz", "a.dz"}) {
    write_file(place(name), packed);
    expect_refusal(
        ErrorKind::DamagedData,
        {std::string("text/") + name + ": expected a gzip file, as its name"});
    EXPECT_EQ(unpacked(), 0U);
    std::filesystem::remove(place(name));
  }
}

// A FIFO in place of a text, which nobody writes to.
TEST_F(Texts, DoNotWaitForAFifo) {
  options_.root = place("a");
  ASSERT_EQ(::mkfifo(place("a").c_str(), 0600), 0);
  expect_refusal(ErrorKind::DamagedData, {"text/a: expected a file, found a device"});
}

// The first token of such a file may be the first two bytes of a gzip file.
TEST_F(Texts, TakeTokensForNoGzipFile) {
  write_file(place("a.bin"), numbers_of({0x8b1f, 5}, 2));
  EXPECT_EQ(files_of(place("a.bin"), TokenType::Uint16)[0].mapped, place("a.bin"));
}

TEST_F(Texts, LeaveNothingOfADamagedGzipFile) {
  Bytes packed = gzipped(counting(10'000));
  for (const bool cut : {true, false}) {
    Bytes damaged = packed;
    if (cut) {
      damaged.resize(damaged.size() / 2);
    } else {
      damaged.push_back(0);
    }
    write_file(place("a.gz"), damaged);
    expect_refusal(ErrorKind::DamagedData, {"text/a.gz: expected the", "gzip"});
    EXPECT_EQ(unpacked(), 0U);
  }
}

TEST_F(Texts, ReadTokensOfOtherPrograms) {
  const std::vector<std::uint32_t> tokens = {5, 50256, 0, 1000};
  options_.vocabulary = 50257;
  const auto expect = [&](TokenType type) {
    const Tokens found(files_of(place("a.bin"), type), type, 50257);
    EXPECT_EQ(read(found), (Indices{5, 50256, 0, 1000}));
  };
  write_file(place("a.bin"), numbers_of(tokens, 2));
  expect(TokenType::Uint16);
  write_file(place("a.bin"), with_header({20240520, 1, 4}, tokens, 2));
  expect(TokenType::Uint16);
  write_file(place("a.bin"), numbers_of(tokens, 4));
  expect(TokenType::Uint32);
  write_file(place("a.bin"), with_header({20240801, 7, 4}, tokens, 4));
  expect(TokenType::Uint32);
}

TEST_F(Texts, RefuseDamagedTokens) {
  options_.tokens = TokenType::Uint16;
  const auto expect = [&](const Bytes& file, const std::string& what) {
    write_file(place("a.bin"), file);
    expect_refusal(ErrorKind::DamagedData, {"text/a.bin: " + what});
  };
  expect(counting(101), "expected tokens of 16 bits, but its 101 bytes are not a multiple of 2");
  const std::vector<std::uint32_t> tokens(50);
  expect(
      with_header({20240520, 1, 51}, tokens, 2),
      "its header announces 51 tokens (102 bytes), but 100 bytes follow");
  expect(
      with_header({20240801, 7, 50}, tokens, 4),
      "expected tokens of 16 bits, found a header of version 7 for tokens of "
      "32 bits");
  expect(
      with_header({20240520, 2, 50}, tokens, 2),
      "expected tokens of 16 bits, found a header of version 2 for tokens of "
      "16 bits");
  Bytes cut = with_header({20240520, 1, 50}, tokens, 2);
  cut.resize(500);
  expect(
      cut,
      "expected tokens of 16 bits, found a header of version 1 for "
      "tokens of 16 bits, which is cut off");
  // The packed file is named, not the unpacked one.
  write_file(place("a.bin"), gzipped(counting(101)));
  expect_refusal(ErrorKind::DamagedData, {"text/a.bin: expected tokens of"});
}

// Whatever file it is in, before anything is trained.
TEST_F(Texts, RefuseATokenAboveTheVocabulary) {
  std::vector<std::uint32_t> many(3'000'000, 99);
  options_.vocabulary = 100;
  for (const TokenType type : {TokenType::Uint16, TokenType::Uint32}) {
    options_.tokens = type;
    const int width = type == TokenType::Uint16 ? 2 : 4;
    write_file(place("a.bin"), numbers_of(std::vector<std::uint32_t>(50, 1), width));
    options_.test.reset();
    for (const std::size_t bad : {std::size_t{0}, std::size_t{1'048'577}, many.size() - 1}) {
      many[bad] = 100;
      write_file(place("b.bin"), numbers_of(many, width));
      many[bad] = 99;
      expect_refusal(
          ErrorKind::DamagedData,
          {formatted(
              "text/b.bin: token {}: expected one below the 100 of data.vocabulary, found 100",
              bad)});
      EXPECT_GT(dataset_shape(options_).train, 0);  // does not look at them
    }
    // In the test text alone.
    std::filesystem::rename(place("b.bin"), folder_.file("test.bin"));
    EXPECT_GT(load_dataset(options_).train.size(), 0);
    options_.test = folder_.file("test.bin");
    expect_refusal(ErrorKind::DamagedData, {"/test.bin: token 2999999: expected one below"});
  }
}

TEST_F(Texts, FollowLinksOnce) {
  std::filesystem::create_directory(folder_.file("pool"));
  write_file(folder_.file("pool/b"), Bytes(50, 'b'));
  write_file(place("a"), Bytes(10, 'a'));
  std::filesystem::create_directory_symlink("../pool", place("more"));
  std::filesystem::create_symlink("../pool/b", place("c"));
  std::filesystem::create_directory_symlink("../text", folder_.file("pool/back"));
  std::filesystem::create_directory_symlink("../pool", place("twice"));
  std::filesystem::create_symlink("nowhere", place("dead"));
  std::filesystem::create_symlink("itself", place("itself"));
  ASSERT_EQ(::mkfifo(place("fifo").c_str(), 0600), 0);
  Account account;
  const auto files = text_files(*options_.root, TokenType::Bytes, nullptr, account);
  std::vector<std::string> names;
  for (const TextFile& file : files) {
    names.push_back(file.name);
  }
  ASSERT_EQ(names.size(), 3U) << join(names, " ");
  EXPECT_EQ(names[0], "a");
  EXPECT_EQ(names[1], "c");
  EXPECT_EQ(names[2], "more/b");
  ASSERT_EQ(account.facts.size(), 1U);
  for (const char* skipped :
       {"more/back (a link to a folder that is read already)",
        "twice (a link to a folder that is read already)", "dead (a link to nothing)",
        "itself (a link to nothing)", "fifo (not a file)"}) {
    EXPECT_NE(account.facts[0].find(skipped), std::string::npos) << account.facts[0];
  }
}

// As nanoGPT leaves its folders, and as llm.c and others name their files.
TEST_F(Texts, TakeThePartsThatNamesSay) {
  options_.tokens = TokenType::Uint16;
  options_.vocabulary = 1000;
  const auto put = [&](const std::string& name, std::uint32_t token, std::size_t count) {
    std::filesystem::create_directories(std::filesystem::path(place(name)).parent_path());
    write_file(place(name), numbers_of(std::vector<std::uint32_t>(count, token), 2));
  };
  const auto expect = [&](std::int64_t train, std::int64_t test, const std::string& facts) {
    const Dataset set = load_dataset(options_);
    EXPECT_EQ(set.train.size(), train);
    EXPECT_EQ(set.test.size(), test);
    EXPECT_EQ(replaced(join(set.account.facts, "\n"), *options_.root, "text"), facts);
    EXPECT_TRUE(set.account.doubts.empty());
  };
  put("train.bin", 7, 101);
  put("val.bin", 8, 31);
  const std::string script = "import os  # tokenizes the text, writes train and val\n";
  write_file(place("prepare.py"), Bytes(script.begin(), script.end()));
  expect(
      20, 6,
      "text: skipped: prepare.py (not a .bin file, as tokens are in)\n"
      "text: the training text is train.bin, the test text is val.bin");
  std::filesystem::remove(place("prepare.py"));
  std::filesystem::rename(place("train.bin"), place("tiny_Train_000001.bin"));
  put("tiny_train_2.bin", 7, 101);
  put("test/one.bin", 9, 500);
  expect(
      40, 6,
      "text: the training text is tiny_Train_000001.bin, tiny_train_2.bin, the test text is "
      "val.bin\ntext: skipped, since there is another test text: test/one.bin");
  options_.test = place("test/one.bin");
  expect(
      40, 99,
      "text: the training text is tiny_Train_000001.bin, tiny_train_2.bin\n"
      "text: skipped, since there is another test text: test/one.bin, val.bin\n"
      "text/test/one.bin: the test text (data.test)");
  // Without a name that says so, a file below data.root is no training text if it is the test's.
  std::filesystem::rename(place("val.bin"), place("tiny_train_3.bin"));
  options_.test = place("tiny_train_3.bin");
  EXPECT_EQ(load_dataset(options_).train.size(), 40);
  options_.root = place("tiny_train_2.bin");
  options_.test = options_.root;
  expect_refusal(ErrorKind::Config, {"data.test: ", "tiny_train_2.bin has all files of data.root"});
  options_.root = std::filesystem::path(place("tiny_train_3.bin")).parent_path();
  std::filesystem::rename(place("tiny_train_3.bin"), place("val.bin"));
  options_.test.reset();
  put("more.bin", 7, 101);
  expect_refusal(ErrorKind::Config, {"data.root: ", "more.bin says neither", "data.test"});
  // A text is read whole then, as folders of programs are.
  options_.tokens = TokenType::Bytes;
  options_.vocabulary.reset();
  std::filesystem::remove_all(*options_.root);
  std::filesystem::create_directory(*options_.root);
  for (const char* name : {"wiki.train.txt", "wiki.valid.txt", "wiki.test.txt"}) {
    write_file(place(name), Bytes(name[5] == 'v' ? 31 : 101, 'a'));
  }
  expect(
      20, 6,
      "text: the training text is wiki.train.txt, the test text is wiki.valid.txt\n"
      "text: skipped, since there is another test text: wiki.test.txt");
  write_file(place("readme.txt"), Bytes(40, 'a'));
  const Account account = load_dataset(options_).account;
  ASSERT_EQ(account.doubts.size(), 1U);
  EXPECT_NE(account.doubts[0].find("all files are one text"), std::string::npos);
}

TEST_F(Texts, AndTokensAreToldApart) {
  const std::string words = join(std::vector<std::string>(30, "some words"), " ");
  write_file(place("a.bin"), Bytes(words.begin(), words.end()));
  options_.tokens = TokenType::Uint16;
  expect_refusal(ErrorKind::DamagedData, {"a.bin: expected tokens", "data.tokens is bytes"});
  options_.root = place("a.bin");
  expect_refusal(ErrorKind::DamagedData, {"a.bin: expected tokens", "data.tokens is bytes"});
  options_.root = folder_.file("text");
  std::filesystem::rename(place("a.bin"), place("a.txt"));
  expect_refusal(ErrorKind::MissingInput, {"expected a .bin file", "a.txt (not a .bin file"});
  options_.tokens = TokenType::Bytes;
  EXPECT_TRUE(load_dataset(options_).account.doubts.empty());
  write_file(place("b"), numbers_of(std::vector<std::uint32_t>(100, 65), 2));
  const Account account = load_dataset(options_).account;
  ASSERT_EQ(account.doubts.size(), 1U);
  EXPECT_NE(account.doubts[0].find("zero bytes"), std::string::npos);
  EXPECT_NE(account.doubts[0].find("data.tokens"), std::string::npos);
}

TEST_F(Texts, RefuseATextShorterThanAWindow) {
  write_file(place("a"), counting(7));
  expect_refusal(
      ErrorKind::Config, {"data.context: a window takes 5 tokens and the one after them, but the "
                          "test part of",
                          "has only 2, which is data.test_share, 0.25, of its 7"});
  write_file(place("b"), counting(30));
  options_.test = place("b");
  EXPECT_EQ(load_dataset(options_).train.size(), 1);  // not of b, the test text
  EXPECT_EQ(load_dataset(options_).test.size(), 5);
  options_.root = place("a");
  EXPECT_EQ(load_dataset(options_).train.size(), 1);
  options_.context = 7;
  expect_refusal(ErrorKind::Config, {"the training part of", "has only 7"});
}

TEST_F(Texts, RefuseWhatIsNotThere) {
  expect_refusal(ErrorKind::MissingInput, {"expected files in this folder"});
  options_.root = place("nothing");
  expect_refusal(ErrorKind::MissingInput, {"no such file or folder"});
}

TEST_F(Texts, GiveEachWorkerItsShareInEveryEpoch) {
  write_file(place("a"), counting(244));
  options_.context = 2;
  options_.test_share = 0.05;
  const Dataset set = load_dataset(options_);
  const Augment augment(options_, set, 1);
  constexpr int kWorkers = 3;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    Indices seen;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const auto order = make_shuffle({set.train.size(), worker, kWorkers, 4});
      const std::int64_t steps = full_batches(*order, 4);
      Loader loader(set.train, augment, *order, 4, 2, epoch * steps);
      for (std::int64_t step = 0; step < steps; ++step) {
        const Batch batch = next_of(loader);
        for (std::int64_t i = 0; i < 4; ++i) {
          seen.push_back(batch.inputs[i][0].item<std::int64_t>());
        }
      }
    }
    std::ranges::sort(seen);
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
    EXPECT_GT(seen.size(), 100U);
  }
}

TEST_F(Texts, CanSetWindowsAside) {
  write_file(place("a"), counting(200));
  Dataset set = load_dataset(options_);
  const std::int64_t all = set.train.size();
  const Examples held = hold_out(set.train, 4, 1);
  EXPECT_EQ(held.size(), 4);
  EXPECT_EQ(set.train.size(), all - 4);
  const Augment augment(options_, set, 1);
  EXPECT_EQ(augment.evaluation(held, 0, 4).inputs.sizes(), (Indices{4, 5}));
}

}  // namespace
}  // namespace abtrain::data
