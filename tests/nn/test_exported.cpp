// Models in files of torch.export.save(), written here by hand; test_exported.cpp of tests/parity
// compares real ones with PyTorch.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "device/memory.h"
#include "error_of.h"
#include "linalg/svd.h"
#include "nn/example_gradients.h"
#include "nn/export_file.h"
#include "nn/exported/archive.h"
#include "nn/exported/flow.h"
#include "nn/exported/graph.h"
#include "nn/model.h"
#include "temp_folder.h"

namespace abtrain::nn {
namespace {

TEST(Exported, FactorsOfASizeAreCounted) {
  EXPECT_EQ(power_in("s77", "s77"), 1);
  EXPECT_EQ(power_in("64*s77", "s77"), 1);
  EXPECT_EQ(power_in("s7*s3*s7**2", "s7"), 3);
  EXPECT_EQ(power_in("s77*s7", "s7"), 1);
  EXPECT_EQ(power_in("s77", "s7"), 0);
  EXPECT_EQ(power_in("s7", ""), 0);
}

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
  void run(const ExportFile& file, const data::ExampleShape& shape = {1, 2, 3, 4}) {
    const auto loaded = model(file, shape);
    loaded->initialize(InitName::Kaiming, 1);
    const at::NoGradGuard no_grad;
    loaded->seed_dropout(1);
    loaded->forward(at::ones({2, shape.channels, shape.height, shape.width}), true);
  }
  void expect_refused(
      const ExportFile& file, ErrorKind kind, const std::vector<std::string>& parts,
      const data::ExampleShape& shape = {1, 2, 3, 4}) {
    expect_error([&] { run(file, shape); }, kind, parts);
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

TEST_F(ExportedFile, GivesGradientsOfExamplesOneByOne) {
  EXPECT_FALSE(has_example_gradients(*model(small_export())));
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
  expect_refused(
      small_export(), ErrorKind::Config,
      {"takes inputs of any x 1 x 2 x 3, but those of the data set have any x 3 x 32 x 32"},
      {3, 32, 32, 4});
  expect_refused(
      small_export(), ErrorKind::Config, {"returns any x 4, but the data set needs any x 10"},
      {1, 2, 3, 10});
  ExportFile fixed = small_export();
  const std::string batch = R"({"as_expr":{"expr_str":"s0","hint":{"as_int":2}}})";
  fixed.program.replace(fixed.program.find(batch), batch.size(), R"({"as_int":2})");
  expect_refused(fixed, ErrorKind::Config, {"fixed size"});
}

TEST_F(ExportedFile, RefusesOperatorsNamingThemAndTheirPlace) {
  const auto expect_none = [&](const std::string& target,
                               const std::vector<testing::NodeInput>& inputs,
                               const std::vector<std::string>& parts) {
    expect_refused(small_export(node_json(target, inputs, "b")), ErrorKind::Config, parts);
  };
  const testing::NodeInput self{"self", "as_tensor", kA};
  for (const char* target :
       {"torch.ops.mine.op.default", "torch.ops.aten.from_file.default",
        "torch.ops.aten._cudnn_init_dropout_state.default", "torch.ops.aten.no_such_op.default",
        // They trust their callers with indices and sizes.
        "torch.ops.aten.max_pool2d_with_indices_backward.default",
        "torch.ops.aten.native_batch_norm.default", "torch.ops.aten.segment_reduce.default",
        "torch.ops.aten.relu.out", "torch.ops.aten.lstm.data", "os.system"}) {
    expect_none(target, {}, {target, "in layer 'fc' (my_model.py:7: return self.fc(x))"});
  }
  // As torch.export writes them: some arguments are graphs.
  for (const char* target :
       {"torch.ops.higher_order.cond", "torch.ops.higher_order.while_loop",
        "torch.ops.higher_order.scan"}) {
    expect_none(
        target, {{"", "as_graph", R"({"name":"true_graph_0","graph":{}})"}, self},
        {target, "in layer 'fc' (my_model.py:7: ", "use torch.where"});
  }
  expect_none("torch.ops.aten.rand_like.default", {self}, {"draws random numbers"});
  expect_none("torch.ops.aten.relu.default", {}, {"its argument 'self' is missing"});
  expect_none("torch.ops.aten.relu.default", {self, {"more", "as_int", "1"}}, {"argument that"});
  // What only the operator itself notices.
  expect_none("torch.ops.aten.view.default", {self, {"size", "as_ints", "[3, 1000]"}}, {"failed:"});
  // A type that the schema does not have, or a plain number in the place of one.
  expect_none(
      "torch.ops.aten.to.dtype", {self, {"dtype", "as_scalar_type", "99"}}, {"no type or layout"});
  expect_none(
      "torch.ops.aten.to.dtype", {self, {"dtype", "as_int", "1000"}}, {"no type or layout"});
  // A number that the tensor's type cannot hold, and arguments that the operator does not check.
  expect_none(
      "torch.ops.aten.hardshrink.default", {self, {"lambd", "as_float", "1e300"}},
      {"hardshrink", "overflow"});
  expect_none(
      "torch.ops.aten.reflection_pad3d.default", {self, {"padding", "as_ints", "[]"}},
      {"reflection_pad3d", "expected 6 numbers"});
  // More than there is memory for, of a view and of a tensor.
  for (const char* size : {"[1000000000,1000000,5]", "[1,1000000000000000,5]"}) {
    expect_none(
        "torch.ops.aten.expand.default",
        {{"self", "as_tensor", R"({"name":"p_fc1_bias"})"}, {"size", "as_ints", size}},
        {"expand", "would take"});
  }
  expect_none(
      "torch.ops.aten.relu_.default", {{"self", "as_tensor", R"({"name":"p_fc1_bias"})"}},
      {"in place"});
}

// Each of them would have a copy of its own.
TEST_F(ExportedFile, FewTensorsMayShareBytes) {
  const auto sharing = [](int entries) {
    ExportFile file = small_export();
    file.records.emplace_back("shared", std::string(64 << 10, '\0'));
    for (int i = 0; i < entries; ++i) {
      const std::string entry = testing::stored_entry(
          formatted("part{}", i), "shared", R"({"as_int":16000})", R"({"as_int":1})");
      const std::string offset = "\"storage_offset\":{\"as_int\":";
      file.weights.insert(
          file.weights.size() - 2, "," + replaced(entry, offset + "0", offset + std::to_string(i)));
    }
    return file;
  };
  run(sharing(10));
  expect_refused(sharing(100), ErrorKind::DamagedData, {"model.pt2", "16 times", "the file"});
}

TEST_F(ExportedFile, ResultsAreAboutAsLargeAsTheFileDeclares) {
  const auto honest = testing::small_export_declaring(5);
  run(honest);
  EXPECT_EQ(model(honest)->largest_result(3), 3 * 5 * sizeof(float));
  EXPECT_EQ(model(small_export())->largest_result(3), 3 * 4 * sizeof(float));  // `out`
  expect_refused(
      testing::small_export_declaring(1), ErrorKind::Config,
      {"aten::linear in layer 'fc'", "a result of [2, 5] takes 40 B, but the file says 8 B"});
}

// It is no fault of the operator, so the program says what needs less.
TEST_F(ExportedFile, TooLittleMemoryIsNotBlamedOnAnOperator) {
  const auto m = model(small_export(node_json(
      "torch.ops.aten.repeat.default",
      {{"self", "as_tensor", kA}, {"repeats", "as_ints", "[1,1000000000000000]"}}, "b")));
  m->initialize(InitName::Kaiming, 1);
  m->seed_dropout(1);
  try {
    m->forward(at::ones({2, 1, 2, 3}), false);
    FAIL() << "there is no such memory";
  } catch (const c10::Error& error) {
    EXPECT_TRUE(device::is_out_of_memory(error)) << error.msg();
  }
}

TEST_F(ExportedFile, ChecksTheResultWhateverTheFileDeclares) {
  // The last node is fc2, of which a row, a class, its numbers or its gradients are lost.
  const auto ending = [](const std::string& node) {
    ExportFile file = small_export();
    const std::string out = R"("outputs":[{"as_tensor":{"name":"out"}}])";
    file.program.replace(file.program.find(out), out.size(), replaced(out, "out\"}", "all\"}"));
    const std::string end = R"(],"tensor_values")";
    file.program.insert(file.program.find(end), "," + node);
    return file;
  };
  const testing::NodeInput self{"self", "as_tensor", R"({"name":"all"})"};
  for (const char* dim : {"0", "1"}) {
    expect_refused(
        ending(node_json(
            "torch.ops.aten.slice.Tensor", {self, {"dim", "as_int", dim}, {"start", "as_int", "1"}},
            "out")),
        ErrorKind::Config, {"model.pt2", "returns Float of", "floating-point numbers of 2 x 4"});
  }
  expect_refused(
      ending(node_json("torch.ops.aten.to.dtype", {self, {"dtype", "as_scalar_type", "5"}}, "out")),
      ErrorKind::Config, {"model.pt2", "returns Long of 2 x 4"});
  // Numbers without gradients, of a comparison.
  const auto m = model(ending(
      node_json("torch.ops.aten.gt.Scalar", {self, {"other", "as_int", "0"}}, "greater") + "," +
      node_json(
          "torch.ops.aten.to.dtype",
          {{"self", "as_tensor", R"({"name":"greater"})"}, {"dtype", "as_scalar_type", "7"}},
          "out")));
  m->initialize(InitName::Kaiming, 1);
  for (const NamedParameter& parameter : m->parameters()) {
    parameter.tensor->set_requires_grad(true);
  }
  m->seed_dropout(1);
  expect_error(
      [&] {
        m->forward(at::ones({2, 1, 2, 3}), true);
      },
      ErrorKind::Config, {"model.pt2", "does not depend on any trained parameter"});
}

// A norm of a layer's output, or dropout of it.
std::string norm_node(bool training) {
  return node_json(
      "torch.ops.aten.batch_norm.default",
      {{"input", "as_tensor", kA},
       {"weight", "as_none", "true"},
       {"bias", "as_none", "true"},
       {"running_mean", "as_tensor", R"({"name":"p_fc1_bias"})"},
       {"running_var", "as_tensor", R"({"name":"p_fc1_bias"})"},
       {"training", "as_bool", training ? "true" : "false"},
       {"momentum", "as_float", "0.1"},
       {"eps", "as_float", "1e-5"},
       {"cudnn_enabled", "as_bool", "false"}},
      "b");
}
std::string dropout_node(const std::string& in, const std::string& out, bool train) {
  return node_json(
      "torch.ops.aten.dropout.default",
      {{"input", "as_tensor", "{\"name\":\"" + in + "\"}"},
       {"p", "as_float", "0.5"},
       {"train", "as_bool", train ? "true" : "false"}},
      out);
}

TEST_F(ExportedFile, NormsNeedMoreThanOneValuePerChannel) {
  const auto statistics = [](const char* op, const char* flag) {
    return node_json(
        formatted("torch.ops.aten.{}.default", op),
        {{"input", "as_tensor", kA},
         {"weight", "as_none", "true"},
         {"bias", "as_none", "true"},
         {"running_mean", "as_none", "true"},
         {"running_var", "as_none", "true"},
         {flag, "as_bool", "true"},
         {"momentum", "as_float", "0.1"},
         {"eps", "as_float", "1e-5"},
         {"cudnn_enabled", "as_bool", "false"}},
        "b");
  };
  const auto batch = model(small_export(statistics("batch_norm", "training")));
  batch->initialize(InitName::Kaiming, 1);
  const at::NoGradGuard no_grad;
  batch->seed_dropout(1);
  batch->forward(at::ones({2, 1, 2, 3}), true);
  expect_error(
      [&] {
        batch->forward(at::ones({1, 1, 2, 3}), true);
      },
      ErrorKind::Config,
      {"model.pt2: operator aten::batch_norm in layer 'fc' (my_model.py:7: ",
       "more than one value per channel", "an input of [1, 5]", "data.batch_size"});
  // B x 5 x 1: one value for each channel of each example, however many there are.
  const std::string expand = node_json(
      "torch.ops.aten.unsqueeze.default", {{"self", "as_tensor", kA}, {"dim", "as_int", "2"}},
      "wide");
  std::string norm = statistics("instance_norm", "use_input_stats");
  norm = replaced(
      replaced(norm, R"("name":"a")", R"("name":"wide")"), R"("name":"b")", R"("name":"n")");
  const std::string flat = node_json(
      "torch.ops.aten.flatten.using_ints",
      {{"self", "as_tensor", R"({"name":"n"})"}, {"start_dim", "as_int", "1"}}, "b");
  expect_refused(
      small_export(expand + "," + norm + "," + flat), ErrorKind::Config,
      {"aten::instance_norm", "more than one value per channel", "an input of [2, 5, 1]"});
}

// The same with a buffer `n`, which only these nodes read.
ExportFile with_buffer(const std::string& nodes) {
  ExportFile file = small_export(nodes);
  const std::string input = R"({"user_input")";
  file.program.insert(
      file.program.find(input),
      R"({"buffer":{"arg":{"name":"n"},"buffer_name":"fc1.n","persistent":true}},)");
  file.weights.insert(
      file.weights.find("\"fc1.bias\""),
      testing::stored_entry("fc1.n", "weight_2", R"({"as_int":5})", R"({"as_int":1})") + ",");
  return file;
}

// Running statistics of a frozen norm are neither emptied nor collected; the others are.
TEST_F(ExportedFile, FrozenNormsKeepTheirStatistics) {
  for (const bool trains : {false, true}) {
    const auto m = model(with_buffer(replaced(norm_node(trains), "p_fc1_bias", "n")));
    ASSERT_EQ(m->buffers().size(), 1U);
    EXPECT_EQ(m->buffers()[0].is_fixed, !trains);
    EXPECT_EQ(m->updates_buffers(), trains);
    const at::Tensor before = m->buffers()[0].tensor->clone();
    m->initialize(InitName::Kaiming, 1);
    m->collect_statistics(at::ones({2, 1, 2, 3}), 0);
    EXPECT_EQ(at::equal(*m->buffers()[0].tensor, before), !trains);
  }
}

// A file that was exported after eval() must not be trained by accident.
TEST_F(ExportedFile, EvaluationModeIsSeen) {
  EXPECT_EQ(model(small_export())->untrainable(), "");
  EXPECT_EQ(model(small_export(dropout_node("a", "b", true)))->untrainable(), "");
  const std::string refused = model(small_export(dropout_node("a", "b", false)))->untrainable();
  EXPECT_NE(refused.find("aten::dropout in layer 'fc'"), std::string::npos) << refused;
  EXPECT_NE(refused.find("model.eval_mode: true"), std::string::npos) << refused;
  // Something is in training mode: what is not was frozen on purpose.
  const std::string mixed = dropout_node("a", "c", true) + "," + dropout_node("c", "b", false);
  EXPECT_EQ(model(small_export(mixed))->untrainable(), "");
  // A rate of 0 says nothing.
  const std::string zero = replaced(dropout_node("a", "b", false), "0.5", "0.0");
  EXPECT_EQ(model(small_export(zero))->untrainable(), "");
  const std::string frozen = model(small_export(norm_node(false)))->untrainable();
  EXPECT_NE(frozen.find("aten::batch_norm in layer 'fc'"), std::string::npos) << frozen;
  EXPECT_EQ(model(small_export(norm_node(true)))->untrainable(), "");

  ModelOptions options;
  options.name = "exported";
  options.file = folder_.file("model.pt2");
  small_export(norm_node(false)).write(*options.file);
  options.eval_mode = true;
  EXPECT_EQ(make_model(options, {1, 2, 3, 4})->untrainable(), "");
}

// The first layer is not trained: by the file's word, or because no gradient reaches it.
TEST_F(ExportedFile, FrozenParametersStayAsTheyAre) {
  ExportFile marked = small_export();
  for (const char* name : {"\"fc1.weight\"", "\"fc1.bias\""}) {
    const std::string type = "\"dtype\":7";
    marked.weights.insert(
        marked.weights.find(type, marked.weights.find(name)), "\"requires_grad\":false,");
  }
  const auto behind = [](const char* target) {
    return small_export(node_json(target, {{"self", "as_tensor", kA}}, "b"));
  };
  for (const ExportFile& file : {marked, behind("torch.ops.aten.detach.default")}) {
    const auto m = model(file);
    const auto whole = model(
        small_export(node_json("torch.ops.aten.clone.default", {{"self", "as_tensor", kA}}, "b")));
    m->initialize(InitName::Orthogonal, 1);
    ASSERT_EQ(m->weights().size(), 1U);
    EXPECT_EQ(m->weights()[0].name, "fc2.weight");
    ASSERT_EQ(m->parameters().size(), 1U);
    EXPECT_EQ(m->parameters()[0].name, "fc2.bias");
    EXPECT_EQ(m->dense_parameters(), 20 + 4);
    // The head is not initialized anew where the file's values are asked for.
    m->initialize(InitName::Kaiming, 2);
    whole->initialize(InitName::Kaiming, 2);
    const auto& constants = m->file_form().constants;
    ASSERT_EQ(constants.size(), 2U);
    EXPECT_EQ(constants[0].name, "fc1.weight");
    EXPECT_TRUE(constants[0].is_frozen);
    EXPECT_TRUE(at::equal(constants[0].tensor, whole->weights()[0].weight->dense));
  }
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 1, 2, 3});
  const auto m = model(marked);
  const auto same = model(small_export());
  m->initialize(InitName::Kaiming, 1);
  same->initialize(InitName::Kaiming, 1);
  EXPECT_TRUE(at::allclose(m->forward(x, true), same->forward(x, true)));
  expect_refused(
      [] {
        ExportFile all = small_export();
        all.weights = replaced(all.weights, "\"dtype\":7", "\"requires_grad\":false,\"dtype\":7");
        return all;
      }(),
      ErrorKind::Config, {"model.pt2", "none of the model's parameters is trained"});
}

// In place, through a view: b = clone(a); b[:, 0:2] += fc1.bias[0:2]; gradients reach both.
TEST_F(ExportedFile, GradientsReachWhatIsWrittenThroughAView) {
  const auto tensor = [](const char* name) { return "{\"name\":\"" + std::string(name) + "\"}"; };
  const auto slice = [&](const char* of, const char* dim, const char* to) {
    return node_json(
        "torch.ops.aten.slice.Tensor",
        {{"self", "as_tensor", tensor(of)},
         {"dim", "as_int", dim},
         {"start", "as_int", "0"},
         {"end", "as_int", "2"}},
        to);
  };
  // fc1 itself lies behind detach(), so only the write reaches its bias.
  const auto m = model(small_export(
      node_json("torch.ops.aten.detach.default", {{"self", "as_tensor", kA}}, "d") + "," +
      node_json("torch.ops.aten.clone.default", {{"self", "as_tensor", tensor("d")}}, "b") + "," +
      slice("b", "1", "v") + "," + slice("p_fc1_bias", "0", "w") + "," +
      node_json(
          "torch.ops.aten.add_.Tensor",
          {{"self", "as_tensor", tensor("v")}, {"other", "as_tensor", tensor("w")}}, "u")));
  ASSERT_EQ(m->weights().size(), 1U);
  ASSERT_EQ(m->parameters().size(), 2U);
  EXPECT_EQ(m->parameters()[0].name, "fc1.bias");
}

// As after a rotary embedding in fp32 of a projection in bf16: autocast makes the operands alike.
TEST_F(ExportedFile, AttentionTakesMixedTypesUnderAutocast) {
  const auto m = model(small_export(
      node_json(
          "torch.ops.aten.to.dtype", {{"self", "as_tensor", kA}, {"dtype", "as_scalar_type", "13"}},
          "h") +
      "," +
      node_json(
          "torch.ops.aten.scaled_dot_product_attention.default",
          {{"query", "as_tensor", kA},
           {"key", "as_tensor", kA},
           {"value", "as_tensor", R"({"name":"h"})"}},
          "b")));
  m->initialize(InitName::Kaiming, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 1, 2, 3});
  expect_error([&] { m->forward(x, false); }, ErrorKind::Config, {"scaled_dot_product_attention"});
  m->compute_in({at::kBFloat16});
  EXPECT_EQ(m->forward(x, false).sizes(), (at::IntArrayRef{3, 4}));
}

// As after a convolution in bf16: the results are those of fp32, up to the rounding.
TEST_F(ExportedFile, OperatorsOfOneTypeTakeBf16AndFp32) {
  using Inputs = std::vector<testing::NodeInput>;
  const auto tensor = [](const char* name) { return "{\"name\":\"" + std::string(name) + "\"}"; };
  const auto cast = [&](const char* type) {
    return node_json(
               "torch.ops.aten._to_copy.default",
               {{"self", "as_tensor", kA}, {"dtype", "as_scalar_type", type}}, "h") +
           ",";
  };
  const auto mixing = [&](const char* op, const char* self, const char* name, const char* other,
                          Inputs more) {
    more.insert(
        more.begin(), {{"self", "as_tensor", tensor(self)}, {name, "as_tensor", tensor(other)}});
    return node_json(formatted("torch.ops.aten.{}", op), more, "b");
  };
  const std::string order = node_json(
      "torch.ops.aten.argsort.default", {{"self", "as_tensor", kA}, {"dim", "as_int", "1"}},
      "order");
  const std::string mask = node_json(
      "torch.ops.aten.gt.Scalar", {{"self", "as_tensor", kA}, {"other", "as_int", "0"}}, "mask");
  const auto added = [&](const char* op, const char* self, const char* source) {
    return order + "," +
           mixing(
               op, self, "src", source,
               {{"dim", "as_int", "1"}, {"index", "as_tensor", tensor("order")}});
  };
  const auto scattered = [&](const char* op, const char* self, const char* source) {
    return mask + "," + mixing(op, self, "source", source, {{"mask", "as_tensor", tensor("mask")}});
  };
  const Inputs half = {{"weight", "as_float", "0.5"}};
  const std::string absolute =
      node_json("torch.ops.aten.abs.default", {{"self", "as_tensor", tensor("z")}}, "b");
  for (const std::string& nodes :
       {mixing("lerp.Scalar", "h", "end", "a", half), mixing("lerp.Scalar", "a", "end", "h", half),
        mixing("lerp_.Scalar", "h", "end", "a", half), added("scatter_add.default", "h", "a"),
        added("scatter_add.default", "a", "h"), added("scatter_add_.default", "h", "a"),
        scattered("masked_scatter.default", "a", "h"),
        scattered("masked_scatter_.default", "h", "a")}) {
    SCOPED_TRACE(nodes);
    const at::NoGradGuard no_grad;
    const at::Tensor x = at::ones({3, 1, 2, 3}) * at::randn({3, 1, 1, 1});
    const auto exact = model(small_export(cast("7") + nodes));
    const auto mixed = model(small_export(cast("13") + nodes));
    exact->initialize(InitName::Kaiming, 1);
    mixed->initialize(InitName::Kaiming, 1);
    mixed->compute_in({at::kBFloat16});
    EXPECT_TRUE(at::allclose(mixed->forward(x, false), exact->forward(x, false), 0.03, 0.03));
  }
  // Complex numbers have no 16-bit form.
  const auto m = model(small_export(
      cast("13") +
      node_json(
          "torch.ops.aten.complex.default",
          {{"real", "as_tensor", tensor("h")}, {"imag", "as_tensor", tensor("h")}}, "z") +
      "," + absolute));
  m->initialize(InitName::Kaiming, 1);
  m->compute_in({at::kBFloat16});
  const at::NoGradGuard no_grad;
  EXPECT_EQ(m->forward(at::ones({3, 1, 2, 3}), false).sizes(), (at::IntArrayRef{3, 4}));
}

// Writes that PyTorch's layout decides about; all other graphs may keep images channels-last.
TEST_F(ExportedFile, LayoutMattersToWritesBehindReshape) {
  const auto node = [](const char* op, const char* self, const char* to) {
    return node_json(
        formatted("torch.ops.aten.{}", op),
        {{"self", "as_tensor", "{\"name\":\"" + std::string(self) + "\"}"}}, to);
  };
  const std::string passes = replaced(dropout_node("c", "d", false), "0.5", "0.0");
  struct Layout {
    std::string nodes;
    bool matters;
  };
  for (const Layout& c : std::vector<Layout>{
           {node("relu_.default", "a", "c") + "," + node("flatten.using_ints", "c", "b"), false},
           {node("flatten.using_ints", "a", "c") + "," + node("relu.default", "c", "b"), false},
           {node("flatten.using_ints", "a", "c") + "," + node("relu_.default", "c", "b"), true},
           {node("flatten.using_ints", "a", "b") + "," + node("relu_.default", "a", "c"), true},
           {node("contiguous.default", "a", "c") + "," + node("relu_.default", "c", "b"), true},
           {node("t.default", "a", "c") + "," + node("relu_.default", "c", "d") + "," +
                node("t.default", "d", "b"),
            false},
           {node("flatten.using_ints", "a", "c") + "," + node("clone.default", "c", "d") + "," +
                node("relu_.default", "d", "b"),
            false},
           {node("flatten.using_ints", "a", "c") + "," + passes + "," +
                node("relu_.default", "d", "b"),
            true},
           {node("view_as_complex.default", "a", "z") + "," + node("abs.default", "z", "b"),
            true}}) {
    SCOPED_TRACE(c.nodes);
    small_export(c.nodes).write(folder_.file("layout.pt2"));
    const ExportArchive archive(folder_.file("layout.pt2"));
    EXPECT_EQ(depends_on_layout(read_graph(archive).nodes), c.matters);
  }
}

TEST_F(ExportedFile, EmptyTensorsHoldZeros) {
  const auto m = model(small_export(
      node_json("torch.ops.aten.empty_like.default", {{"self", "as_tensor", kA}}, "b")));
  m->initialize(InitName::Kaiming, 1);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> used(100, at::full({2, 5}, 7.0));
  used.clear();
  EXPECT_TRUE(at::equal(
      m->forward(at::ones({2, 1, 2, 3}), false), m->parameters()[1].tensor->expand({2, 4})));
}

TEST_F(ExportedFile, ABitThatHasFlippedIsFound) {
  const std::string path = folder_.file("whole.pt2");
  small_export().write(path);
  std::string whole = read_file(path);
  // In the first weight, in the graph and in the list of tensors.
  const std::string weight = small_export().records[0].second;
  for (const std::string& part :
       {weight, std::string("\"graph_module\""), std::string("\"config\"")}) {
    const std::size_t place = whole.find(part);
    ASSERT_NE(place, std::string::npos);
    std::string flipped = whole;
    flipped[place + 2] ^= 1;
    folder_.add("flipped.pt2", flipped);
    ModelOptions options;
    options.name = "exported";
    options.file = folder_.file("flipped.pt2");
    expect_error(
        [&] {
          make_model(options, {1, 2, 3, 4})->initialize(InitName::Kaiming, 1);
        },
        ErrorKind::DamagedData, {"flipped.pt2", "CRC"});
  }
}

TEST_F(ExportedFile, IntegersBeyondTheirTypeDoNotWrap) {
  // 2^64 - 1 would be -1, which a view takes for "the rest".
  for (const char* size : {"18446744073709551615", "1e30", "2.5"}) {
    expect_refused(
        small_export(node_json(
            "torch.ops.aten.view.default",
            {{"self", "as_tensor", kA}, {"size", "as_ints", formatted("[{}, 5]", size)}}, "b")),
        ErrorKind::DamagedData, {"expected an integer of 64 bits"});
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
    EXPECT_NO_THROW(run(computed(operation, other))) << operation;
  }
  for (const auto& [operation, other] :
       {std::pair{"_operator.mul", "4611686018427387905"},
        std::pair{"_operator.add", "9223372036854775807"},
        std::pair{"_operator.sub", "-9223372036854775807"}, std::pair{"_operator.pow", "64"}}) {
    SCOPED_TRACE(operation);
    expect_refused(computed(operation, other), ErrorKind::Config, {"expected sizes below 1e15"});
  }
}

TEST_F(ExportedFile, RefusesChangesOfItsOwnTensorsInPlace) {
  const auto tensor = [](const char* name) { return "{\"name\":\"" + std::string(name) + "\"}"; };
  const auto node = [&](const char* target, const char* self, const char* other, const char* to) {
    return node_json(
        target, {{"self", "as_tensor", tensor(self)}, {"other", "as_tensor", tensor(other)}}, to);
  };
  const auto plus_one = [&](const char* self, const char* to) {
    return node_json(
        "torch.ops.aten.add_.Tensor",
        {{"self", "as_tensor", tensor(self)}, {"other", "as_int", "1"}}, to);
  };
  // n += 1; b = a * n
  expect_refused(
      with_buffer(plus_one("n", "n1") + "," + node("torch.ops.aten.mul.Tensor", "a", "n1", "b")),
      ErrorKind::Config, {"in place"});
  // n[0:1] += 1, through a view
  expect_refused(
      with_buffer(
          node_json(
              "torch.ops.aten.slice.Tensor",
              {{"self", "as_tensor", tensor("n")},
               {"start", "as_int", "0"},
               {"end", "as_int", "1"}},
              "n1") +
          "," + plus_one("n1", "n2") + "," + node("torch.ops.aten.mul.Tensor", "a", "n", "b")),
      ErrorKind::Config, {"in place"});
  // A counter that nothing reads is left out.
  const auto m = model(with_buffer(
      plus_one("n", "n1") + "," +
      node_json("torch.ops.aten.relu.default", {{"self", "as_tensor", kA}}, "b")));
  EXPECT_TRUE(m->buffers().empty());
}

TEST_F(ExportedFile, RefusesDamagedFiles) {
  const auto damaged = [&](const std::string& part, const auto& change) {
    ExportFile file = small_export();
    change(file);
    expect_refused(file, ErrorKind::DamagedData, {part, "model.pt2"});
  };
  damaged("model.json", [](ExportFile& f) { f.program = std::string(100'000, '['); });
  damaged("graph_module", [](ExportFile& f) { f.program = "{}"; });
  damaged("little-endian", [](ExportFile& f) { f.byteorder = "big"; });
  damaged("weight_3", [](ExportFile& f) { f.records.pop_back(); });
  struct Change {
    std::string ExportFile::*text;
    std::string from, to, part;
  };
  const auto program = &ExportFile::program;
  const auto weights = &ExportFile::weights;
  for (const Change& c : std::vector<Change>{
           // A node that reads what comes later: a cycle.
           {program, R"("as_tensor":{"name":"flat"}},"kind")",
            R"("as_tensor":{"name":"out"}},"kind")", "used before it is defined"},
           {program, R"("outputs":[{"as_tensor":{"name":"flat"}}])",
            R"("outputs":[{"as_tensor":{"name":"x"}}])", "defined twice"},
           {program, R"("parameter_name":"fc1.weight")", R"("parameter_name":"fc9")",
            "'fc9' is missing"},
           {program, R"({"as_tensor":{"name":"x"}})", "{}", "damaged export"},
           {weights, R"({"as_int":6})", R"({"as_int":4611686018427387904})", "does not fit"},
           {weights, R"({"as_int":6})", R"({"as_int":-6})", "does not fit"},
           {weights, R"("strides":[{"as_int":6})", R"("strides":[{"as_int":700})", "does not fit"},
           {weights, R"("storage_offset":{"as_int":0})", R"("storage_offset":{"as_int":9})", "fit"},
           {weights, R"("use_pickle":false)", R"("use_pickle":true)", "pickle"},
           {weights, R"("dtype":7)", R"("dtype":99)", "the type number 99"},
           {weights, R"("weight_0")", R"("../weight_0")", "weight_0"}}) {
    SCOPED_TRACE(c.to);
    damaged(c.part, [&](ExportFile& file) {
      std::string& text = file.*c.text;
      const std::size_t place = text.find(c.from);
      ASSERT_NE(place, std::string::npos);
      text.replace(place, c.from.size(), c.to);
    });
  }
  std::ofstream(folder_.file("model.pt2")) << "no zip";
  ModelOptions options;
  options.name = "exported";
  options.file = folder_.file("model.pt2");
  EXPECT_THROW(make_model(options, {1, 2, 3, 4}), Error);
  options.file = folder_.file("nowhere.pt2");
  expect_error([&] { make_model(options, {1, 2, 3, 4}); }, ErrorKind::MissingInput);
}

}  // namespace
}  // namespace abtrain::nn
