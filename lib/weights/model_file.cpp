#include "weights/model_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"
#include "weights/safetensors.h"

namespace abtrain::weights {

namespace {

using Sizes = std::vector<std::int64_t>;

Sizes flat_sizes(const nn::Weight& w) {
  return {w.out_features(), w.in_features()};
}

// The tensors and layers that model.fresh names.
class Patterns {
 public:
  Patterns(const std::vector<std::string>& patterns, const nn::Model& model)
      : patterns_(patterns), model_(model) {}
  // Matches a tensor ("head.fc.bias") or its layer ("head.fc"), as the model or
  // torchvision names it.
  bool match(const std::string& tensor) const {
    return std::any_of(
        patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
          return matches(pattern, tensor) ||
                 matches(pattern, model_.torchvision_name(tensor).name);
        });
  }
  // Throws if a pattern matches nothing.
  void check() const {
    std::vector<std::string> tensors;
    std::vector<std::string> layers;
    for (const nn::NamedWeight& w : model_.weights()) {
      tensors.push_back(w.name);
      layers.push_back(w.layer);
    }
    for (const nn::NamedParameter& p : model_.parameters()) {
      tensors.push_back(p.name);
    }
    for (const nn::NamedBuffer& b : model_.buffers()) {
      tensors.push_back(b.name);
    }
    for (const std::string& pattern : patterns_) {
      const std::vector<std::string> one = {pattern};
      const Patterns alone(one, model_);
      ABT_CHECK(
          std::any_of(
              tensors.begin(),
              tensors.end(),
              [&](const std::string& name) { return alone.match(name); }),
          Config,
          "model.fresh: '{}' matches no layer of the model; the layers are {}",
          pattern,
          join(layers, ", "));
    }
  }

 private:
  static bool matches(const std::string& pattern, const std::string& tensor) {
    return glob_match(pattern, tensor) ||
           glob_match(pattern, tensor.substr(0, tensor.rfind('.')));
  }
  const std::vector<std::string>& patterns_;
  const nn::Model& model_;
};

// A model's file, whichever library named its tensors.
class Reader {
 public:
  Reader(const std::string& path, const nn::Model& model)
      : path_(path), file_(path), model_(model) {}

  void weight(const std::string& own_name, nn::Weight& w) {
    const nn::TorchvisionName name = name_in_file(own_name);
    for (const char* ending : {"", ".A", ".B"}) {
      known_.insert(name.name + ending);
    }
    for (const char* ending : {".indices", ".values"}) {
      known_.insert(name.name + ending);
    }
    if (!file_.has(name.name + ".A")) {
      const Sizes sizes = name.flat ? flat_sizes(w) : w.sizes();
      const at::Tensor stored = file_.has(name.name + ".indices")
                                    ? sparse(name.name, sizes)
                                    : file_.read(name.name, sizes);
      set_dense(w, stored.view(w.sizes()));
      return;
    }
    const std::int64_t rank = file_.columns(name.name + ".A");
    w.set_factors(
        {file_.read(name.name + ".A", {w.m(), rank}),
         file_.read(name.name + ".B", {rank, w.n()})});
  }
  at::Tensor plain(const std::string& own_name, const Sizes& sizes) {
    const std::string name = name_in_file(own_name).name;
    known_.insert(name);
    return file_.read(name, sizes);
  }
  // A tensor that the file may have, but that stays as it is in the model.
  void skip(const std::string& own_name) {
    for (const std::string& name :
         {own_name, model_.torchvision_name(own_name).name}) {
      for (const char* ending : {"", ".A", ".B"}) {
        known_.insert(name + ending);
      }
    }
  }
  // Tensors that nothing has asked for belong to another model, as in PyTorch's
  // strict load_state_dict.
  void check_unexpected(const std::string& path) const {
    for (const std::string& name : file_.names()) {
      ABT_CHECK(
          known_.contains(name) || name.ends_with(".num_batches_tracked"),
          DamagedData,
          "{} does not fit the model: tensor '{}' is unexpected",
          path,
          name);
    }
  }

 private:
  bool has(const std::string& name) const {
    return file_.has(name) || file_.has(name + ".A") ||
           file_.has(name + ".indices");
  }
  nn::TorchvisionName name_in_file(const std::string& own) const {
    if (has(own)) {
      return {own};
    }
    const nn::TorchvisionName other = model_.torchvision_name(own);
    // If neither is there, the error names the model's own.
    return has(other.name) ? other : nn::TorchvisionName{own};
  }
  static void set_dense(nn::Weight& w, const at::Tensor& dense) {
    w.set_dense(
        w.is_conv() ? dense.contiguous(at::MemoryFormat::ChannelsLast) : dense);
  }
  // A weight that is stored as its nonzero values.
  at::Tensor sparse(const std::string& name, const Sizes& sizes) const {
    const std::string shape = file_.metadata("shape:" + name);
    ABT_CHECK(
        shape == shape_text(sizes),
        DamagedData,
        "{} does not fit the model: tensor '{}' has shape {}, expected {}",
        path_,
        name,
        shape,
        shape_text(sizes));
    const Sizes count = file_.shape(name + ".indices");
    const at::Tensor places =
        file_.read_integers(name + ".indices", count).to(at::kLong);
    const at::Tensor values = file_.read(name + ".values", count);
    const at::Tensor dense = at::zeros(sizes);
    const std::int64_t numel = dense.numel();
    const auto* const place = places.const_data_ptr<std::int64_t>();
    bool ascends = places.dim() == 1;
    for (std::int64_t i = 0; ascends && i < places.numel(); ++i) {
      ascends = place[i] < numel && place[i] > (i == 0 ? -1 : place[i - 1]);
    }
    ABT_CHECK(
        ascends,
        DamagedData,
        "{}: damaged model file: '{}.indices' is not an ascending list of "
        "positions among {} numbers",
        path_,
        name,
        numel);
    dense.view({-1}).index_copy_(0, places, values);
    return dense;
  }

  const std::string path_;
  SafetensorsFile file_;
  const nn::Model& model_;
  std::set<std::string> known_;
};

}  // namespace

namespace {

// Stores a weight's nonzero values and their positions; false, and nothing is
// stored, if that is not smaller.
bool add_sparse(
    const std::string& name,
    const at::Tensor& dense,
    std::vector<NamedTensor>& tensors) {
  const at::Tensor flat = dense.detach().to(at::kCPU).contiguous().view({-1});
  const at::Tensor places = at::nonzero(flat).view({-1});
  if (2 * places.numel() >= flat.numel() ||
      flat.numel() > std::numeric_limits<std::int32_t>::max()) {
    return false;
  }
  tensors.push_back({name + ".indices", places.to(at::kInt)});
  tensors.push_back({name + ".values", flat.index_select(0, places)});
  return true;
}

// All tensors of a model, in the form in which they are stored.
class Store {
 public:
  Store(const nn::Model& model, const ModelForm& form, bool sparse = false)
      : model_(model), form_(form), sparse_(sparse) {
    for (const nn::NamedWeight& w : model.weights()) {
      add_weight(w);
    }
    for (const nn::NamedParameter& p : model.parameters()) {
      add(renamed(p.name).name, *p.tensor);
    }
    for (const nn::NamedBuffer& b : model.buffers()) {
      add(renamed(b.name).name, *b.tensor);
    }
  }
  std::uint64_t write(const std::string& path) const {
    return write_safetensors(path, tensors_, metadata_);
  }

 private:
  nn::TorchvisionName renamed(const std::string& name) const {
    return form_.names == nn::TensorNames::Torchvision
               ? model_.torchvision_name(name)
               : nn::TorchvisionName{name};
  }
  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor stored = tensor.detach().to(form_.dtype);
    ABT_CHECK(
        at::isfinite(stored).all().item<bool>(),
        Diverged,
        "tensor '{}' has numbers that {} cannot hold",
        name,
        dtype_name(form_.dtype));
    tensors_.push_back({name, stored});
  }
  void add_weight(const nn::NamedWeight& named) {
    const nn::Weight& w = *named.weight;
    const nn::TorchvisionName name = renamed(named.name);
    if (w.is_factored() && !form_.merged) {
      const linalg::LowRankPair pair = w.pair();
      add(name.name + ".A", pair.a);
      add(name.name + ".B", pair.b);
      metadata_["shape:" + name.name] =
          shape_text(name.flat ? flat_sizes(w) : w.sizes());
      return;
    }
    const at::Tensor dense = w.merged();
    const at::Tensor stored = name.flat ? dense.contiguous().flatten(1) : dense;
    if (sparse_ && add_sparse(name.name, stored, tensors_)) {
      metadata_["shape:" + name.name] = shape_text(stored.sizes().vec());
    } else {
      add(name.name, stored);
    }
  }

  const nn::Model& model_;
  const ModelForm& form_;
  const bool sparse_;
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_ = {{"format", "pt"}};
};

}  // namespace

void save_model(
    const std::string& path,
    const nn::Model& model,
    nn::TensorNames names) {
  save_model_as(path, model, {names});
}

std::uint64_t save_model_as(
    const std::string& path,
    const nn::Model& model,
    const ModelForm& form) {
  return Store(model, form).write(path);
}

void save_sparse_model(
    const std::string& path,
    const nn::Model& model,
    nn::TensorNames names) {
  const ModelForm form{names};
  Store(model, form, /*sparse=*/true).write(path);
}

std::string model_path(const std::string& folder, const std::string& file) {
  const std::string in_folder =
      folder + "/" + (file.empty() ? "model.safetensors" : file);
  return file.empty() || std::filesystem::exists(in_folder) ? in_folder : file;
}

void load_model(
    const std::string& path,
    nn::Model& model,
    const std::vector<std::string>& fresh) {
  const at::NoGradGuard no_grad;
  const Patterns kept(fresh, model);
  kept.check();
  Reader file(path, model);
  for (const nn::NamedWeight& named : model.weights()) {
    if (kept.match(named.name)) {
      file.skip(named.name);
    } else {
      file.weight(named.name, *named.weight);
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    if (kept.match(p.name)) {
      file.skip(p.name);
    } else {
      *p.tensor = file.plain(p.name, p.tensor->sizes().vec());
    }
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    if (kept.match(b.name)) {
      file.skip(b.name);
    } else {
      *b.tensor = file.plain(b.name, b.tensor->sizes().vec());
    }
  }
  file.check_unexpected(path);
}

}  // namespace abtrain::weights
