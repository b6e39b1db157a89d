#include "weights/model_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "state/safetensors.h"
#include "weights/stored_weight.h"

namespace abtrain::weights {

namespace {

using Sizes = std::vector<std::int64_t>;

// The tensors and layers that model.fresh names.
class Patterns {
 public:
  Patterns(const std::vector<std::string>& patterns, const nn::Model& model)
      : patterns_(patterns), model_(model) {}
  bool match(const std::string& tensor) const {
    return std::ranges::any_of(
        patterns_, [&](const std::string& pattern) { return matches(pattern, tensor); });
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
      ABT_CHECK(
          std::ranges::any_of(
              tensors, [&](const std::string& name) { return matches(pattern, name); }),
          Config, "model.fresh: '{}' matches no layer of the model; the layers are {}", pattern,
          join(layers, ", "));
    }
  }

 private:
  // Matches a tensor ("head.fc.bias") or its layer ("head.fc"), as the model or
  // torchvision names it.
  bool matches(const std::string& pattern, const std::string& tensor) const {
    return nn::matches_tensor(pattern, tensor) ||
           nn::matches_tensor(pattern, model_.torchvision_name(tensor).name);
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
    know(name.name);
    const StoredWeight form(model_, own_name, w, name.flat);
    if (!file_.has(name.name + ".A")) {
      const at::Tensor stored =
          file_.has(name.name + ".indices")
              ? sparse(name.name, form.sizes())
              : part(own_name, name.name, form.sizes(), form.output_dimension());
      const at::Tensor dense = form.from_file(stored);
      w.set_dense(w.is_conv() ? dense.contiguous(at::MemoryFormat::ChannelsLast) : dense);
      return;
    }
    w.set_factors(form.in_file(factors(name.name, w.m(), w.n())));
  }
  at::Tensor plain(const std::string& own_name, const Sizes& sizes) {
    const std::string name = name_in_file(own_name).name;
    if (sizes.size() != 2 || !file_.has(name + ".A")) {
      return part(own_name, name, sizes, 0);
    }
    // An embedding that `decompose` has cut; it is trained dense.
    know(name);
    const auto [n, m] = std::minmax(sizes[0], sizes[1]);
    const auto [a, b] = factors(name, m, n);
    const at::Tensor product = at::matmul(a, b);
    return sizes[0] == m ? product : product.t().contiguous();
  }
  // A tensor that the file may have, but that stays as it is in the model.
  void skip(const std::string& own_name) {
    for (const std::string& name :
         {own_name, model_.torchvision_name(own_name).name, model_.file_form().prefix + own_name,
          whole_name(model_.file_form().part(own_name))}) {
      know(name);
    }
  }
  // A copy of one of the model's tensors, which must be equal to it. If one of
  // them was decomposed, they cannot be compared.
  void copy(const std::string& name, const std::string& of, const at::Tensor& tensor) {
    const std::string there = has(name) ? name : model_.file_form().prefix + name;
    know(there);
    ABT_CHECK(
        !file_.has(there) || file_.has(name_in_file(of).name + ".A") ||
            at::equal(file_.read(there, tensor.sizes().vec()), tensor),
        DamagedData,
        "{} does not fit the model: '{}' is not equal to '{}', of which this "
        "model has only one; expected a model whose head is not tied "
        "(model.tied=false)",
        path_, there, of);
  }
  // Tensors that nothing has asked for belong to another model, as in PyTorch's
  // strict load_state_dict.
  void check_unexpected() const {
    const nn::FileForm& form = model_.file_form();
    const auto is_ignored = [&](const std::string& name) {
      return std::ranges::any_of(form.ignored, [&](const std::string& glob) {
        return glob_match(glob, name) || glob_match(form.prefix + glob, name);
      });
    };
    for (const std::string& name : file_.names()) {
      ABT_CHECK(
          known_.contains(name) || name.ends_with(".num_batches_tracked") || is_ignored(name),
          DamagedData, "{} does not fit the model: tensor '{}' is unexpected", path_, name);
    }
  }

 private:
  // All forms in which a file may have this tensor.
  void know(const std::string& name) {
    for (const char* ending : {"", ".A", ".B", ".indices", ".values"}) {
      known_.insert(name + ending);
    }
  }
  bool has(const std::string& name) const {
    return file_.has(name) || file_.has(name + ".A") || file_.has(name + ".indices");
  }
  nn::TorchvisionName name_in_file(const std::string& own) const {
    if (has(own)) {
      return {own};
    }
    const nn::TorchvisionName other = model_.torchvision_name(own);
    if (has(other.name)) {
      return other;
    }
    // If none is there, the error names the model's own.
    const std::string prefixed = model_.file_form().prefix + own;
    return {has(prefixed) ? prefixed : own};
  }
  std::string whole_name(const nn::PartOf& part) const {
    return file_.has(part.whole) ? part.whole : model_.file_form().prefix + part.whole;
  }
  // The tensor `name`; if the file has none, its part of a larger one.
  at::Tensor part(
      const std::string& own, const std::string& name, const Sizes& sizes, std::int64_t dimension) {
    const nn::PartOf part = model_.file_form().part(own);
    const std::string whole = whole_name(part);
    if (file_.has(name) || part.parts == 1 || !file_.has(whole)) {
      known_.insert(name);
      return file_.read(name, sizes);
    }
    known_.insert(whole);
    Sizes all = sizes;
    const std::int64_t count = sizes[static_cast<std::size_t>(dimension)];
    all[static_cast<std::size_t>(dimension)] *= part.parts;
    return file_.read(whole, all).narrow(dimension, part.part * count, count).contiguous();
  }
  linalg::LowRankPair factors(const std::string& name, std::int64_t m, std::int64_t n) const {
    const std::int64_t rank = file_.columns(name + ".A");
    return {file_.read(name + ".A", {m, rank}), file_.read(name + ".B", {rank, n})};
  }
  // A weight that is stored as its nonzero values.
  at::Tensor sparse(const std::string& name, const Sizes& sizes) const {
    const std::string shape = file_.metadata("shape:" + name);
    ABT_CHECK(
        shape == state::shape_text(sizes), DamagedData,
        "{} does not fit the model: tensor '{}' has shape {}, expected {}", path_, name, shape,
        state::shape_text(sizes));
    const Sizes count = file_.shape(name + ".indices");
    const at::Tensor places = file_.read_integers(name + ".indices", count).to(at::kLong);
    const at::Tensor values = file_.read(name + ".values", count);
    const at::Tensor dense = at::zeros(sizes);
    const std::int64_t numel = dense.numel();
    const auto* const place = places.const_data_ptr<std::int64_t>();
    bool ascends = places.dim() == 1;
    for (std::int64_t i = 0; ascends && i < places.numel(); ++i) {
      ascends = place[i] < numel && place[i] > (i == 0 ? -1 : place[i - 1]);
    }
    ABT_CHECK(
        ascends, DamagedData,
        "{}: damaged model file: '{}.indices' is not an ascending list of "
        "positions among {} numbers",
        path_, name, numel);
    dense.view({-1}).index_copy_(0, places, values);
    return dense;
  }

  const std::string path_;
  state::SafetensorsFile file_;
  const nn::Model& model_;
  std::set<std::string> known_;
};

}  // namespace

std::string RunModel::path() const {
  const std::string in_folder = folder + "/" + (file.empty() ? "model.safetensors" : file);
  return file.empty() || std::filesystem::exists(in_folder) ? in_folder : file;
}

About about_of(const std::string& path) {
  About about = state::SafetensorsFile(path).metadata();
  std::erase_if(about, [](const auto& entry) {
    return entry.first == "format" || entry.first.starts_with("shape:");
  });
  return about;
}

nlohmann::ordered_json classes_in(const About& about) {
  JsonProblem ignored;
  const auto entry = about.find("classes");
  return parse_json(entry == about.end() ? "0" : entry->second, ignored);
}

void load_model(const std::string& path, nn::Model& model, const std::vector<std::string>& fresh) {
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
    for (const auto& [copy, of] : model.file_form().copies) {
      if (of == p.name) {
        kept.match(of) ? file.skip(copy) : file.copy(copy, of, *p.tensor);
      }
    }
  }
  for (const auto& [copy, of] : model.file_form().copies) {
    if (std::ranges::find(model.parameters(), of, &nn::NamedParameter::name) ==
        model.parameters().end()) {
      file.skip(copy);
    }
  }
  for (const auto& [name, tensor] : model.file_form().constants) {
    file.skip(name);
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    if (kept.match(b.name)) {
      file.skip(b.name);
    } else {
      *b.tensor = file.plain(b.name, b.tensor->sizes().vec());
    }
  }
  file.check_unexpected();
}

}  // namespace abtrain::weights
