#include "weights/adapter.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine_text.h"
#include "base/mapped.h"
#include "base/output.h"
#include "state/safetensors.h"
#include "weights/stored_weight.h"

namespace abtrain::weights {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorsFile = "adapter_model.safetensors";
constexpr const char* kPrefix = "base_model.model.";

class AdapterWriter {
 public:
  explicit AdapterWriter(const nn::Model& model) : model_(model) {
    for (const nn::NamedWeight& w : model.weights()) {
      if (w.weight->rest.defined()) {
        add_factors(w);
      } else if (!w.weight->is_frozen()) {
        modules_.insert(w.layer);
      }
    }
    for (const nn::NamedParameter& p : model.parameters()) {
      if (!p.is_frozen) {
        add_module(p.name);
      }
    }
    for (const nn::NamedBuffer& b : model.buffers()) {
      add_module(b.name);
    }
    check_saved();
    add_modules();
  }

  std::uint64_t write(const std::string& folder, const std::string& base) const {
    make_folders(folder);
    atomic_write(folder + "/" + kConfigFile, json_text(config(base), 2));
    return state::write_safetensors(folder + "/" + kTensorsFile, tensors_, {{"format", "pt"}});
  }

 private:
  std::string in_library(const std::string& name) const {
    return model_.file_form().prefix + name;
  }
  void add_factors(const nn::NamedWeight& named) {
    const nn::Weight& w = *named.weight;
    ABT_CHECK(
        w.grid() == 1, Config,
        "PEFT has no form for factors in a grid of blocks, as those of '{}'; expected a run with "
        "method.blocks 1, or --form merged",
        named.layer);
    ABT_CHECK(
        model_.file_form().part(named.name).parts == 1, Config,
        "'{}' is a part of a layer of {}; expected a run with model.split_qkv false, or --form "
        "merged",
        named.layer, model_.file_form().library);
    const std::string layer = in_library(named.layer);
    const at::Tensor outer = w.outer.detach();
    tensors_.push_back({kPrefix + layer + ".lora_A.weight", w.inner.detach().contiguous()});
    tensors_.push_back(
        {kPrefix + layer + ".lora_B.weight",
         w.is_conv() ? outer.reshape({outer.size(0), outer.size(1), 1, 1}) : outer});
    ranks_[layer] = w.rank();
    transposed_ += model_.file_form().is_transposed(named.name) ? 1 : 0;
  }
  void add_module(const std::string& tensor) {
    const std::string layer = nn::layer_of(tensor);
    ABT_CHECK(
        !ranks_.contains(in_library(layer)), Config,
        "'{}' was trained, but PEFT has no place for it beside the factors of '{}'; expected a run "
        "with model.frozen [\"{}\"], or --form merged",
        tensor, layer, tensor);
    modules_.insert(layer);
  }
  // Names of all layers, as the library has them.
  std::set<std::string> layers() const {
    std::set<std::string> all;
    const auto add = [&](const auto& tensors) {
      for (const auto& each : tensors) {
        all.insert(in_library(nn::layer_of(each.name)));
      }
    };
    add(model_.weights());
    add(model_.parameters());
    add(model_.buffers());
    return all;
  }
  // PEFT also takes layers whose names end with a name of modules_to_save.
  void check_saved() const {
    for (const std::string& layer : modules_) {
      const std::string saved = in_library(layer);
      for (const std::string& other : layers()) {
        ABT_CHECK(
            other == saved || !other.ends_with(saved), Config,
            "'{}' was trained, and PEFT would also replace '{}', whose name ends alike; expected "
            "model.frozen [\"{}\"], or --form merged",
            layer, other, layer);
      }
    }
  }
  void add_modules() {
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      if (modules_.contains(nn::layer_of(name))) {
        tensors_.push_back({kPrefix + in_library(name), tensor.detach().contiguous()});
      }
    };
    for (const nn::NamedWeight& w : model_.weights()) {
      if (w.weight->dense.defined()) {
        const StoredWeight form{*w.weight, false, model_.file_form().is_transposed(w.name)};
        add(w.name, form.to_file(w.weight->dense));
      }
    }
    for (const nn::NamedParameter& p : model_.parameters()) {
      add(p.name, *p.tensor);
    }
    for (const nn::NamedBuffer& b : model_.buffers()) {
      add(b.name, *b.tensor);
      if (b.name.ends_with(".running_mean")) {  // PEFT asks for it
        add(nn::layer_of(b.name) + ".num_batches_tracked", at::zeros({}, at::kLong));
      }
    }
    // PEFT unties what it saves, so that each layer of a trained tied tensor is saved.
    for (const auto& [copy, of] : model_.file_form().copies) {
      const std::string source = kPrefix + in_library(of);
      const auto place = std::ranges::find(tensors_, source, &state::NamedTensor::name);
      if (place != tensors_.end()) {
        tensors_.push_back({kPrefix + copy, place->tensor});
        tied_.insert(nn::layer_of(copy));
      }
    }
  }
  ordered_json config(const std::string& base) const {
    std::map<std::int64_t, int> counts;
    for (const auto& [layer, rank] : ranks_) {
      ++counts[rank];
    }
    const std::int64_t usual =
        std::ranges::max_element(counts, {}, &std::pair<const std::int64_t, int>::second)->first;
    ordered_json targets = ordered_json::array();
    ordered_json others = ordered_json::object();
    for (const auto& [layer, rank] : ranks_) {
      targets.push_back(layer);
      if (rank != usual) {
        // A plain name would also be that of any layer whose name ends with it.
        others["^" + replaced(layer, ".", "\\.")] = rank;
      }
    }
    std::vector<std::string> saved =
        mapped(modules_, [&](const std::string& layer) { return in_library(layer); });
    saved.insert(saved.end(), tied_.begin(), tied_.end());
    // A list would also mean all layers whose names end with one of it; a text is an expression for
    // whole names.
    const std::set<std::string> all = layers();
    const bool is_ambiguous = std::ranges::any_of(all, [&](const std::string& layer) {
      return !ranks_.contains(layer) && std::ranges::any_of(ranks_, [&](const auto& adapted) {
        return layer.ends_with("." + adapted.first);
      });
    });
    if (is_ambiguous) {
      targets = join(
          mapped(ranks_, [](const auto& one) { return replaced(one.first, ".", "\\."); }), "|");
    }
    // PEFT multiplies the product by alpha / r, which is 1 here.
    return {
        {"peft_type", "LORA"},
        {"task_type", nullptr},
        {"base_model_name_or_path", base},
        {"r", usual},
        {"lora_alpha", usual},
        {"rank_pattern", others},
        {"alpha_pattern", others},
        {"target_modules", targets},
        {"modules_to_save", saved.empty() ? ordered_json() : ordered_json(saved)},
        {"fan_in_fan_out", transposed_ == std::ssize(ranks_)},
        {"bias", "none"},
        {"lora_dropout", 0.0},
        {"use_rslora", false},
        {"use_dora", false},
        {"init_lora_weights", true},
        {"inference_mode", true}};
  }

  const nn::Model& model_;
  std::vector<state::NamedTensor> tensors_;
  std::map<std::string, std::int64_t> ranks_;  // by the library's name of the layer
  std::set<std::string> modules_;              // modules_to_save: layers that are stored whole
  std::set<std::string> tied_;                 // other layers with tensors of these, by file names
  std::ptrdiff_t transposed_ = 0;              // adapted weights that the library holds as I x O
};

class AdapterReader {
 public:
  AdapterReader(const std::string& folder, nn::Model& model)
      : model_(model), path_(folder + "/" + kConfigFile), file_(folder + "/" + kTensorsFile) {
    JsonProblem problem;
    config_ = parse_json(read_file(path_), problem);
    ABT_CHECK(
        config_.is_object(), DamagedData, "{}: expected a JSON object: {}", path_, problem.what);
    expect("peft_type", "LORA");
    expect("bias", "none");
    expect("use_dora", false);
    const auto init = config_.find("init_lora_weights");
    const std::vector<ordered_json> plain = {true, false, "gaussian", "eva", "orthogonal"};
    ABT_CHECK(
        init == config_.end() || std::ranges::count(plain, *init) > 0, Config,
        "model.adapter: {}: init_lora_weights: {} changes the base as well; expected an adapter "
        "that "
        "PEFT has converted to LoRA (save_pretrained with "
        "path_initial_model_for_weight_conversion)",
        path_, shown(*init));
  }

  void load() {
    for (const nn::NamedWeight& w : model_.weights()) {
      if (const std::string layer = name_in_file(w.layer + ".lora_A.weight"); !layer.empty()) {
        load_factors(w);
      } else if (const std::string name = name_in_file(w.name); !name.empty()) {
        const StoredWeight form{*w.weight, false, model_.file_form().is_transposed(w.name)};
        const at::Tensor dense = form.from_file(read(name, form.sizes()));
        w.weight->set_dense(
            w.weight->is_conv() ? dense.contiguous(at::MemoryFormat::ChannelsLast) : dense);
      }
    }
    const auto load = [&](const std::string& own, at::Tensor& tensor) {
      if (const std::string name = name_in_file(own); !name.empty()) {
        tensor = read(name, tensor.sizes().vec());
      }
    };
    for (const nn::NamedParameter& p : model_.parameters()) {
      load(p.name, *p.tensor);
    }
    for (const nn::NamedBuffer& b : model_.buffers()) {
      load(b.name, *b.tensor);
    }
    for (const auto& [copy, of] : model_.file_form().copies) {
      const std::string own = name_in_file(of), other = name_in_file(copy);
      ABT_CHECK(
          own.empty() == other.empty() &&
              (own.empty() || file_.holds(other, file_.read(own, file_.shape(own)))),
          Config,
          "model.adapter: {} has other values of '{}' than of '{}', which are one tensor in the "
          "model; expected an adapter that was trained with tied weights",
          file_.path(), of, copy);
      known_.insert(other);
    }
    for (const std::string& name : file_.names()) {
      ABT_CHECK(
          known_.contains(name) || name.ends_with(".num_batches_tracked"), Config,
          "model.adapter: {} has the tensor '{}', but the model has no such layer; the layers are "
          "{}",
          file_.path(), name, nn::layer_list(model_));
    }
  }

 private:
  template <class T>
  void expect(const char* key, const T& wanted) const {
    const auto found = config_.find(key);
    ABT_CHECK(
        found == config_.end() || *found == wanted, Config,
        "model.adapter: {}: {}: expected {}, got {}", path_, key, shown(ordered_json(wanted)),
        shown(*found));
  }
  std::string name_in_file(const std::string& own) const {
    for (const std::string& name : {kPrefix + own, kPrefix + model_.file_form().prefix + own}) {
      if (file_.has(name)) {
        return name;
      }
    }
    return {};
  }
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& sizes) {
    known_.insert(name);
    return file_.read(name, sizes);
  }
  void load_factors(const nn::NamedWeight& named) {
    nn::Weight& w = *named.weight;
    const std::string first = name_in_file(named.layer + ".lora_A.weight");
    const std::string second = name_in_file(named.layer + ".lora_B.weight");
    ABT_CHECK(
        !second.empty(), DamagedData, "model.adapter: {} has '{}', but not its lora_B.weight",
        file_.path(), first);
    const std::vector<std::int64_t> shape = file_.shape(first);
    const std::int64_t rank = shape.empty() ? 0 : shape[0];
    ABT_CHECK(
        rank >= 1 && rank <= w.largest_rank(), DamagedData,
        "model.adapter: {}: '{}' has the rank {}; expected 1 to {}", file_.path(), first, rank,
        w.largest_rank());
    w.set_adapts(true);
    w.rest = w.dense;
    w.scale = scale_of(named.layer, rank);
    w.set_dense({});
    std::vector<std::int64_t> sizes = {w.out_features(), rank};
    if (w.is_conv()) {
      sizes.insert(sizes.end(), {1, 1});
    }
    w.inner = read(first, w.stored_sizes(nn::Factor::A, rank));
    if (w.is_conv()) {
      w.inner = w.inner.contiguous(at::MemoryFormat::ChannelsLast);
    }
    w.outer = read(second, sizes).reshape({w.out_features(), rank});
  }
  // Whether one of PEFT's patterns, a regular expression for the end of a layer's name, matches.
  bool means(const std::string& pattern, const std::string& layer) const {
    try {
      const std::regex expression("(.*\\.)?(" + pattern + ")");
      return std::regex_match(layer, expression) ||
             std::regex_match(model_.file_form().prefix + layer, expression);
    } catch (const std::regex_error&) {
      throw Error(
          ErrorKind::DamagedData,
          formatted("model.adapter: {}: '{}' is not a regular expression", path_, shown(pattern)));
    }
  }
  double scale_of(const std::string& layer, std::int64_t rank) const {
    double alpha = value_in<double>(config_, "lora_alpha");
    const ordered_json patterns = value_in<ordered_json>(config_, "alpha_pattern");
    for (const auto& [pattern, value] : patterns.items()) {
      if (means(pattern, layer)) {  // the first match counts
        read_json(value, alpha);
        break;
      }
    }
    ABT_CHECK(
        alpha > 0, DamagedData, "model.adapter: {}: lora_alpha: expected a number above 0", path_);
    const auto r = static_cast<double>(rank);
    return alpha / (value_in<bool>(config_, "use_rslora") ? std::sqrt(r) : r);
  }

  nn::Model& model_;
  const std::string path_;  // of the configuration
  state::SafetensorsFile file_;
  ordered_json config_;
  std::set<std::string> known_;  // tensors that were read
};

}  // namespace

void check_adapter_output(const std::string& folder, bool force) {
  std::error_code ignored;
  ABT_CHECK(
      !is_standard_output(folder), Usage,
      "-o: an adapter is a folder, which standard output cannot hold; name one");
  ABT_CHECK(
      !fs::exists(folder, ignored) || fs::is_directory(folder, ignored), Usage,
      "-o: '{}' is a file, but an adapter is a folder", folder);
  ABT_CHECK(
      force || !fs::exists(folder, ignored) || fs::is_empty(folder, ignored) ||
          fs::exists(fs::path(folder) / kConfigFile, ignored),
      Usage,
      "-o: the folder '{}' holds something other than an adapter; --force writes there anyway",
      folder);
}

std::uint64_t save_adapter(
    const std::string& folder, const nn::Model& model, const std::string& base) {
  ABT_CHECK(
      nn::is_adapted(model), Config,
      "the run has no adapter: its weights are not factors beside a frozen remainder "
      "(method.remainder: freeze); expected --form factored or merged");
  return AdapterWriter(model).write(folder, base);
}

std::uint64_t hash_of_adapter(const std::string& folder) {
  std::string hashes;
  for (const char* file : {kConfigFile, kTensorsFile}) {
    hashes += hash_text(hash_of(InputFile(folder + "/" + file)));
  }
  return hash_of_text(hashes);
}

void load_adapter(const std::string& folder, nn::Model& model) {
  const at::NoGradGuard no_grad;
  AdapterReader(folder, model).load();
}

}  // namespace abtrain::weights
