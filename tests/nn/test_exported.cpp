// Models in files of torch.export.save(), written here by hand; test_exported.cpp of tests/parity
// compares real ones with PyTorch.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "linalg/svd.h"
#include "nn/export_file.h"
#include "nn/model.h"
#include "temp_folder.h"

namespace abtrain::nn {
namespace {

using testing::ExportFile;
using testing::node_json;
using testing::small_export;

constexpr const char* kA = R"({"name":"a"})";

class ExportedFile : public ::testing::Test {
 protected:
  std::unique_ptr<Model> model(
      const ExportFile& file, const data::ExampleShape& shape = {1, 2, 3, 4}) {
    ModelOptions options;
    options.name = "exported";
    options.file = folder_.file("model.pt2");
    file.write(*options.file);
    return make_model(options, shape);
  }
  // The message of the error that the file ends in.
  std::string refused(
      const ExportFile& file, ErrorKind kind, const data::ExampleShape& shape = {1, 2, 3, 4}) {
    try {
      const auto loaded = model(file, shape);
      loaded->initialize(InitName::Kaiming, 1);
      const at::NoGradGuard no_grad;
      loaded->seed_dropout(1);
      loaded->forward(at::ones({2, shape.channels, shape.height, shape.width}), true);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    return "nothing was refused";
  }
  TempFolder folder_;
};

TEST_F(ExportedFile, ComputesItsGraphDenseAndFactored) {
  const auto m = model(small_export());
  m->initialize(InitName::Kaiming, 1);
  ASSERT_EQ(m->weights().size(), 2U);
  EXPECT_EQ(m->weights()[0].name, "fc1.weight");
  EXPECT_EQ(m->weights()[0].layer, "fc1");
  EXPECT_EQ(m->weights()[1].name, "fc2.weight");
  ASSERT_EQ(m->parameters().size(), 2U);
  EXPECT_EQ(m->parameters()[1].name, "fc2.bias");
  EXPECT_EQ(m->dense_parameters(), 30 + 5 + 20 + 4);
  EXPECT_EQ(m->keep_dense(), std::vector<std::string>{"fc2.weight"});

  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 1, 2, 3});
  const auto parameter = [&](std::size_t i) { return *m->parameters()[i].tensor; };
  const auto expected = [&] {
    const at::Tensor a =
        at::relu(at::linear(x.flatten(1), m->weights()[0].weight->merged(), parameter(0)));
    return at::linear(a, m->weights()[1].weight->merged(), parameter(1));
  };
  EXPECT_TRUE(at::equal(m->forward(x, true), expected()));
  Weight& w = *m->weights()[0].weight;
  w.set_factors({at::randn({w.m(), 2}), at::randn({2, w.n()})});
  EXPECT_TRUE(at::allclose(m->forward(x, false), expected(), 1e-5, 1e-6));
}

TEST_F(ExportedFile, BeginsWithTheValuesOfTheFileWhateverTheSeed) {
  const auto m = model(small_export());
  m->initialize(InitName::Kaiming, 1);
  EXPECT_EQ(m->weights()[0].weight->dense[0][1].item<float>(), (37 % 11 - 5) / 8.0F);
  m->initialize(InitName::Orthogonal, 1);
  const at::Tensor w = m->weights()[0].weight->dense;
  EXPECT_TRUE(at::allclose(w.matmul(w.t()), at::eye(5), 1e-4, 1e-5));
  EXPECT_EQ(m->parameters()[0].tensor->data_ptr<float>()[1], (37 % 11 - 5) / 8.0F);
}

TEST_F(ExportedFile, DropsInTrainingOnlyAndByThePassesGenerator) {
  const auto m = model(small_export(node_json(
      "torch.ops.aten.dropout.default",
      {{"input", "as_tensor", kA}, {"p", "as_float", "0.5"}, {"train", "as_bool", "true"}}, "b")));
  m->initialize(InitName::Kaiming, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({64, 1, 2, 3});
  m->seed_dropout(7);
  const at::Tensor first = m->forward(x, true);
  EXPECT_FALSE(at::equal(m->forward(x, true), first));
  m->seed_dropout(7);
  EXPECT_TRUE(at::equal(m->forward(x, true), first));
  const at::Tensor plain = m->forward(x, false);
  EXPECT_TRUE(at::equal(m->forward(x, false), plain));
  EXPECT_FALSE(at::equal(plain, first));
}

TEST_F(ExportedFile, StochasticDepthIsItsMeanInEvaluations) {
  // b = a * (bernoulli_(empty_like(a), p) / p), as torchvision and timm write it.
  const std::string noise =
      node_json("torch.ops.aten.empty_like.default", {{"self", "as_tensor", kA}}, "n0") + "," +
      node_json(
          "torch.ops.aten.bernoulli_.float",
          {{"self", "as_tensor", R"({"name":"n0"})"}, {"p", "as_float", "0.3"}}, "n1") +
      "," +
      node_json(
          "torch.ops.aten.div_.Tensor",
          {{"self", "as_tensor", R"({"name":"n1"})"}, {"other", "as_float", "0.3"}}, "n2") +
      "," +
      node_json(
          "torch.ops.aten.mul.Tensor",
          {{"self", "as_tensor", kA}, {"other", "as_tensor", R"({"name":"n2"})"}}, "b");
  const auto m = model(small_export(noise));
  const auto same = model(
      small_export(node_json("torch.ops.aten.clone.default", {{"self", "as_tensor", kA}}, "b")));
  m->initialize(InitName::Kaiming, 1);
  same->initialize(InitName::Kaiming, 1);
  m->seed_dropout(1);
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({8, 1, 2, 3});
  EXPECT_TRUE(at::equal(m->forward(x, false), same->forward(x, false)));
  EXPECT_FALSE(at::equal(m->forward(x, true), same->forward(x, true)));
}

TEST_F(ExportedFile, RefusesWhatDoesNotFitTheData) {
  EXPECT_NE(
      refused(small_export(), ErrorKind::Config, {3, 32, 32, 4})
          .find(
              "takes inputs of any x 1 x 2 x 3, but those of the data set have any x 3 x 32 x 32"),
      std::string::npos);
  EXPECT_NE(
      refused(small_export(), ErrorKind::Config, {1, 2, 3, 10})
          .find("returns any x 4, but the data set needs any x 10"),
      std::string::npos);
  ExportFile fixed = small_export();
  const std::string batch = R"({"as_expr":{"expr_str":"s0","hint":{"as_int":2}}})";
  fixed.program.replace(fixed.program.find(batch), batch.size(), R"({"as_int":2})");
  EXPECT_NE(refused(fixed, ErrorKind::Config).find("fixed size"), std::string::npos);
}

TEST_F(ExportedFile, RefusesOperatorsNamingThemAndTheirPlace) {
  const auto middle = [&](const std::string& target,
                          const std::vector<testing::NodeInput>& inputs) {
    return refused(small_export(node_json(target, inputs, "b")), ErrorKind::Config);
  };
  const testing::NodeInput self{"self", "as_tensor", kA};
  for (const char* target :
       {"torch.ops.mine.op.default", "torch.ops.aten.from_file.default",
        "torch.ops.aten._cudnn_init_dropout_state.default", "torch.ops.aten.no_such_op.default",
        "os.system"}) {
    const std::string text = middle(target, {});
    EXPECT_NE(text.find(target), std::string::npos) << text;
    EXPECT_NE(text.find("in layer 'fc' (my_model.py:7: return self.fc(x))"), std::string::npos)
        << text;
  }
  // As torch.export writes them: some arguments are graphs.
  for (const char* target :
       {"torch.ops.higher_order.cond", "torch.ops.higher_order.while_loop",
        "torch.ops.higher_order.scan"}) {
    const std::string text =
        middle(target, {{"", "as_graph", R"({"name":"true_graph_0","graph":{}})"}, self});
    for (const char* part : {target, "in layer 'fc' (my_model.py:7: ", "use torch.where"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  EXPECT_NE(
      middle("torch.ops.aten.rand_like.default", {self}).find("draws random numbers"),
      std::string::npos);
  EXPECT_NE(
      middle("torch.ops.aten.relu.default", {}).find("its argument 'self' is missing"),
      std::string::npos);
  EXPECT_NE(
      middle("torch.ops.aten.relu.default", {self, {"more", "as_int", "1"}}).find("argument that"),
      std::string::npos);
  // What only the operator itself notices.
  EXPECT_NE(
      middle("torch.ops.aten.view.default", {self, {"size", "as_ints", "[3, 1000]"}})
          .find("failed:"),
      std::string::npos);
  EXPECT_NE(
      middle("torch.ops.aten.relu_.default", {{"self", "as_tensor", R"({"name":"p_fc1_bias"})"}})
          .find("in place"),
      std::string::npos);
}

TEST_F(ExportedFile, IntegersBeyondTheirTypeDoNotWrap) {
  // 2^64 - 1 would be -1, which a view takes for "the rest".
  for (const char* size : {"18446744073709551615", "1e30", "2.5"}) {
    const std::string text = refused(
        small_export(node_json(
            "torch.ops.aten.view.default",
            {{"self", "as_tensor", kA}, {"size", "as_ints", formatted("[{}, 5]", size)}}, "b")),
        ErrorKind::DamagedData);
    EXPECT_NE(text.find("expected an integer of 64 bits"), std::string::npos) << text;
  }
  // n1 = OPERATION(n, OTHER), b = a.view(n1, 5) for a batch of n = 2
  const auto computed = [&](const char* operation, const char* other) {
    const auto size = [](std::string node) {
      return replaced(
          std::move(node), "as_tensor\":{\"name\":\"n", "as_sym_int\":{\"as_name\":\"n");
    };
    return small_export(
        size(node_json(
            "torch.ops.aten.sym_size.int", {{"self", "as_tensor", kA}, {"dim", "as_int", "0"}},
            "n")) +
        "," +
        size(node_json(
            operation, {{"a", "as_sym_int", R"({"as_name":"n"})"}, {"b", "as_int", other}}, "n1")) +
        "," +
        node_json(
            "torch.ops.aten.view.default",
            {{"self", "as_tensor", kA},
             {"size", "as_sym_ints", R"([{"as_name":"n1"},{"as_int":5}])"}},
            "b"));
  };
  for (const auto& [operation, other] :
       {std::pair{"_operator.mul", "1"}, std::pair{"_operator.sub", "0"},
        std::pair{"_operator.floordiv", "1"}, std::pair{"_operator.mod", "3"},
        // Rounded down: -1, which a view takes for the rest.
        std::pair{"_operator.floordiv", "-3"}}) {
    EXPECT_EQ(refused(computed(operation, other), ErrorKind::Config), "nothing was refused")
        << operation;
  }
  for (const auto& [operation, other] :
       {std::pair{"_operator.mul", "4611686018427387905"},
        std::pair{"_operator.add", "9223372036854775807"},
        std::pair{"_operator.sub", "-9223372036854775807"}, std::pair{"_operator.pow", "64"}}) {
    const std::string text = refused(computed(operation, other), ErrorKind::Config);
    EXPECT_NE(text.find("expected sizes below 1e15"), std::string::npos) << operation << text;
  }
}

TEST_F(ExportedFile, RefusesChangesOfItsOwnTensorsInPlace) {
  const auto middle = [&](const std::string& nodes) {
    ExportFile file = small_export(nodes);
    // A buffer that only these nodes read.
    const std::string input = R"({"user_input")";
    file.program.insert(
        file.program.find(input),
        R"({"buffer":{"arg":{"name":"n"},"buffer_name":"fc1.n","persistent":true}},)");
    file.weights.insert(
        file.weights.find("\"fc1.bias\""),
        testing::stored_entry("fc1.n", "weight_2", R"({"as_int":5})", R"({"as_int":1})") + ",");
    return file;
  };
  const auto tensor = [](const char* name) { return "{\"name\":\"" + std::string(name) + "\"}"; };
  const auto node = [&](const char* target, const char* self, const char* other, const char* to) {
    return node_json(
        target, {{"self", "as_tensor", tensor(self)}, {"other", "as_tensor", tensor(other)}}, to);
  };
  // n += a.mean(0); b = a * n
  EXPECT_NE(
      refused(
          middle(
              node_json(
                  "torch.ops.aten.add_.Tensor",
                  {{"self", "as_tensor", tensor("n")}, {"other", "as_int", "1"}}, "n1") +
              "," + node("torch.ops.aten.mul.Tensor", "a", "n1", "b")),
          ErrorKind::Config)
          .find("in place"),
      std::string::npos);
  // n[0:1] += 1, through a view
  EXPECT_NE(
      refused(
          middle(
              node_json(
                  "torch.ops.aten.slice.Tensor",
                  {{"self", "as_tensor", tensor("n")},
                   {"start", "as_int", "0"},
                   {"end", "as_int", "1"}},
                  "n1") +
              "," +
              node_json(
                  "torch.ops.aten.add_.Tensor",
                  {{"self", "as_tensor", tensor("n1")}, {"other", "as_int", "1"}}, "n2") +
              "," + node("torch.ops.aten.mul.Tensor", "a", "n", "b")),
          ErrorKind::Config)
          .find("in place"),
      std::string::npos);
  // A counter that nothing reads is left out.
  const auto m = model(middle(
      node_json(
          "torch.ops.aten.add_.Tensor",
          {{"self", "as_tensor", tensor("n")}, {"other", "as_int", "1"}}, "n1") +
      "," + node_json("torch.ops.aten.relu.default", {{"self", "as_tensor", kA}}, "b")));
  EXPECT_TRUE(m->buffers().empty());
}

TEST_F(ExportedFile, RefusesDamagedFiles) {
  const auto damaged = [&](const auto& change) {
    ExportFile file = small_export();
    change(file);
    return refused(file, ErrorKind::DamagedData);
  };
  const auto replaced = [&](std::string ExportFile::*part, const std::string& from,
                            const std::string& to) {
    return damaged([&](ExportFile& file) {
      std::string& text = file.*part;
      const std::size_t place = text.find(from);
      ASSERT_NE(place, std::string::npos) << from;
      text.replace(place, from.size(), to);
    });
  };
  const auto expect = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("model.pt2"), std::string::npos) << text;
  };
  const auto program = [&](const std::string& from, const std::string& to) {
    return replaced(&ExportFile::program, from, to);
  };
  const auto weights = [&](const std::string& from, const std::string& to) {
    return replaced(&ExportFile::weights, from, to);
  };
  expect(damaged([](ExportFile& f) { f.program = std::string(100'000, '['); }), "model.json");
  expect(damaged([](ExportFile& f) { f.program = "{}"; }), "graph_module");
  expect(damaged([](ExportFile& f) { f.byteorder = "big"; }), "little-endian");
  expect(damaged([](ExportFile& f) { f.records.pop_back(); }), "weight_3");
  // A node that reads what comes later: a cycle.
  expect(
      program(R"("as_tensor":{"name":"flat"}},"kind")", R"("as_tensor":{"name":"out"}},"kind")"),
      "used before it is defined");
  expect(
      program(
          R"("outputs":[{"as_tensor":{"name":"flat"}}])",
          R"("outputs":[{"as_tensor":{"name":"x"}}])"),
      "defined twice");
  expect(
      program("\"parameter_name\":\"fc1.weight\"", "\"parameter_name\":\"fc9\""),
      "'fc9' is missing");
  expect(program("{\"as_tensor\":{\"name\":\"x\"}}", "{}"), "damaged export");
  expect(weights("{\"as_int\":6}", "{\"as_int\":4611686018427387904}"), "does not fit");
  expect(weights("{\"as_int\":6}", "{\"as_int\":-6}"), "does not fit");
  expect(weights("\"strides\":[{\"as_int\":6}", "\"strides\":[{\"as_int\":700}"), "does not fit");
  expect(weights("\"storage_offset\":{\"as_int\":0}", "\"storage_offset\":{\"as_int\":9}"), "fit");
  expect(weights("\"use_pickle\":false", "\"use_pickle\":true"), "pickle");
  expect(weights("\"dtype\":7", "\"dtype\":99"), "type");
  expect(weights("\"weight_0\"", "\"../weight_0\""), "weight_0");
  std::ofstream(folder_.file("model.pt2")) << "no zip";
  ModelOptions options;
  options.name = "exported";
  options.file = folder_.file("model.pt2");
  EXPECT_THROW(make_model(options, {1, 2, 3, 4}), Error);
  options.file = folder_.file("nowhere.pt2");
  try {
    make_model(options, {1, 2, 3, 4});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::MissingInput);
  }
}

}  // namespace
}  // namespace abtrain::nn
