#include "state/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "temp_folder.h"
#include "weight_file.h"
#include "weights/weight_files.h"

namespace abtrain::weights {
namespace {

struct BadHeader {
  const char* name;
  const char* header;
  std::size_t bytes;
  const char* says;
};

class BadSafetensors : public ::testing::TestWithParam<BadHeader> {};

TEST_P(BadSafetensors, IsDamagedDataThatNamesTheTensor) {
  const TempFolder folder;
  const std::string path =
      folder.add("bad", raw_file(GetParam().header, std::string(GetParam().bytes, 'x')));
  expect_error(
      [&] { state::SafetensorsFile{path}; }, ErrorKind::DamagedData, {path, GetParam().says});
}

#define ENTRY(name, dtype, shape, offsets) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(shape, offsets) "{" ENTRY("a", "F32", shape, offsets) "}"
#define TWO(first, second) \
  "{" ENTRY("a", "F32", "[1]", first) "," ENTRY("b", "F32", "[1]", second) "}"

INSTANTIATE_TEST_SUITE_P(
    All, BadSafetensors,
    ::testing::Values(
        BadHeader{
            "Twice", "{" ENTRY("a", "U8", "[1]", "[0,1]") "," ENTRY("a", "U8", "[1]", "[0,1]") "}",
            1, "the key \"a\" twice"},
        BadHeader{"Overlap", TWO("[0,4]", "[2,6]"), 6, "'b' begins at byte 2, inside"},
        BadHeader{"Gap", TWO("[0,4]", "[5,9]"), 9, "'b' begins at byte 5, after a gap"},
        BadHeader{"Tail", ONE("[1]", "[0,4]"), 5, "end at byte 4 of 5"},
        BadHeader{"Cut", ONE("[2]", "[0,8]"), 7, "'a' (F32 of 2) should lie at"},
        BadHeader{"Lies", ONE("[2]", "[0,4]"), 4, "'a' (F32 of 2) should lie at"},
        BadHeader{"Backwards", ONE("[1]", "[4,0]"), 4, "'a' (F32 of 1) should"},
        BadHeader{"Negative", ONE("[-1]", "[0,4]"), 4, "'a' is malformed"},
        BadHeader{"Fraction", ONE("[1.0]", "[0,4]"), 4, "'a' is malformed"},
        BadHeader{"Huge", ONE("[4294967296,4294967296]", "[0,0]"), 0, "'a' is malf"},
        BadHeader{"HugeEmpty", ONE("[9000000000000000000,9,0]", "[0,0]"), 0, "malf"},
        BadHeader{"BeyondInt64", ONE("[1]", "[0,18446744073709551615]"), 4, "malf"},
        BadHeader{"ThreeOffsets", ONE("[1]", "[0,4,8]"), 4, "'a' is malformed"},
        BadHeader{"ShapeIsNumber", ONE("1", "[0,4]"), 4, "'a' is malformed"},
        BadHeader{"NoDtype", R"({"a":{"shape":[1],"data_offsets":[0,1]}})", 1, "'a' is"},
        BadHeader{"Metadata", R"({"__metadata__":{"k":1}})", 0, "'k' is not text"},
        BadHeader{"MetadataList", R"({"__metadata__":[]})", 0, "metadata"},
        BadHeader{"TwiceInside", R"({"a":{"dtype":"U8","dtype":"F32"}})", 0, "twice"},
        BadHeader{"BeyondDouble", ONE("[1e999]", "[0,4]"), 4, "outside the range of a double"},
        BadHeader{
            "ManyDimensions",
            ONE("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                "1,1,"
                "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                "1,1]",
                "[0,4]"),
            4, "'a' is malformed"},
        BadHeader{"NegativeOffset", ONE("[1]", "[-4,0]"), 4, "'a' is malformed"},
        BadHeader{"EntryIsNumber", R"({"a":7})", 0, "'a' is malformed"},
        BadHeader{"NotJson", "?{}", 0, "not a JSON object"},
        BadHeader{"List", "[]", 0, "not a JSON object"},
        BadHeader{"Utf8", "{\"\xff\":1}", 0, "not a JSON object"}),
    [](const auto& test) { return test.param.name; });

TEST(Safetensors, AHeaderThatIsNotThereIsDamage) {
  const TempFolder folder;
  const std::string whole = raw_file(ONE("[1]", "[0,4]"), "1234");
  for (const auto& [bytes, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "8-byte"},
           {whole.substr(0, 20), "its header should have"},
           {std::string(8, '\xff') + whole.substr(8), "its header should have"}}) {
    const std::string path = folder.add("bad", bytes);
    expect_error([&] { state::SafetensorsFile{path}; }, ErrorKind::DamagedData, {path, says});
  }
}

TEST(Safetensors, OtherDtypesAreCopiedByTheByte) {
  const TempFolder folder;
  const std::string data = "0123456789abc";
  const std::string path = folder.add(
      "f", raw_file(
               "{" ENTRY("long", "I64", "[1]", "[0,8]") "," ENTRY(
                   "new", "F4", "[3,2]", "[8,11]") "," ENTRY("bytes", "U8", "[2]", "[11,13]") "}",
               data));
  const state::SafetensorsFile file(path);
  std::string copied;
  for (const state::StoredTensor& tensor : file.tensors()) {
    file.copy(tensor, [&](std::string_view piece) { copied += piece; });
    expect_error([&] { file.load(tensor); }, ErrorKind::DamagedData);
  }
  EXPECT_EQ(copied, data);
}

TEST(SafetensorsStream, PutsEveryTensorWherePyTorchCanReadIt) {
  const TempFolder folder;
  const std::string path = folder.file("f");
  const at::Tensor half = normal({3}).to(at::kHalf);
  const at::Tensor wide = normal({2, 2}).t();
  const at::Tensor nothing = at::empty({0, 5});
  const at::Tensor scalar = normal({}).to(at::kDouble);
  {
    SafetensorsStream stream(path);
    stream.add("half", half);
    stream.add({"flag", "BOOL", {1}, 0, 1}, [](const WritePiece& write) { write("\1"); });
    stream.add("wide", wide);
    stream.add("nothing", nothing);
    stream.add("scalar", scalar);
    const std::uint64_t bytes = stream.finish({{"key", "\"value\""}});
    EXPECT_EQ(bytes, read_file(path).size());
  }
  const state::SafetensorsFile file(path);
  EXPECT_EQ(file.names(), (std::vector<std::string>{"scalar", "wide", "nothing", "half", "flag"}));
  for (const state::StoredTensor& tensor : file.tensors()) {
    EXPECT_EQ(tensor.begin % state::element_bytes(tensor.dtype), 0u) << tensor.name;
  }
  EXPECT_TRUE(at::equal(file.load(file.tensors()[0]), scalar));
  EXPECT_TRUE(at::equal(file.load(file.tensors()[1]), wide));
  EXPECT_TRUE(at::equal(file.load(file.tensors()[2]), nothing));
  EXPECT_TRUE(at::equal(file.load(file.tensors()[3]), half));
  EXPECT_EQ(file.metadata("key"), "\"value\"");
  EXPECT_EQ(file.metadata("none"), "");
}

TEST(SafetensorsStream, AFileOfNothingIsAFile) {
  const TempFolder folder;
  SafetensorsStream(folder.file("f")).finish({});
  const state::SafetensorsFile file(folder.file("f"));
  EXPECT_TRUE(file.tensors().empty());
}

TEST(WeightFiles, ReadsShardsByTheirIndexOrFolder) {
  const TempFolder folder;
  write_weights(folder.file("one.st"), {{"a", normal({2})}}, {{"k", "v"}});
  write_weights(folder.file("two.st"), {{"b", normal({3})}});
  const std::string index = folder.add(
      "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"b":"two.st","a":"one.st"}})");
  for (const std::string& path : {index, folder.path()}) {
    const WeightFiles files(path);
    ASSERT_EQ(files.tensors().size(), 2u);
    EXPECT_EQ(files.tensors()[0].tensor->name, "a");
    EXPECT_TRUE(files.has("b"));
    EXPECT_EQ(files.metadata().at("k"), "v");
    EXPECT_EQ(files.paths()[1], folder.file("two.st"));
  }
}

TEST(WeightFiles, DamagedIndicesAreNamed) {
  const TempFolder folder;
  write_weights(folder.file("one.st"), {{"a", normal({2})}});
  write_weights(folder.file("two.st"), {{"a", normal({2})}});
  const auto expect = [&](const std::string& text, ErrorKind kind, const std::string& part) {
    const std::string path = folder.add("i.json", text);
    expect_error([&] { WeightFiles{path}; }, kind, {part});
  };
  expect("{", ErrorKind::DamagedData, "");
  expect(R"({"weight_map":{"a":1}})", ErrorKind::DamagedData, "");
  expect(R"({"weight_map":{"a":"no.st"}})", ErrorKind::MissingInput, "");
  expect(R"({"weight_map":{"x":"one.st"}})", ErrorKind::DamagedData, "'x' should be in");
  expect(
      R"({"weight_map":{"a":"one.st","a":"two.st"}})", ErrorKind::DamagedData,
      "the key \"a\" twice");
  write_weights(folder.file("two.st"), {{"a", normal({2})}, {"b", normal({2})}});
  expect(R"({"weight_map":{"a":"one.st","b":"two.st"}})", ErrorKind::DamagedData, "'a' is in");
  const TempFolder empty;
  expect_error(
      [&] { WeightFiles files(empty.path()); }, ErrorKind::MissingInput, {"model.safetensors"});
}

// Values nested so deep that who copies or prints them runs out of stack.
TEST(Safetensors, DepthIsDamage) {
  const TempFolder folder;
  std::string deep = "{\"a\":";
  deep.append(100'000, '[').append(100'000, ']').append("}");
  const std::string file = folder.add("a.safetensors", raw_file(deep));
  const std::string index = folder.add("b.safetensors.index.json", deep);
  for (const std::string& path : {file, index}) {
    SCOPED_TRACE(path);
    expect_error(
        [&] { WeightFiles{path}; }, ErrorKind::DamagedData, {"nested more than 64 levels deep"});
  }
}

TEST(Safetensors, OtherFilesAreNamed) {
  const TempFolder folder;
  const std::string index =
      folder.add("model.safetensors.index.json", R"({"weight_map": {"a": "b.safetensors"}})");
  const std::string pointer = folder.add(
      "a.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  expect_error(
      [&] { state::SafetensorsFile{index}; }, ErrorKind::DamagedData, {index, "index of shards"});
  expect_error(
      [&] { state::SafetensorsFile{pointer}; }, ErrorKind::DamagedData, {pointer, "git lfs pull"});
}

// With a search through all keys for each, this takes a minute.
TEST(Safetensors, ManyTensorsTakeLinearTime) {
  const TempFolder folder;
  state::SafetensorsHeader header;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    header.tensors.push_back({formatted("layer.{}", i), "U8", {1}, i, i + 1});
  }
  const std::string path =
      folder.add("many.safetensors", state::header_bytes(header) + std::string(200'000, 'x'));
  const WeightFiles files(path);
  EXPECT_EQ(files.tensors().size(), 200'000U);
  EXPECT_TRUE(files.has("layer.199999"));
}

}  // namespace
}  // namespace abtrain::weights
