// Writes a .pt2 file as torch.export.save() does, from its parts.
#pragma once

#include <ATen/core/Tensor.h>
#include <caffe2/serialize/inline_container.h>

#include <string>
#include <utility>
#include <vector>

namespace abtrain::testing {

struct ExportFile {
  std::string program;                       // models/model.json
  std::string weights = R"({"config":{}})";  // data/weights/model_weights_config.json
  std::string constants = R"({"config":{}})";
  std::string byteorder = "little";
  std::vector<std::pair<std::string, std::string>> records = {};  // data/weights/...

  void write(const std::string& path) const {
    caffe2::serialize::PyTorchStreamWriter writer(path);
    const auto add = [&](const std::string& name, const std::string& bytes) {
      writer.writeRecord(name, bytes.data(), bytes.size());
    };
    for (const auto& [name, bytes] : records) {
      add("data/weights/" + name, bytes);
    }
    add("data/weights/model_weights_config.json", weights);
    add("data/constants/model_constants_config.json", constants);
    add("models/model.json", program);
    add("byteorder", byteorder);
    writer.writeEndOfFile();
  }
};

// The bytes of a contiguous tensor.
inline std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// An entry of the weights' list: an fp32 tensor.
inline std::string stored_entry(
    const std::string& name, const std::string& record, const std::string& sizes,
    const std::string& strides) {
  return "\"" + name + "\":{\"path_name\":\"" + record +
         "\",\"is_param\":true,\"use_pickle\":false,\"tensor_meta\":{\"dtype\":7,\"sizes\":[" +
         sizes + "],\"strides\":[" + strides + "],\"storage_offset\":{\"as_int\":0}}}";
}

// A node of aten with inputs such as {"self", "as_tensor", R"({"name":"x"})"}.
struct NodeInput {
  std::string name, kind, value;
};
inline std::string node_json(
    const std::string& target, const std::vector<NodeInput>& inputs, const std::string& output) {
  std::string text = "{\"target\":\"" + target + "\",\"inputs\":[";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    text += std::string(i > 0 ? "," : "") + "{\"name\":\"" + inputs[i].name + "\",\"arg\":{\"" +
            inputs[i].kind + "\":" + inputs[i].value + "},\"kind\":1}";
  }
  return text + "],\"outputs\":[{\"as_tensor\":{\"name\":\"" + output +
         "\"}}],\"metadata\":{\"stack_trace\":\"File \\\"/home/me/my_model.py\\\", line 7, in "
         "forward\\n    return "
         "self.fc(x)\\n  File \\\"<eval_with_key>.7\\\", line 9, in forward\\n    cond = "
         "cond(x)\",\"nn_module_stack\":\"L__self__,,M;L__self__fc,fc,N\"}}";
}

// y = act(fc1(x)), out = fc2(y) for x of B x 1 x 2 x 3, flattened; `middle` is the node between.
inline ExportFile small_export(
    const std::string& middle =
        node_json("torch.ops.aten.relu.default", {{"self", "as_tensor", R"({"name":"a"})"}}, "b")) {
  const auto tensor = [](const std::string& name) { return "{\"name\":\"" + name + "\"}"; };
  const auto linear = [&](const std::string& in, const std::string& layer, const std::string& out) {
    return node_json(
        "torch.ops.aten.linear.default",
        {{"input", "as_tensor", tensor(in)},
         {"weight", "as_tensor", tensor("p_" + layer + "_weight")},
         {"bias", "as_tensor", tensor("p_" + layer + "_bias")}},
        out);
  };
  const auto parameter = [](const std::string& layer, const std::string& what) {
    return "{\"parameter\":{\"arg\":{\"name\":\"p_" + layer + "_" + what +
           "\"},\"parameter_name\":\"" + layer + "." + what + "\"}}";
  };
  const std::string batch = R"({"as_expr":{"expr_str":"s0","hint":{"as_int":2}}})";
  const auto meta = [&](const std::string& name, const std::string& sizes) {
    return "\"" + name + "\":{\"dtype\":7,\"sizes\":[" + batch + sizes + "]}";
  };
  ExportFile file;
  file.program =
      "{\"graph_module\":{\"graph\":{\"nodes\":[" +
      node_json(
          "torch.ops.aten.flatten.using_ints",
          {{"self", "as_tensor", tensor("x")}, {"start_dim", "as_int", "1"}}, "flat") +
      "," + linear("flat", "fc1", "a") + "," + middle + "," + linear("b", "fc2", "out") +
      "],\"tensor_values\":{" + meta("x", R"(,{"as_int":1},{"as_int":2},{"as_int":3})") + "," +
      meta("out", R"(,{"as_int":4})") + "}},\"signature\":{\"input_specs\":[" +
      parameter("fc1", "weight") + "," + parameter("fc1", "bias") + "," +
      parameter("fc2", "weight") + "," + parameter("fc2", "bias") +
      R"(,{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],"output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"out"}}}}]}}})";
  const auto ints = [](const std::vector<int>& numbers) {
    std::string text;
    for (const int n : numbers) {
      text += std::string(text.empty() ? "" : ",") + "{\"as_int\":" + std::to_string(n) + "}";
    }
    return text;
  };
  file.weights = "{\"config\":{" +
                 stored_entry("fc1.weight", "weight_0", ints({5, 6}), ints({6, 1})) + "," +
                 stored_entry("fc1.bias", "weight_1", ints({5}), ints({1})) + "," +
                 stored_entry("fc2.weight", "weight_2", ints({4, 5}), ints({5, 1})) + "," +
                 stored_entry("fc2.bias", "weight_3", ints({4}), ints({1})) + "}}";
  const auto numbers = [](int count) {
    std::vector<float> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(static_cast<float>((i * 37) % 11 - 5) / 8);
    }
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  file.records = {
      {"weight_0", numbers(30)},
      {"weight_1", numbers(5)},
      {"weight_2", numbers(20)},
      {"weight_3", numbers(4)}};
  return file;
}

// small_export() with the size of its value `a` (B x 5) as the file shall declare it.
inline ExportFile small_export_declaring(std::int64_t features) {
  ExportFile file = small_export();
  const std::string table = "\"tensor_values\":{";
  file.program.insert(
      file.program.find(table) + table.size(),
      R"("a":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"s0","hint":{"as_int":2}}},{"as_int":)" +
          std::to_string(features) + "}]},");
  return file;
}

}  // namespace abtrain::testing
