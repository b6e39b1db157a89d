// Writing models: save_model() of weights/model_file.h.
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nonzero.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/mapped.h"
#include "state/safetensors.h"
#include "weights/model_file.h"
#include "weights/stored_weight.h"

namespace abtrain::weights {

namespace {

void check_finite(const std::string& name, const at::Tensor& tensor, const at::Tensor& stored) {
  const auto is_finite = [](const at::Tensor& x) { return at::isfinite(x).all().item<bool>(); };
  if (!is_finite(stored)) {
    ABT_CHECK(is_finite(tensor), Diverged, "tensor '{}' has numbers that are not finite", name);
    throw Error(
        ErrorKind::Diverged, formatted(
                                 "tensor '{}' has numbers that {} cannot hold", name,
                                 state::dtype_name(stored.scalar_type())));
  }
}

// Adds a weight's nonzero values and their positions to `tensors`. Returns false and adds nothing
// if they would take no less space than the dense weight, or if int32 cannot hold the positions.
bool add_sparse(
    const std::string& name, const at::Tensor& dense, std::vector<state::NamedTensor>& tensors) {
  const at::Tensor flat = dense.detach().to(at::kCPU).contiguous().view({-1});
  check_finite(name, flat, flat);
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
  Store(const nn::Model& model, const ModelForm& form) : model_(model), form_(form) {
    metadata_.insert(form.about.begin(), form.about.end());
    metadata_.erase(kBaseEntry);
    const bool lacks_base = !model.base().empty() && !form.merged;
    if (lacks_base) {
      metadata_[kBaseEntry] = model.base();
    }
    const auto comes_apart = [&](const std::string& name) {
      apart_.insert(nn::layer_of(model.file_form().part(name).whole));
    };
    const auto is_left_out = [&](bool is_frozen) { return lacks_base && is_frozen; };
    for (const nn::NamedWeight& w : model.weights()) {
      if ((w.weight->is_factored() && !form.merged) || is_left_out(w.weight->is_frozen())) {
        comes_apart(w.name);
      }
    }
    for (const nn::NamedParameter& p : model.parameters()) {
      if (is_left_out(p.is_frozen)) {
        comes_apart(p.name);
      }
    }
    for (const nn::NamedWeight& w : model.weights()) {
      if (w.weight->is_factored() || !is_left_out(w.weight->is_frozen())) {
        add_weight(w);
      }
    }
    for (const nn::NamedParameter& p : model.parameters()) {
      if (!is_left_out(p.is_frozen)) {
        add_part(p.name, *p.tensor, 0);
      }
    }
    for (const nn::NamedBuffer& b : model.buffers()) {
      add(renamed(b.name).name, *b.tensor);
    }
    if (!lacks_base) {
      add_constants();
    }
    if (form.merged) {
      add_copies();
    }
  }
  std::uint64_t write(const std::string& path) const {
    return state::write_safetensors(path, tensors_, metadata_);
  }

 private:
  nn::TorchvisionName renamed(const std::string& name) const {
    return form_.names == nn::TensorNames::Torchvision ? model_.torchvision_name(name)
                                                       : nn::TorchvisionName{name};
  }
  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor stored = tensor.detach().to(form_.dtype);
    check_finite(name, tensor, stored);
    tensors_.push_back({name, stored});
  }
  // Adds what training never changes, so that a fresh module gets these values, too.
  void add_constants() {
    for (const auto& [name, tensor, is_frozen, is_read] : model_.file_form().constants) {
      if (tensor.is_complex()) {  // these files have no such type
        continue;
      }
      // Does not check for finite numbers, because a mask may hold infinities. Keeps int64, because
      // int32 could overflow.
      const bool is_long = tensor.scalar_type() == at::kLong;
      tensors_.push_back(
          {name, tensor.to(
                     tensor.is_floating_point() ? form_.dtype
                     : is_long                  ? at::kLong
                                                : at::kInt)});
    }
  }
  // Adds the other names of tied tensors, which only PyTorch's load_state_dict() needs.
  void add_copies() {
    for (const auto& [copy, of] : model_.file_form().copies) {
      const auto place = std::ranges::find(tensors_, of, &state::NamedTensor::name);
      if (place != tensors_.end()) {
        tensors_.push_back({copy, place->tensor});
      }
    }
  }
  void add_weight(const nn::NamedWeight& named) {
    const nn::Weight& w = *named.weight;
    const nn::TorchvisionName name = renamed(named.name);
    const StoredWeight stored{w, name.flat, model_.file_form().is_transposed(named.name)};
    if (w.is_factored() && !form_.merged) {
      const linalg::LowRankPair pair = stored.to_file(w.rest.defined() ? w.change() : w.pair());
      add(name.name + ".A", pair.a);
      add(name.name + ".B", pair.b);
      metadata_["shape:" + name.name] = state::shape_text(stored.sizes());
      if (w.rest.defined()) {
        metadata_[kBesideEntry + name.name] = "base";
      }
      return;
    }
    const at::Tensor dense = stored.to_file(w.merged());
    if (form_.sparse && add_sparse(name.name, dense, tensors_)) {
      metadata_["shape:" + name.name] = state::shape_text(stored.sizes());
    } else {
      add_part(named.name, dense, stored.output_dimension());
    }
  }
  // Adds a dense tensor; a part of a larger tensor waits until all parts have come. If one part of
  // a layer is factored or left out, all its parts are stored one by one.
  void add_part(const std::string& own, const at::Tensor& tensor, std::int64_t dimension) {
    const nn::PartOf part = model_.file_form().part(own);
    if (part.parts == 1 || form_.sparse || apart_.contains(nn::layer_of(part.whole))) {
      add(renamed(own).name, tensor);
      return;
    }
    std::vector<at::Tensor>& found = parts_[part.whole];
    found.push_back(tensor);
    if (std::ssize(found) == part.parts) {
      add(part.whole, at::cat(found, dimension));
    }
  }

  const nn::Model& model_;
  const ModelForm& form_;
  std::vector<state::NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_ = {{"format", "pt"}};
  std::set<std::string> apart_;  // layers whose parts are stored one by one
  std::map<std::string, std::vector<at::Tensor>> parts_;
};

}  // namespace

std::uint64_t save_model(const std::string& path, const nn::Model& model, const ModelForm& form) {
  return Store(model, form).write(path);
}

}  // namespace abtrain::weights
