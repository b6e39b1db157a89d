#include "run/model_file.h"

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "run/safetensors.h"

namespace abtrain::run {

namespace {

using Sizes = std::vector<std::int64_t>;

Sizes flat_sizes(const nn::Weight& w) {
  return {w.out_features(), w.in_features()};
}

// The patterns of model.fresh, and which of them met something.
class Patterns {
 public:
  explicit Patterns(const std::vector<std::string>& patterns)
      : patterns_(patterns), used_(patterns.size(), false) {}
  // Whether a tensor ("head.fc.bias") or its layer ("head.fc") is meant.
  bool match(const std::string& tensor) {
    const std::string layer = tensor.substr(0, tensor.rfind('.'));
    bool any = false;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (glob_match(patterns_[i], tensor) || glob_match(patterns_[i], layer)) {
        used_[i] = true;
        any = true;
      }
    }
    return any;
  }
  void check() const {
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      ABT_CHECK(
          used_[i],
          Config,
          "model.fresh: '",
          patterns_[i],
          "' matches no layer of the model");
    }
  }

 private:
  const std::vector<std::string>& patterns_;
  std::vector<bool> used_;
};

// A model's file, whoever named its tensors.
class Reader {
 public:
  Reader(const std::string& path, const nn::Model& model)
      : file_(path), model_(model) {}

  void weight(const std::string& own_name, nn::Weight& w) const {
    const nn::TorchvisionName name = name_in_file(own_name);
    if (!file_.has(name.name + ".A")) {
      const at::Tensor dense =
          file_.read(name.name, name.flat ? flat_sizes(w) : w.sizes())
              .view(w.sizes());
      w.set_dense(
          w.is_conv() ? dense.contiguous(at::MemoryFormat::ChannelsLast)
                      : dense);
      return;
    }
    const std::int64_t rank = file_.columns(name.name + ".A");
    w.set_factors(
        {file_.read(name.name + ".A", {w.m(), rank}),
         file_.read(name.name + ".B", {rank, w.n()})});
  }
  at::Tensor plain(const std::string& own_name, const Sizes& sizes) const {
    return file_.read(name_in_file(own_name).name, sizes);
  }

 private:
  nn::TorchvisionName name_in_file(const std::string& own) const {
    if (file_.has(own) || file_.has(own + ".A")) {
      return {own};
    }
    const nn::TorchvisionName other = model_.torchvision_name(own);
    // Where neither is there, the error names the model's own.
    return file_.has(other.name) || file_.has(other.name + ".A")
        ? other
        : nn::TorchvisionName{own};
  }

  SafetensorsFile file_;
  const nn::Model& model_;
};

}  // namespace

void save_model(
    const std::string& path,
    const nn::Model& model,
    const std::string& names) {
  const auto renamed = [&](const std::string& name) {
    return names == "torchvision" ? model.torchvision_name(name)
                                  : nn::TorchvisionName{name};
  };
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  for (const nn::NamedWeight& w : model.weights()) {
    const nn::TorchvisionName name = renamed(w.name);
    if (w.weight->is_factored()) {
      const linalg::LowRankPair pair = w.weight->pair();
      tensors.push_back({name.name + ".A", pair.a});
      tensors.push_back({name.name + ".B", pair.b});
      metadata["shape:" + name.name] =
          shape_text(name.flat ? flat_sizes(*w.weight) : w.weight->sizes());
    } else {
      const at::Tensor& dense = w.weight->dense;
      tensors.push_back(
          {name.name, name.flat ? dense.contiguous().flatten(1) : dense});
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    tensors.push_back({renamed(p.name).name, *p.tensor});
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    tensors.push_back({renamed(b.name).name, *b.tensor});
  }
  write_safetensors(path, tensors, metadata);
}

void load_model(
    const std::string& path,
    nn::Model& model,
    const std::vector<std::string>& fresh) {
  const at::NoGradGuard no_grad;
  const Reader file(path, model);
  Patterns kept(fresh);
  for (const nn::NamedWeight& named : model.weights()) {
    if (!kept.match(named.name)) {
      file.weight(named.name, *named.weight);
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (!kept.match(p.name)) {
      *p.tensor = file.plain(p.name, p.tensor->sizes().vec());
    }
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    if (!kept.match(b.name)) {
      *b.tensor = file.plain(b.name, b.tensor->sizes().vec());
    }
  }
  kept.check();
}

}  // namespace abtrain::run
