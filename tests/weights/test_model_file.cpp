#include "state/safetensors.h"
#include "weights/model_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/text.h"
#include "decompose_files.h"
#include "error_of.h"
#include "nn/export_file.h"
#include "temp_folder.h"
#include "weight_file.h"
#include "weights/export.h"

namespace abtrain::weights {
namespace {

using nlohmann::json;

// Every other factorable layer factored at rank 3, running statistics moved.
std::unique_ptr<nn::Model> trained(std::uint64_t seed, std::int64_t grid = 1) {
  const at::NoGradGuard no_grad;
  auto model = small_vgg();
  model->initialize(nn::InitName::Kaiming, seed);
  factor_every_other(*model, grid);
  model->forward(at::ones({4, 3, 32, 32}), /*training=*/true);
  return model;
}

std::uint64_t header_length(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  return length;
}

json header_of(const std::string& file) {
  return json::parse(file.substr(8, header_length(file)));
}

TEST(ModelFile, ReadsBackTheSameModel) {
  for (const std::int64_t grid : {1, 2, 4}) {
    SCOPED_TRACE(grid);
    const TempFolder folder;
    const auto model = trained(1, grid);
    save_model(folder.file("m"), *model);
    const auto other = trained(2);
    load_model(folder.file("m"), *other);
    ASSERT_EQ(model->weights().size(), other->weights().size());
    EXPECT_EQ(model->stored_parameters(), other->stored_parameters());
    for (std::size_t i = 0; i < model->weights().size(); ++i) {
      const nn::Weight& a = *model->weights()[i].weight;
      const nn::Weight& b = *other->weights()[i].weight;
      EXPECT_EQ(a.rank(), b.rank());
      EXPECT_EQ(a.grid(), b.is_factored() ? grid : 1);
      EXPECT_TRUE(at::equal(a.merged(), b.merged())) << model->weights()[i].name;
    }
    const at::NoGradGuard no_grad;
    const at::Tensor x = at::ones({2, 3, 32, 32});
    EXPECT_TRUE(at::equal(model->forward(x, false), other->forward(x, false)));
  }
}

// Its metadata and factors are enough for other programs.
TEST(ModelFile, AGridIsTheWeightItStandsFor) {
  const TempFolder folder;
  const auto model = trained(1, 4);
  save_model(folder.file("m"), *model);
  const auto weights = merged(folder.file("m"));
  for (const nn::NamedWeight& w : model->weights()) {
    EXPECT_LT((weights.at(w.name) - w.weight->merged()).abs().max().item<double>(), 1e-6) << w.name;
  }
}

TEST(ModelFile, IntegersOfAUsersModelKeepTheirValues) {
  const TempFolder folder;
  const at::Tensor large = at::tensor(std::vector<std::int64_t>{std::int64_t{1} << 40, -1});
  testing::ExportFile file = testing::small_export();
  file.program.insert(
      file.program.find(R"({"user_input")"),
      R"({"buffer":{"arg":{"name":"n"},"buffer_name":"n","persistent":true}},)");
  file.weights.insert(
      file.weights.find("\"fc1.bias\""),
      replaced(
          testing::stored_entry("n", "weight_4", R"({"as_int":2})", R"({"as_int":1})"),
          R"("dtype":7)", R"("dtype":5)") +
          ",");
  file.records.emplace_back("weight_4", testing::bytes_of(large));
  nn::ModelOptions options;
  options.name = "exported";
  options.file = folder.file("m.pt2");
  file.write(*options.file);
  const auto model = nn::make_model(options, {1, 2, 3, 4});
  model->initialize(nn::InitName::Kaiming, 1);
  save_model(folder.file("m"), *model, {.merged = true});
  const state::SafetensorsFile saved(folder.file("m"));
  for (const state::StoredTensor& tensor : saved.tensors()) {
    EXPECT_EQ(tensor.dtype, tensor.name == "n" ? "I64" : "F32") << tensor.name;
    if (tensor.name == "n") {
      std::string bytes;
      saved.copy(tensor, [&](std::string_view piece) { bytes += piece; });
      EXPECT_EQ(bytes, testing::bytes_of(large));
    }
  }
  EXPECT_TRUE(saved.has("n"));
}

// As DistributedDataParallel and torch.compile() name what they wrap; one weight is factored.
TEST(ModelFile, NamesOfWrappedModulesAreUnderstood) {
  const TempFolder folder;
  nn::ModelOptions options;
  options.name = "mlp";
  options.hidden = {6};
  const auto model = nn::make_model(options, {1, 2, 2, 3});
  model->initialize(nn::InitName::Kaiming, 1);
  nn::Weight& first = *model->weights()[0].weight;
  first.set_factors({at::ones({first.m(), 1}), at::ones({1, first.n()})});
  save_model(folder.file("plain"), *model);
  const state::SafetensorsFile plain(folder.file("plain"));
  for (const std::string prefix : {"module.", "_orig_mod.", "module._orig_mod."}) {
    std::vector<state::NamedTensor> tensors;
    for (const state::StoredTensor& tensor : plain.tensors()) {
      tensors.push_back({prefix + tensor.name, plain.load(tensor)});
    }
    std::map<std::string, std::string> about;
    for (const auto& [key, value] : plain.metadata()) {
      about[replaced(key, "shape:", "shape:" + prefix)] = value;
    }
    state::write_safetensors(folder.file("wrapped"), tensors, about);
    const auto other = nn::make_model(options, {1, 2, 2, 3});
    other->initialize(nn::InitName::Kaiming, 2);
    load_model(folder.file("wrapped"), *other);
    const at::NoGradGuard no_grad;
    const at::Tensor x = at::ones({2, 1, 2, 2});
    EXPECT_TRUE(at::equal(other->forward(x, false), model->forward(x, false))) << prefix;
    // Not if only some have it.
    tensors.front().name = "other.weight";
    state::write_safetensors(folder.file("mixed"), tensors, about);
    expect_error(
        [&] { load_model(folder.file("mixed"), *other); }, ErrorKind::DamagedData,
        {"does not fit the model"});
  }
}

// A file with other values for what is frozen would be ignored in silence.
TEST(ModelFile, FrozenParametersMustBeThoseOfTheModelsFile) {
  const TempFolder folder;
  testing::ExportFile file = testing::small_export();
  const std::string type = "\"dtype\":7";
  file.weights.insert(
      file.weights.find(type, file.weights.find("\"fc1.weight\"")), "\"requires_grad\":false,");
  nn::ModelOptions options;
  options.name = "exported";
  options.file = folder.file("m.pt2");
  file.write(*options.file);
  const auto model = nn::make_model(options, {1, 2, 3, 4});
  model->initialize(nn::InitName::Kaiming, 1);
  for (const bool merged : {false, true}) {
    save_model(folder.file("m"), *model, {.merged = merged});
    EXPECT_TRUE(state::SafetensorsFile(folder.file("m")).has("fc1.weight"));
    EXPECT_NO_THROW(load_model(folder.file("m"), *model));
  }
  const state::SafetensorsFile saved(folder.file("m"));
  std::vector<state::NamedTensor> tensors;
  for (const state::StoredTensor& tensor : saved.tensors()) {
    tensors.push_back({tensor.name, saved.load(tensor) + 1});
  }
  state::write_safetensors(folder.file("other"), tensors, {});
  expect_error(
      [&] { load_model(folder.file("other"), *model); }, ErrorKind::DamagedData,
      {"other", "'fc1.weight' has other values in model.file, where it is not trained"});
  EXPECT_NO_THROW(load_model(folder.file("other"), *model, {"fc1"}));
}

TEST(ModelFile, OfARunIsLoadedIntoTheFileThatWasTrained) {
  const TempFolder folder;
  config::RunOptions options;
  options.model.name = "exported";
  options.model.file = folder.file("m.pt2");
  testing::ExportFile file = testing::small_export();
  file.write(*options.model.file);
  const data::ExampleShape shape{1, 2, 3, 4};
  const auto model = nn::make_model(options.model, shape);
  model->initialize(nn::InitName::Kaiming, 1);
  save_model(folder.file("m"), *model, {.about = {{"model_file", model_file_hash(options)}}});
  EXPECT_NO_THROW(model_of_run(options, shape, folder.file("m")));
  file.program = replaced(file.program, "aten.relu.default", "aten.tanh.default");
  file.write(*options.model.file);
  expect_error(
      [&] { model_of_run(options, shape, folder.file("m")); }, ErrorKind::Config,
      {folder.file("m"), "m.pt2 is no longer the file that the run began with"});
  // Files of older versions do not say it.
  save_model(folder.file("m"), *model);
  EXPECT_NO_THROW(model_of_run(options, shape, folder.file("m")));
}

std::string fault_of(const std::function<void()>& body) {
  return error_of(body).second;
}

std::unique_ptr<nn::Model> fresh_model(const std::string& name, std::int64_t classes) {
  nn::ModelOptions options;
  options.name = name;
  options.width = 0.0625;
  auto model = nn::make_model(options, {3, 32, 32, classes});
  model->initialize(nn::InitName::Kaiming, 1);
  return model;
}

// A head of its own is not lost without a word; a second copy of a tied one is.
TEST(ModelFile, ATiedHeadMustBeTheEmbedding) {
  const TempFolder folder;
  const auto gpt = [](bool tied) {
    nn::ModelOptions options;
    options.name = "gpt-nano";
    options.tied = tied;
    options.layers = 1;
    auto model = nn::make_model(options, {.classes = 256, .context = 8});
    model->initialize(nn::InitName::Kaiming, 1);
    return model;
  };
  const auto untied = gpt(false);
  save_model(folder.file("m"), *untied);
  EXPECT_EQ(
      fault_of([&] { load_model(folder.file("m"), *gpt(true)); }),
      folder.file("m") +
          " does not fit the model: 'lm_head.weight' is not equal to "
          "'wte.weight', of which this model has only one; expected a model "
          "whose head is not tied (model.tied=false)");
  for (const nn::NamedWeight& w : untied->weights()) {
    if (w.name == "lm_head.weight") {
      for (const nn::NamedParameter& p : untied->parameters()) {
        if (p.name == "wte.weight") {
          w.weight->set_dense(p.tensor->detach().clone());
        }
      }
    }
  }
  save_model(folder.file("m"), *untied);
  EXPECT_EQ(fault_of([&] { load_model(folder.file("m"), *gpt(true)); }), "");
}

// As PyTorch's strict load: half a resnet34 is no resnet18.
TEST(ModelFile, TensorsOfAnotherModelAreRefused) {
  const TempFolder folder;
  const std::string path = folder.file("m");
  save_model(path, *fresh_model("resnet34", 10));
  expect_has(
      fault_of([&] { load_model(path, *fresh_model("resnet18", 10)); }),
      "layer1.2.conv1.weight' is unexpected");
}

TEST(ModelFile, FreshLayersMayHaveAnotherShapeAndEitherName) {
  const TempFolder folder;
  const std::string path = folder.file("m");
  for (const nn::TensorNames names : {nn::TensorNames::Timm, nn::TensorNames::Torchvision}) {
    save_model(path, *fresh_model("vgg11", 100), {.names = names});
    const std::string fault = fault_of([&] { load_model(path, *fresh_model("vgg11", 10)); });
    EXPECT_NE(fault.find("expected 10,256"), std::string::npos) << fault;
    EXPECT_EQ(fault.find("damaged"), std::string::npos) << fault;
    for (const char* layer : {"head.fc", "classifier.6", "head.*"}) {
      EXPECT_EQ(fault_of([&] { load_model(path, *fresh_model("vgg11", 10), {layer}); }), "");
    }
    expect_has(
        fault_of([&] { load_model(path, *fresh_model("vgg11", 10), {"head.fcc"}); }),
        "the layers are features.0");
  }
}

TEST(ModelFile, FilesOfTorchSaveAreNamed) {
  const TempFolder folder;
  const auto model = fresh_model("vgg11", 10);
  for (const char* begin : {"PK\x03\x04 a zip archive", "\x80\x02 a pickle"}) {
    const std::string path = folder.add("m.pth", begin);
    EXPECT_NE(fault_of([&] { load_model(path, *model); }).find("torch.save"), std::string::npos);
  }
}

// Headers whose length begins with the bytes of a pickle (0x80) or of a zip
// archive ("PK").
TEST(Safetensors, ALengthMayLookLikeAPickle) {
  const TempFolder folder;
  for (const std::size_t length : {std::size_t{0x80}, std::size_t{0x4B50}}) {
    std::string header = R"({"a":{"dtype":"F32","shape":[1],)"
                         R"("data_offsets":[0,4]}})";
    header.resize(length, ' ');
    const state::SafetensorsFile file(folder.add("f", raw_file(header, std::string(4, '\0'))));
    EXPECT_EQ(file.read("a", {1}).item<float>(), 0);
  }
}

TEST(Safetensors, ReadsTheFloatsOfOthers) {
  const TempFolder folder;
  const std::vector<double> numbers = {1.5, -0.25, 96};
  std::string data;
  json header;
  const auto add = [&](const char* dtype, at::ScalarType type) {
    at::Tensor t = at::empty({3}, at::kDouble);
    std::copy(numbers.begin(), numbers.end(), t.data_ptr<double>());
    t = t.to(type);
    header[dtype] = {
        {"dtype", dtype},
        {"shape", {3}},
        {"data_offsets", {data.size(), data.size() + t.nbytes()}}};
    data.append(static_cast<const char*>(t.const_data_ptr()), t.nbytes());
  };
  add("F32", at::kFloat);
  add("F64", at::kDouble);
  add("F16", at::kHalf);
  add("BF16", at::kBFloat16);
  const state::SafetensorsFile file(folder.add("f", raw_file(header.dump(), data)));
  for (const char* dtype : {"F32", "F64", "F16", "BF16"}) {
    const at::Tensor t = file.read(dtype, {3});
    EXPECT_EQ(t.scalar_type(), at::kFloat);
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(t[i].item<double>(), numbers[static_cast<std::size_t>(i)]);
    }
  }
  EXPECT_FALSE(file.has("F8"));
}

// The layout that Python's safetensors reads: little-endian header length, a
// JSON header, then every tensor contiguous and in order, without gaps.
TEST(ModelFile, HasTheLayoutOfSafetensors) {
  const TempFolder folder;
  const auto model = trained(3);
  save_model(folder.file("m"), *model);
  const std::string file = read_file(folder.file("m"));
  const std::uint64_t length = header_length(file);
  EXPECT_EQ(length % 8, 0u);
  const json header = header_of(file);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  std::int64_t factored = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        EXPECT_TRUE(value.is_string()) << key;
        factored += key.rfind("shape:", 0) == 0;
      }
      continue;
    }
    EXPECT_EQ(entry["dtype"], "F32");
    std::uint64_t bytes = 4;
    for (const std::uint64_t size : entry["shape"]) {
      bytes *= size;
    }
    spans.emplace_back(entry["data_offsets"][0], entry["data_offsets"][1]);
    EXPECT_EQ(spans.back().second - spans.back().first, bytes) << name;
  }
  std::sort(spans.begin(), spans.end());
  std::uint64_t next = 0;
  for (const auto& [begin, end] : spans) {
    EXPECT_EQ(begin, next);
    next = end;
  }
  EXPECT_EQ(next, file.size() - 8 - length);
  EXPECT_EQ(factored, 6);
  EXPECT_EQ(header["features.3.weight.B"]["shape"][0], 3);
  EXPECT_EQ(header["__metadata__"]["shape:features.3.weight"], "8,8,3,3");
  EXPECT_TRUE(header.contains("features.1.running_var"));
  EXPECT_TRUE(header.contains("classifier.bias"));
}

// A whole file that is not of this model; test_safetensors.cpp has files that
// are damaged in themselves.
struct Misfit {
  const char* name;
  void (*change)(json& header);
  const char* says;
};

class MisfitModelFile : public ::testing::TestWithParam<Misfit> {};

TEST_P(MisfitModelFile, IsRefusedByName) {
  const TempFolder folder;
  save_model(folder.file("m"), *trained(4));
  const std::string file = read_file(folder.file("m"));
  json header = header_of(file);
  GetParam().change(header);
  const std::string path =
      folder.add("bad", raw_file(header.dump(), file.substr(8 + header_length(file))));
  const auto model = small_vgg();
  expect_error([&] { load_model(path, *model); }, ErrorKind::DamagedData, {path, GetParam().says});
}

// The model misses a tensor, though the bytes of the file are all taken.
void rename(json& header, const char* tensor) {
  header["other"] = header[tensor];
  header.erase(tensor);
}

INSTANTIATE_TEST_SUITE_P(
    All, MisfitModelFile,
    ::testing::Values(
        Misfit{
            "TensorMissing", [](json& h) { rename(h, "classifier.bias"); },
            "'classifier.bias' is missing"},
        Misfit{
            "OneFactorMissing", [](json& h) { rename(h, "features.3.weight.B"); },
            "'features.3.weight.B' is missing"},
        Misfit{
            "OtherShape",
            [](json& h) {
              h["classifier.bias"]["shape"] = {2, 5};
            },
            "expected 10"},
        Misfit{
            "OtherType", [](json& h) { h["classifier.bias"]["dtype"] = "I32"; },
            "I32, not F32, F64, F16 or BF16"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain::weights
