// A user's own model, as written by torch.export.save(): `model.name: exported`.
//
// The graph runs operator by operator through PyTorch's dispatcher, which records the gradients. A
// parameter that is only used as the weight of linear maps and convolutions becomes a Weight: it
// may be factored, and its products are computed as in our own layers (nn/linear.h).
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <deque>
#include <map>
#include <new>
#include <ranges>
#include <set>
#include <stdexcept>

#include "base/error.h"
#include "base/mapped.h"
#include "device/devices.h"
#include "device/memory.h"
#include "nn/exported/archive.h"
#include "nn/exported/evaluation_mode.h"
#include "nn/exported/flow.h"
#include "nn/exported/product.h"
#include "nn/exported/shape_check.h"
#include "nn/families.h"

namespace abtrain::nn {

namespace {

class Exported : public Layer {
 public:
  // `sizes`: the sizes of an example; empty if batches already have the shape that the graph takes.
  Exported(const std::string& path, std::vector<std::int64_t> sizes)
      : path_(path), sizes_(std::move(sizes)) {
    form_.library = kExportedLibrary;
    const ExportArchive archive(path);
    try {
      graph_ = read_graph(archive);
      for (const GraphNode& node : graph_.nodes) {
        steps_.push_back({node, weight_use(node)});
      }
      as_laid_out_ = depends_on_layout(graph_.nodes);
      make_tensors(archive);
      make_steps();
    } catch (const c10::Error& error) {
      if (device::is_out_of_memory(error)) {
        throw;
      }
      archive.damaged(first_line(error));
    } catch (const std::out_of_range&) {
      archive.damaged("an operator has other arguments than expected");
    }
  }

  at::Tensor forward(const at::Tensor& given, const Pass& pass) override {
    std::vector<std::int64_t> sizes = {given.size(0)};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    at::Tensor input = sizes_.empty() || given.sizes() == sizes ? given : given.reshape(sizes);
    if (as_laid_out_) {
      input = laid_out(input, graph_.input_meta);
    }
    const GraphSizes found(input.sizes().begin(), input.sizes().end());
    ABT_CHECK(
        fits(graph_.input_meta.sizes, found), Config, "model.file: {} takes inputs of {}, got {}",
        path_, shown(graph_.input_meta.sizes), shown(found));
    const c10::impl::ForceDispatchKeyGuard restores_autocast;
    if (pass.precision.type != at::kFloat) {
      // On the CPU, everything except the weights' products is computed in fp32, as in our own
      // models. The bf16 result of a convolution is cast where it meets fp32 in a matrix product.
      const at::DeviceType device = input.device().type();
      at::autocast::set_autocast_enabled(device, true);
      at::autocast::set_autocast_dtype(device, input.is_cuda() ? pass.precision.type : at::kFloat);
      at::autocast::set_autocast_cache_enabled(false);
    }
    std::vector<c10::IValue> values(static_cast<std::size_t>(graph_.values));
    values[static_cast<std::size_t>(graph_.input)] = input;
    for (Own& own : own_) {
      if (!own.weight) {
        if (own.tensor.device() != input.device()) {  // a constant
          own.tensor = own.tensor.to(input.device());
        }
        const bool casts = own.type && own.tensor.scalar_type() != *own.type;
        values[static_cast<std::size_t>(own.value)] = casts ? own.tensor.to(*own.type) : own.tensor;
      }
    }
    Pass exact = pass;
    exact.precision = {};
    if (device_ != input.device()) {
      device_ = input.device();
      memory_ = static_cast<double>(device::info_of(*device_).memory_bytes);
    }
    const Frame frame{values, pass, input.device(), memory_};
    const Frame exact_frame{values, exact, input.device(), memory_};
    for (const Placed& placed : steps_) {
      try {
        const at::AutoGradMode grad_mode(
            at::GradMode::is_enabled() && placed.node.modes.records_gradients);
        if (placed.node.modes.autocasts) {
          placed.step(frame);
        } else {
          const c10::impl::ExcludeDispatchKeyGuard no_autocast(kAutocast);
          placed.step(exact_frame);
        }
        if (as_laid_out_ && placed.node.target.find("conv") != std::string::npos) {
          // Here weights are channels-last, and so are results.
          for (const ValueId id : placed.node.outputs) {
            const auto declared = graph_.results.find(id);
            frame.store(
                id, laid_out(
                        values.at(static_cast<std::size_t>(id)).toTensor(),
                        declared == graph_.results.end() ? GraphMeta() : declared->second));
          }
        }
        check_memory(
            graph_, placed.node, values, input.size(0), input.dim() > 1 ? input.size(1) : 0);
      } catch (const c10::Error& error) {
        if (device::is_out_of_memory(error)) {
          throw;
        }
        fail(placed.node, first_line(error));
      } catch (const Error&) {
        throw;
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::out_of_range&) {
        fail(placed.node, "it has other arguments or results than expected");
      } catch (const std::exception& error) {  // such as a number too large for its type
        fail(placed.node, error.what());
      }
      for (const ValueId id : placed.releases) {
        values[static_cast<std::size_t>(id)] = {};
      }
    }
    return checked(values[static_cast<std::size_t>(graph_.output)], input);
  }

  // Makes forward() require a result of these sizes, which check_shape() has derived from the data
  // set; nullopt stands for the batch size.
  void expect_result(GraphSizes sizes) {
    result_sizes_ = std::move(sizes);
  }

  void list(const std::string& prefix, NamedTensors& tensors) override {
    for (Own& own : own_) {
      if (own.weight) {
        tensors.weight(prefix + own.name, *own.weight, {});
      } else if (own.kind == GraphTensor::Kind::Parameter) {
        tensors.parameter(prefix + own.name, own.tensor, own.decays, {});
      } else if (own.kind == GraphTensor::Kind::Buffer) {
        tensors.buffer(prefix + own.name, own.tensor, own.is_fixed);
      }
    }
  }

  const ExportedGraph& graph() const {
    return graph_;
  }
  // The layers that stay dense by default: the first convolutions, and the last linear maps or
  // convolutions.
  std::vector<std::string> keep_dense() const {
    std::set<ValueId> dense;
    std::set<ValueId> raw = {graph_.input};  // computed from the input without a product
    for (const auto& [node, use, step, releases] : steps_) {
      if (use && raw.contains(use->input)) {
        if (use->convolves) {
          dense.insert(use->weight);
        }
      } else if (std::ranges::any_of(node.inputs(), [&](ValueId id) { return raw.contains(id); })) {
        raw.insert(node.outputs.begin(), node.outputs.end());
      }
    }
    std::set<ValueId> last = {graph_.output};  // lead to the output without a product
    for (const auto& [node, use, step, releases] : std::views::reverse(steps_)) {
      if (std::ranges::none_of(node.outputs, [&](ValueId id) { return last.contains(id); })) {
        continue;
      }
      if (use) {
        dense.insert(use->weight);
      } else {
        const std::vector<ValueId> inputs = node.inputs();
        last.insert(inputs.begin(), inputs.end());
      }
    }
    std::vector<std::string> names;
    for (const Own& own : own_) {
      if (own.weight && dense.contains(own.value)) {
        names.push_back(own.name);
      }
    }
    return names;
  }
  const FileForm& file_form() const {
    return form_;
  }

 private:
  struct Own {
    std::string name;
    GraphTensor::Kind kind;
    ValueId value;
    std::optional<Weight> weight = {};
    at::Tensor tensor = {};  // undefined for a weight
    std::optional<at::ScalarType> type = {};  // in which the graph takes it; nullopt: the tensor's
    bool decays = false;
    bool is_fixed = false;  // a buffer that only frozen norms use
    bool is_trained() const {
      return weight || kind == GraphTensor::Kind::Parameter;
    }
  };
  struct Placed {
    const GraphNode& node;
    std::optional<WeightUse> use;
    Step step = {};
    std::vector<ValueId> releases = {};  // values that nothing reads after this step
  };

  // The tensor in the memory format that the file declares: channels-last or contiguous.
  static at::Tensor laid_out(const at::Tensor& tensor, const GraphMeta& declared) {
    const bool is_last = declared.channels_last;
    return tensor.contiguous(
        is_last && tensor.dim() == 4   ? at::MemoryFormat::ChannelsLast
        : is_last && tensor.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                       : at::MemoryFormat::Contiguous);
  }

  // Checks the actual result, because the shape that the file declares, output_meta, may be wrong.
  at::Tensor checked(const c10::IValue& value, const at::Tensor& input) const {
    const at::Tensor result = value.isTensor() ? value.toTensor() : at::Tensor();
    GraphSizes wanted = result_sizes_;
    if (!wanted.empty()) {
      wanted[0] = input.size(0);
    }
    if (wanted.size() == 3) {  // one label per token; inputs may have fewer tokens
      wanted[1] = input.size(1);
    }
    const bool is_dense = result.defined() && result.layout() == at::kStrided;
    const GraphSizes found =
        is_dense ? GraphSizes(result.sizes().begin(), result.sizes().end()) : GraphSizes();
    ABT_CHECK(
        is_dense && result.is_floating_point() && result.device() == input.device() &&
            (wanted.empty() || found == wanted),
        Config, "model.file: {}: the model returns {}; expected floating-point numbers of {}",
        path_,
        is_dense ? formatted("{} of {}", c10::toString(result.scalar_type()), shown(found))
                 : "no dense tensor",
        shown(wanted));
    ABT_CHECK(
        result.requires_grad() || !at::GradMode::is_enabled(), Config,
        "model.file: {}: what the model returns does not depend on any trained parameter", path_);
    return result;
  }

  // Maps each value that nodes read to its use as a weight; nullopt if its uses differ or one is
  // not as a weight.
  std::map<ValueId, std::optional<WeightUse>> weight_forms() const {
    std::map<ValueId, std::optional<WeightUse>> forms;
    for (const Placed& placed : steps_) {
      const std::optional<WeightUse>& use = placed.use;
      for (const ValueId id : placed.node.inputs()) {
        if (!use || id != use->weight) {
          forms[id] = std::nullopt;
        } else if (const auto [place, is_new] = forms.emplace(id, use);
                   !is_new && (!place->second || !place->second->same_form(*use))) {
          place->second = std::nullopt;
        }
      }
    }
    return forms;
  }

  std::optional<Weight> weight_of(
      const WeightUse& use, const std::string& name, std::vector<std::int64_t> sizes) {
    if (sizes.size() != (use.convolves ? 4 : 2) || std::ranges::min(sizes) < 1) {
      return std::nullopt;
    }
    if (use.transposed) {
      std::ranges::reverse(sizes);
      form_.transposed.push_back(name);
    }
    return Weight(sizes, use.window.groups > 1);
  }

  void make_tensors(const ExportArchive& archive) {
    std::set<ValueId> read;        // by any node
    std::set<ValueId> multiplied;  // by nodes that multiply matrices
    std::set<ValueId> embedded;    // tables of embeddings
    std::set<ValueId> statistics;
    std::set<ValueId> updated;  // those of norms that are not frozen
    for (const GraphNode& node : graph_.nodes) {
      const std::vector<ValueId> inputs = node.inputs();
      read.insert(inputs.begin(), inputs.end());
      if (node.target == "aten::embedding") {
        embedded.insert(inputs.begin(), inputs.end());
      }
      for (const char* product :
           {"mm", "matmul", "linear", "conv", "lstm", "gru", "rnn", "einsum"}) {
        if (node.target.find(product) != std::string::npos) {
          multiplied.insert(inputs.begin(), inputs.end());
        }
      }
      for (const char* name : {"running_mean", "running_var"}) {
        const GraphArgument* const argument = node.find(name);
        if (argument != nullptr && argument->value()) {
          statistics.insert(*argument->value());
          if (norm_trains(node) == true) {
            updated.insert(*argument->value());
          }
        }
      }
    }
    const std::map<ValueId, std::optional<WeightUse>> forms = weight_forms();
    const std::set<ValueId> trained = values_with_gradients(graph_);
    const auto is_trained = [&](const GraphTensor& tensor) {
      return tensor.kind == GraphTensor::Kind::Parameter && archive.entry(tensor.name()).trained &&
             trained.contains(tensor.value);
    };
    // Trained parameters are fp32, even if the file has them in 16 bits. Where it has, all else
    // becomes fp32 with them; otherwise it keeps its type, as in PyTorch.
    std::set<at::ScalarType> widened;
    for (const GraphTensor& tensor : graph_.tensors) {
      const at::ScalarType type = archive.entry(tensor.name()).type;
      if (is_trained(tensor) && type != at::kDouble) {
        widened.insert(type);
      }
    }
    const auto values_of = [&](const GraphTensor& tensor) {
      return widened.contains(archive.entry(tensor.name()).type) ? archive.read(tensor.name())
                                                                 : archive.stored(tensor.name());
    };
    for (const GraphTensor& tensor : graph_.tensors) {
      const auto& entry = archive.entry(tensor.name());
      for (std::size_t i = 1; i < tensor.names.size(); ++i) {
        form_.copies.emplace_back(tensor.names[i], tensor.name());
      }
      // num_batches_tracked of batch norm is not read, and load_state_dict() fills it in.
      if (tensor.kind == GraphTensor::Kind::Buffer && tensor.persistent &&
          !statistics.contains(tensor.value) && !tensor.name().ends_with("num_batches_tracked")) {
        form_.constants.push_back(
            {tensor.name(), archive.read(tensor.name()), /*is_frozen=*/false,
             read.contains(tensor.value)});
      }
      Own own{tensor.name(), tensor.kind, tensor.value};
      if (tensor.kind == GraphTensor::Kind::Parameter && !is_trained(tensor)) {
        own.kind = GraphTensor::Kind::Constant;
        own.tensor = values_of(tensor);
        form_.constants.push_back({tensor.name(), own.tensor, /*is_frozen=*/true});
      } else if (tensor.kind == GraphTensor::Kind::Parameter) {
        const auto form = forms.find(tensor.value);
        if (form != forms.end() && form->second) {
          own.weight = weight_of(*form->second, tensor.name(), entry.sizes);
        }
        ABT_CHECK(
            own.weight || c10::isFloatingType(entry.type), Config,
            "model.file: {}: parameter '{}' does not hold floating-point numbers", path_,
            tensor.name());
        own.tensor = own.weight ? at::Tensor() : at::zeros(entry.sizes);
        if (!own.weight && entry.type == at::kDouble) {
          own.type = at::kDouble;
        }
        own.decays = entry.sizes.size() > 1 && multiplied.contains(tensor.value) &&
                     !embedded.contains(tensor.value);
      } else if (read.contains(tensor.value)) {
        const bool is_statistic = statistics.contains(tensor.value);
        own.tensor = is_statistic ? archive.read(tensor.name()) : values_of(tensor);
        own.kind = is_statistic ? GraphTensor::Kind::Buffer : GraphTensor::Kind::Constant;
        own.is_fixed = !updated.contains(tensor.value);
      } else {
        continue;
      }
      own_.push_back(std::move(own));
    }
    ABT_CHECK(
        std::ranges::any_of(own_, &Own::is_trained), Config,
        "model.file: {}: none of the model's parameters is trained: all have "
        "requires_grad=False, or the result does not depend on them",
        path_);
  }

  void make_steps() {
    std::map<ValueId, std::size_t> last_use;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      auto& [node, use, step, releases] = steps_[i];
      const auto own = std::ranges::find_if(own_, [&use = use](const Own& each) {
        return each.weight && use && each.value == use->weight;
      });
      if (own != own_.end()) {
        step = make_product(*own->weight, *use, node.outputs[0]);
      } else {
        step = make_step(node, as_laid_out_, path_);
      }
      for (const ValueId id : node.inputs()) {
        last_use[id] = i;
      }
      for (const ValueId id : node.outputs) {
        last_use.emplace(id, i);
      }
    }
    for (const auto& [id, i] : last_use) {
      if (id >= 0 && id != graph_.output) {
        steps_[i].releases.push_back(id);
      }
    }
  }

  [[noreturn]] void fail(const GraphNode& node, const std::string& why) const {
    throw Error(
        ErrorKind::Config,
        formatted("model.file: {}: operator {}{} failed: {}", path_, node.target, node.where, why));
  }

  std::string path_;
  std::vector<std::int64_t> sizes_;
  ExportedGraph graph_;
  bool as_laid_out_ = false;  // tensors must lie in memory as in PyTorch
  GraphSizes result_sizes_;
  std::optional<at::Device> device_;  // device of the last pass
  double memory_ = 0;                 // that device's memory in bytes
  std::deque<Own> own_;               // in the order of the state dict; addresses stay valid
  FileForm form_;
  std::vector<Placed> steps_;
};

}  // namespace

Architecture exported(const ModelOptions& options, const data::ExampleShape& shape, const Sizes&) {
  ABT_CHECK(
      options.file, Config,
      "model.file: expected the .pt2 file of the model, as abtrain.save_model() writes it");
  const bool is_text = shape.context > 0;  // texts may have fewer tokens than the data set's rows
  auto layers = std::make_unique<Exported>(
      *options.file, is_text ? std::vector<std::int64_t>() : shape.sizes);
  layers->expect_result(check_shape(*options.file, layers->graph(), shape));
  const std::vector<std::string> keep_dense = layers->keep_dense();
  const FileForm form = layers->file_form();
  const std::string untrainable = options.eval_mode ? "" : why_untrainable(layers->graph());
  const ExportedGraph& graph = layers->graph();
  return {
      std::move(layers),
      keep_dense,
      nullptr,
      form,
      untrainable.empty() ? "" : formatted("model.file: {}: {}", *options.file, untrainable),
      [archive = std::shared_ptr<ExportArchive>(),
       path = *options.file](const std::string& name) mutable {
        if (archive == nullptr) {
          archive = std::make_shared<ExportArchive>(path);
        }
        return archive->read(name);
      },
      [&graph, length = shape.context](std::int64_t examples) {
        return largest_result(graph, examples, length);
      }};
}

}  // namespace abtrain::nn
