#include "run/safetensors.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace abtrain::run {

namespace {

using nlohmann::ordered_json;

struct Dtype {
  const char* name;
  at::ScalarType type;
};

constexpr std::array<Dtype, 4> kDtypes = {
    {{"F32", at::kFloat},
     {"F64", at::kDouble},
     {"F16", at::kHalf},
     {"BF16", at::kBFloat16}}};

constexpr Dtype kInteger = {"I32", at::kInt};

std::string_view bytes_of(const at::Tensor& tensor) {
  return {
      static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

bool is_integer(const at::Tensor& tensor) {
  return tensor.scalar_type() == kInteger.type;
}

}  // namespace

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(std::to_string(size));
  }
  return join(parts, ",");
}

void write_safetensors(
    const std::string& path,
    const std::vector<NamedTensor>& tensors,
    const std::map<std::string, std::string>& metadata,
    const std::function<void(std::string_view)>& watch) {
  ordered_json header = {{"__metadata__", metadata}};
  std::uint64_t begin = 0;
  for (const NamedTensor& entry : tensors) {
    const auto bytes = static_cast<std::uint64_t>(entry.tensor.numel()) * 4;
    header[entry.name] = {
        {"dtype", is_integer(entry.tensor) ? kInteger.name : "F32"},
        {"shape", entry.tensor.sizes().vec()},
        {"data_offsets", {begin, begin + bytes}}};
    begin += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors begin aligned
  const std::uint64_t length = text.size();
  std::string length_bytes(8, '\0');
  std::memcpy(length_bytes.data(), &length, 8);
  atomic_write(path, [&](const WritePiece& to_file) {
    const auto write = [&](std::string_view piece) {
      to_file(piece);
      if (watch) {
        watch(piece);
      }
    };
    write(length_bytes);
    write(text);
    for (const NamedTensor& entry : tensors) {
      const at::ScalarType type =
          is_integer(entry.tensor) ? kInteger.type : at::kFloat;
      write(bytes_of(entry.tensor.detach().to(at::kCPU, type).contiguous()));
    }
  });
}

struct SafetensorsFile::State {
  std::string path;
  std::string content;
  std::size_t begin = 0;  // of the tensors
  ordered_json header;

  void check(bool ok, const std::string& what) const {
    ABT_CHECK(ok, DamagedData, path, ": damaged model file: ", what);
  }
  void check_fit(bool ok, const std::string& what) const {
    ABT_CHECK(ok, DamagedData, path, " does not fit the model: ", what);
  }
};

SafetensorsFile::SafetensorsFile(const std::string& path)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  s.content = read_file(path);
  std::uint64_t length = 0;
  s.check(s.content.size() >= 8, "it is shorter than its 8-byte header length");
  std::memcpy(&length, s.content.data(), 8);
  // What torch.save writes, a zip archive, formerly a bare pickle, has no such
  // length; a header's length may begin with the same bytes.
  ABT_CHECK(
      length <= s.content.size() - 8 ||
          !(s.content.starts_with("PK") || s.content.starts_with("\x80")),
      DamagedData,
      path,
      ": expected a safetensors file, but this is one of torch.save; convert it "
      "in Python with safetensors.torch.save_file(state_dict, ...)");
  s.check(
      length <= s.content.size() - 8,
      str("its header should have ",
          length,
          " bytes, but only ",
          s.content.size() - 8,
          " follow"));
  s.begin = 8 + length;
  s.header = ordered_json::parse(
      s.content.begin() + 8,
      s.content.begin() + static_cast<std::ptrdiff_t>(s.begin),
      nullptr,
      /*allow_exceptions=*/false);
  s.check(s.header.is_object(), "its header is not a JSON object");
}

SafetensorsFile::~SafetensorsFile() = default;

bool SafetensorsFile::has(const std::string& name) const {
  return state_->header.contains(name);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : state_->header.items()) {
    if (name != "__metadata__") {
      result.push_back(name);
    }
  }
  return result;
}

at::Tensor SafetensorsFile::read(
    const std::string& name, const std::vector<std::int64_t>& sizes) const {
  return load(name, sizes, false).to(at::kFloat);
}

at::Tensor SafetensorsFile::read_integers(
    const std::string& name, const std::vector<std::int64_t>& sizes) const {
  return load(name, sizes, true);
}

at::Tensor SafetensorsFile::load(
    const std::string& name,
    const std::vector<std::int64_t>& sizes,
    bool integers) const {
  const State& s = *state_;
  s.check_fit(has(name), str("tensor '", name, "' is missing"));
  const ordered_json& entry = s.header[name];
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
    s.check(false, str("the header entry of '", name, "' is malformed"));
  }
  const Dtype* type = std::find_if(
      kDtypes.begin(), kDtypes.end(), [&](const Dtype& known) {
        return dtype == known.name;
      });
  if (integers) {
    s.check(
        dtype == kInteger.name,
        str("tensor '", name, "' is ", dtype, ", not ", kInteger.name));
    type = &kInteger;
  }
  s.check(
      type != kDtypes.end(),
      str("tensor '", name, "' is ", dtype, ", not F32, F64, F16 or BF16"));
  s.check_fit(
      shape == sizes,
      str("tensor '",
          name,
          "' has shape ",
          shape_text(shape),
          ", expected ",
          shape_text(sizes)));
  // Before any memory is taken: a damaged header may claim anything.
  double bytes = static_cast<double>(c10::elementSize(type->type));
  for (const std::int64_t size : sizes) {
    bytes *= static_cast<double>(size);
  }
  s.check(
      begin <= end && end <= s.content.size() - s.begin &&
          static_cast<double>(end - begin) == bytes,
      str("tensor '",
          name,
          "' should lie at bytes ",
          begin,
          " .. ",
          end,
          " of ",
          s.content.size() - s.begin));
  const at::Tensor tensor = at::empty(sizes, type->type);
  std::memcpy(
      tensor.data_ptr(), s.content.data() + s.begin + begin, tensor.nbytes());
  return tensor;
}

std::vector<std::int64_t> SafetensorsFile::shape(
    const std::string& name) const {
  try {
    return state_->header.at(name).at("shape").get<std::vector<std::int64_t>>();
  } catch (const nlohmann::json::exception&) {
    state_->check(false, str("the header entry of '", name, "' is malformed"));
  }
  return {};
}

std::string SafetensorsFile::metadata(const std::string& key) const {
  const auto all = state_->header.find("__metadata__");
  if (all == state_->header.end() || !all->is_object() ||
      !all->contains(key) || !(*all)[key].is_string()) {
    return {};
  }
  return (*all)[key].get<std::string>();
}

std::int64_t SafetensorsFile::columns(const std::string& name) const {
  const ordered_json& entry = state_->header[name];
  state_->check(
      entry.is_object() && entry.contains("shape") &&
          entry["shape"].is_array() && entry["shape"].size() == 2 &&
          entry["shape"][1].is_number_integer() && entry["shape"][1] > 0,
      str("tensor '", name, "' is not a matrix"));
  return entry["shape"][1].get<std::int64_t>();
}

}  // namespace abtrain::run
