#include "weights/model_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <span>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "linalg/grid.h"
#include "nn/exported/archive.h"
#include "state/safetensors.h"
#include "weights/stored_weight.h"

namespace abtrain::weights {

namespace {

using Sizes = std::vector<std::int64_t>;

// Whether a pattern of model.fresh matches a tensor ("head.fc.bias") or its layer ("head.fc"), as
// the model or torchvision names it.
bool matches(const std::string& pattern, const std::string& tensor, const nn::Model& model) {
  return nn::matches_tensor(pattern, tensor) ||
         nn::matches_tensor(pattern, model.torchvision_name(tensor).name);
}

// Throws if a pattern of model.fresh matches nothing.
void check_fresh(const std::vector<std::string>& patterns, const nn::Model& model) {
  std::vector<std::string> tensors;
  const auto names = std::back_inserter(tensors);
  std::ranges::transform(model.weights(), names, &nn::NamedWeight::name);
  std::ranges::transform(model.parameters(), names, &nn::NamedParameter::name);
  std::ranges::transform(model.buffers(), names, &nn::NamedBuffer::name);
  for (const std::string& pattern : patterns) {
    ABT_CHECK(
        std::ranges::any_of(
            tensors, [&](const std::string& name) { return matches(pattern, name, model); }),
        Config, "model.fresh: '{}' matches no layer of the model; the layers are {}", pattern,
        nn::layer_list(model));
  }
}

// Reads a model file, in which another library may have named the tensors.
class Reader {
 public:
  Reader(const std::string& path, const nn::Model& model) : file_(path), model_(model) {
    // DistributedDataParallel and torch.compile() put these prefixes in front of all names.
    constexpr const char* kWrappers[] = {"module.", "_orig_mod."};
    const auto has_wrapper = [&](const char* wrapper) {
      const auto begins = [&](const std::string& name) { return name.starts_with(wrapper); };
      return !begins(model.weights().front().name) && !file_.names().empty() &&
             std::ranges::all_of(file_.names(), begins);
    };
    for (auto found = std::ranges::find_if(kWrappers, has_wrapper); found != std::end(kWrappers);
         found = std::ranges::find_if(kWrappers, has_wrapper)) {
      file_.strip(*found);
    }
  }

  // Whether the file holds only the trained part of the model. Throws if it belongs to another
  // base.
  bool is_adapter() const {
    const std::string base = file_.metadata(kBaseEntry);
    ABT_CHECK(
        base.empty() || !model_.base().empty(), Config,
        "{} holds only what a run has trained, and not the base that it began with; `abtrain "
        "export "
        "RUN --form merged` writes the whole model",
        file_.path());
    ABT_CHECK(
        base.empty() || base == model_.base(), Config,
        "{} was trained on a base with the hash {}, but the one that the configuration describes "
        "has {}; expected the same model.weights, model.init and seed",
        file_.path(), base, model_.base());
    return !base.empty();
  }

  void load(const std::string& own_name, nn::Weight& w) {
    const nn::TorchvisionName name = name_in_file(own_name);
    know(name.name);
    const StoredWeight form{w, name.flat, model_.file_form().is_transposed(own_name)};
    if (!file_.has(name.name + ".A")) {
      const at::Tensor stored =
          file_.has(name.name + ".indices")
              ? sparse(name.name, form.sizes())
              : part(own_name, name.name, form.sizes(), form.output_dimension());
      const at::Tensor dense = form.from_file(stored);
      w.set_dense(w.is_conv() ? dense.contiguous(at::MemoryFormat::ChannelsLast) : dense);
      return;
    }
    w.set_adapts(false);  // in a file, A is always the larger factor, even in an adapter
    w.scale = 1;
    const linalg::LowRankPair stored = factors(name.name, w.m(), w.n());
    const std::int64_t grid = stored.a.dim() == 3 ? stored.a.size(0) : 1;
    ABT_CHECK(
        w.sizes()[0] % grid == 0 && w.sizes()[1] % grid == 0, DamagedData,
        "{} does not fit the model: '{}.A' has a grid of {} x {} blocks, which does not divide {} "
        "outputs and {} inputs",
        file_.path(), name.name, grid, grid, w.sizes()[0], w.sizes()[1]);
    if (file_.metadata(kBesideEntry + name.name).empty()) {
      w.rest.reset();
    } else if (!w.rest.defined()) {
      w.rest = w.dense;
    }
    w.set_factors(form.from_file(stored));
  }
  void load(const std::string& own_name, at::Tensor& tensor) {
    const Sizes sizes = tensor.sizes().vec();
    const std::string name = name_in_file(own_name).name;
    if (sizes.size() != 2 || !file_.has(name + ".A")) {
      tensor = part(own_name, name, sizes, 0);
      return;
    }
    // An embedding that `abtrain decompose` has factored; it is trained dense.
    know(name);
    const auto [n, m] = std::minmax(sizes[0], sizes[1]);
    const auto [a, b] = pair_of(factors(name, m, n));
    at::Tensor product = at::matmul(a, b);
    product = linalg::is_grid(product) ? linalg::joined(product) : product;
    tensor = sizes[0] == m ? product : product.t().contiguous();
  }
  bool has_factors(const std::string& own_name) const {
    return file_.has(name_in_file(own_name).name + ".A");
  }
  // Accepts, under any name that the file may use for it, a tensor that is not loaded: the model
  // keeps its own values.
  void skip(const std::string& own_name) {
    for (const std::string& name :
         {own_name, model_.torchvision_name(own_name).name, model_.file_form().prefix + own_name,
          whole_name(model_.file_form().part(own_name))}) {
      know(name);
    }
  }
  // Throws unless the file's tensor `name`, a copy of the model's tensor `of`, equals it. Compares
  // nothing if the file lacks the copy or if either was decomposed.
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
        file_.path(), there, of);
  }
  // Throws if the file has other values for a frozen parameter, whose values come with the model.
  // The file may lack the parameter, or hold it in half precision.
  void check_same(const std::string& name, const at::Tensor& tensor) {
    const std::string there = file_.has(name) ? name : model_.file_form().prefix + name;
    know(there);
    ABT_CHECK(
        !file_.has(there) ||
            at::allclose(
                file_.read(there, tensor.sizes().vec()), tensor.to(at::kFloat), 1e-2, 1e-6, true),
        DamagedData,
        "{} does not fit the model: '{}' has other values in model.file, where it is not trained; "
        "load the values of this file into the module before it is exported",
        file_.path(), there);
  }
  // Throws if the file has a tensor that no call has accepted, as PyTorch's strict load_state_dict
  // does: the file belongs to another model.
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
          DamagedData, "{} does not fit the model: tensor '{}' is unexpected", file_.path(), name);
    }
  }

 private:
  // Accepts a tensor of this name in any form: dense, factored or sparse.
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
    // If the file has none of these names, the error shows the model's own name.
    const std::string prefixed = model_.file_form().prefix + own;
    return {has(prefixed) ? prefixed : own};
  }
  std::string whole_name(const nn::PartOf& part) const {
    return file_.has(part.whole) ? part.whole : model_.file_form().prefix + part.whole;
  }
  // Returns the tensor `name` or, if the file lacks it, its part of the larger tensor that contains
  // it.
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
    const Sizes shape = file_.shape(name + ".A");
    if (shape.size() != 3) {
      const std::int64_t rank = file_.columns(name + ".A");
      return {file_.read(name + ".A", {m, rank}), file_.read(name + ".B", {rank, n})};
    }
    const std::int64_t grid = shape[0], rank = shape[2];
    ABT_CHECK(
        grid > 0 && rank > 0 && m % grid == 0 && n % grid == 0 && rank % grid == 0, DamagedData,
        "{}: damaged model file: '{}.A' has shape {}, expected a grid k that divides {} and {}, "
        "and "
        "k x {}/k x a multiple of k",
        file_.path(), name, state::shape_text(shape), m, n, m);
    return {
        file_.read(name + ".A", {grid, m / grid, rank}),
        file_.read(name + ".B", {grid, rank, n / grid})};
  }
  // Returns the dense form of a weight that is stored as its nonzero values.
  at::Tensor sparse(const std::string& name, const Sizes& sizes) const {
    const std::string shape = file_.metadata("shape:" + name);
    ABT_CHECK(
        shape == state::shape_text(sizes), DamagedData,
        "{} does not fit the model: tensor '{}' has shape {}, expected {}", file_.path(), name,
        shape, state::shape_text(sizes));
    const Sizes count = file_.shape(name + ".indices");
    const at::Tensor places = file_.read_integers(name + ".indices", count).to(at::kLong);
    const at::Tensor values = file_.read(name + ".values", count);
    const at::Tensor dense = at::zeros(sizes);
    const std::int64_t numel = dense.numel();
    const std::span place(
        places.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(places.numel()));
    const bool ascends =
        places.dim() == 1 && (place.empty() || (place.front() >= 0 && place.back() < numel &&
                                                std::ranges::adjacent_find(
                                                    place, std::greater_equal<>()) == place.end()));
    ABT_CHECK(
        ascends, DamagedData,
        "{}: damaged model file: '{}.indices' is not an ascending list of "
        "positions among {} numbers",
        file_.path(), name, numel);
    dense.view({-1}).index_copy_(0, places, values);
    return dense;
  }

  state::SafetensorsFile file_;
  const nn::Model& model_;
  std::set<std::string> known_;
};

}  // namespace

std::string RunModel::path() const {
  const std::string in_folder = folder + "/" + (file.empty() ? "model.safetensors" : file);
  return file.empty() || is_known_there(in_folder) ? in_folder : file;
}

About about_of(const std::string& path) {
  if (path.ends_with(".pt2")) {
    const nn::ExportArchive program(path);
    JsonProblem problem;
    const std::string text = program.extra("abtrain.json");
    const nlohmann::ordered_json entries = parse_json(text.empty() ? "{}" : text, problem);
    program.check(
        entries.is_object() &&
            std::ranges::all_of(entries, [](const auto& entry) { return entry.is_string(); }),
        "extra/abtrain.json: expected an object of texts");
    return entries.get<About>();
  }
  About about = state::SafetensorsFile(path).metadata();
  std::erase_if(about, [](const auto& entry) {
    return entry.first == "format" || entry.first.starts_with("shape:") ||
           entry.first.starts_with(kBesideEntry);
  });
  return about;
}

nlohmann::ordered_json classes_in(const About& about) {
  JsonProblem ignored;
  const auto entry = about.find("classes");
  return parse_json(entry == about.end() ? "0" : entry->second, ignored);
}

void check_finite(const nn::Model& model, const std::string& path) {
  const auto check = [&](const std::string& name, const at::Tensor& tensor, bool may_be_infinite) {
    if (!tensor.defined() || tensor.numel() == 0 || !tensor.is_floating_point()) {
      return;
    }
    const auto [low, high] = at::aminmax(tensor);  // both are nan if any number is
    const double least = low.item<double>(), most = high.item<double>();
    ABT_CHECK(
        !std::isnan(least) && (may_be_infinite || (std::isfinite(least) && std::isfinite(most))),
        DamagedData, "{}: expected finite numbers in tensor '{}', found {}", path, name,
        std::isnan(least) ? "nan" : "infinity");
  };
  for (const nn::NamedWeight& w : model.weights()) {
    for (const at::Tensor& tensor : {w.weight->dense, w.weight->inner, w.weight->outer}) {
      check(w.name, tensor, false);
    }
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    check(p.name, *p.tensor, false);
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    check(b.name, *b.tensor, true);  // masks may be infinite
  }
}

void load_model(const std::string& path, nn::Model& model, const std::vector<std::string>& fresh) {
  const at::NoGradGuard no_grad;
  check_fresh(fresh, model);
  Reader file(path, model);
  const auto stays = [&](const std::string& tensor) {
    return std::ranges::any_of(
        fresh, [&](const std::string& pattern) { return matches(pattern, tensor, model); });
  };
  const bool is_adapter = file.is_adapter();
  const auto load = [&](const std::string& name, auto& tensor, bool is_frozen) {
    if (stays(name)) {
      file.skip(name);
    } else if (!is_adapter || !is_frozen) {
      file.load(name, tensor);
    }
  };
  for (const nn::NamedWeight& w : model.weights()) {
    load(w.name, *w.weight, w.weight->is_frozen() && !file.has_factors(w.name));
  }
  for (const nn::NamedParameter& p : model.parameters()) {
    load(p.name, *p.tensor, p.is_frozen);
  }
  for (const nn::NamedBuffer& b : model.buffers()) {
    load(b.name, *b.tensor, false);
  }
  for (const auto& [copy, of] : model.file_form().copies) {
    const auto own = std::ranges::find(model.parameters(), of, &nn::NamedParameter::name);
    if (own == model.parameters().end() || stays(of)) {
      file.skip(copy);
    } else {
      file.copy(copy, of, *own->tensor);
    }
  }
  for (const auto& [name, tensor, is_frozen] : model.file_form().constants) {
    if (is_frozen && !stays(name)) {
      file.check_same(name, tensor);
    } else {
      file.skip(name);
    }
  }
  file.check_unexpected();
  check_finite(model, path);
}

}  // namespace abtrain::weights
