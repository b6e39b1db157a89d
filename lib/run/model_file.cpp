#include "run/model_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::run {

namespace {

using nlohmann::ordered_json;

struct Entry {
  std::string name;
  at::Tensor tensor;
};

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(std::to_string(size));
  }
  return join(parts, ",");
}

// A file in memory, its header parsed and every offset checked.
class Tensors {
 public:
  explicit Tensors(const std::string& path)
      : path_(path), content_(read_file(path)) {
    std::uint64_t length = 0;
    check(content_.size() >= 8, "it is shorter than its 8-byte header length");
    std::memcpy(&length, content_.data(), 8);
    check(
        length <= content_.size() - 8,
        str("its header should have ",
            length,
            " bytes, but only ",
            content_.size() - 8,
            " follow"));
    begin_ = 8 + length;
    header_ = ordered_json::parse(
        content_.begin() + 8,
        content_.begin() + static_cast<std::ptrdiff_t>(begin_),
        nullptr,
        /*allow_exceptions=*/false);
    check(header_.is_object(), "its header is not a JSON object");
  }

  bool has(const std::string& name) const {
    return header_.contains(name);
  }

  at::Tensor read(
      const std::string& name, const std::vector<std::int64_t>& sizes) const {
    check(has(name), str("tensor '", name, "' is missing"));
    const ordered_json& entry = header_[name];
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::int64_t> shape;
    std::string dtype;
    try {
      shape = entry.at("shape").get<std::vector<std::int64_t>>();
      dtype = entry.at("dtype").get<std::string>();
      begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
      end = entry.at("data_offsets").at(1).get<std::uint64_t>();
    } catch (const nlohmann::json::exception&) {
      check(false, str("the header entry of '", name, "' is malformed"));
    }
    check(dtype == "F32", str("tensor '", name, "' is ", dtype, ", not F32"));
    check(
        shape == sizes,
        str("tensor '",
            name,
            "' has shape ",
            shape_text(shape),
            ", expected ",
            shape_text(sizes)));
    at::Tensor tensor = at::empty(sizes);
    check(
        begin <= end && end <= content_.size() - begin_ &&
            end - begin == tensor.nbytes(),
        str("tensor '",
            name,
            "' should lie at bytes ",
            begin,
            " .. ",
            end,
            " of ",
            content_.size() - begin_));
    std::memcpy(
        tensor.data_ptr(), content_.data() + begin_ + begin, tensor.nbytes());
    return tensor;
  }

  // Second size of a 2-D tensor.
  std::int64_t columns(const std::string& name) const {
    const ordered_json& entry = header_[name];
    check(
        entry.is_object() && entry.contains("shape") &&
            entry["shape"].is_array() && entry["shape"].size() == 2 &&
            entry["shape"][1].is_number_integer() && entry["shape"][1] > 0,
        str("tensor '", name, "' is not a matrix"));
    return entry["shape"][1].get<std::int64_t>();
  }

  void check(bool ok, const std::string& what) const {
    ABT_CHECK(ok, DamagedData, path_, ": damaged model file: ", what);
  }

 private:
  std::string path_;
  std::string content_;
  std::size_t begin_ = 0;
  ordered_json header_;
};

}  // namespace

void save_model(const std::string& path, const nn::Model& model) {
  std::vector<Entry> entries;
  ordered_json metadata = {{"format", "pt"}};
  for (const nn::NamedWeight& w : model.weights()) {
    if (w.weight->is_factored()) {
      const linalg::LowRankPair pair = w.weight->pair();
      entries.push_back({w.name + ".A", pair.a});
      entries.push_back({w.name + ".B", pair.b});
      metadata["shape:" + w.name] = shape_text(w.weight->sizes());
    } else {
      entries.push_back({w.name, w.weight->dense});
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    entries.push_back({p.name, *p.tensor});
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    entries.push_back({b.name, *b.tensor});
  }
  ordered_json header = {{"__metadata__", metadata}};
  std::string data;
  for (const Entry& entry : entries) {
    const at::Tensor t =
        entry.tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    header[entry.name] = {
        {"dtype", "F32"},
        {"shape", t.sizes().vec()},
        {"data_offsets", {data.size(), data.size() + t.nbytes()}}};
    data.append(static_cast<const char*>(t.const_data_ptr()), t.nbytes());
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors begin aligned
  const std::uint64_t length = text.size();
  std::string content(8, '\0');
  std::memcpy(content.data(), &length, 8);
  atomic_write(path, content + text + data);
}

void load_model(const std::string& path, nn::Model& model) {
  const at::NoGradGuard no_grad;
  const Tensors file(path);
  for (const nn::NamedWeight& named : model.weights()) {
    nn::Weight& w = *named.weight;
    if (!file.has(named.name + ".A")) {
      const at::Tensor dense = file.read(named.name, w.sizes());
      w.set_dense(
          w.is_conv() ? dense.contiguous(at::MemoryFormat::ChannelsLast)
                      : dense);
      continue;
    }
    const std::int64_t rank = file.columns(named.name + ".A");
    w.set_factors(
        {file.read(named.name + ".A", {w.m(), rank}),
         file.read(named.name + ".B", {rank, w.n()})});
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    *p.tensor = file.read(p.name, p.tensor->sizes().vec());
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    *b.tensor = file.read(b.name, b.tensor->sizes().vec());
  }
}

}  // namespace abtrain::run
