#include "data/arrays/array_file.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "data/mapped_file.h"
#include "state/safetensors.h"

namespace abtrain::data {
namespace {

// Converts numpy's name of a dtype to safetensors' name: "<f4" to F32. Empty for big-endian numbers
// and non-numbers.
std::string dtype_of(std::string_view numpy) {
  const std::size_t kind = numpy.size() == 3 ? std::string_view("fiu").find(numpy[1]) : 3;
  if (kind > 2 || (numpy[0] != '<' && numpy[0] != '|')) {
    return numpy == "|b1" ? "BOOL" : "";
  }
  return formatted("{}{}", "FIU"[kind], 8 * (numpy[2] - '0'));
}

// `shown`: the file's name for the dtype, for the message.
at::ScalarType type_of(const std::string& path, std::string_view dtype, std::string_view shown) {
  const auto type = state::type_of(dtype);
  ABT_CHECK(
      type, DamagedData,
      "{}: expected integers of 8 to 64 bits or floating-point numbers of 16 to 64, found dtype "
      "'{}'{}",
      path, printable(shown),
      shown == "<u8" || dtype == "U64"       ? ", without a sign; save x.astype('int64')"
      : shown.starts_with('>')               ? ": big-endian numbers; save x.astype('<' + ...)"
      : shown.find('O') != std::string::npos ? ": Python objects; make them an array of numbers"
                                             : "");
  return *type;
}

at::Tensor array_of(
    const at::Tensor& file, std::uint64_t begin, std::uint64_t end, at::IntArrayRef sizes,
    at::ScalarType type) {
  const at::Tensor bytes =
      file.slice(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  // Writers need not align the data, but arithmetic on unaligned addresses is undefined.
  const bool aligned = begin % c10::elementSize(type) == 0;
  return (aligned ? bytes : bytes.clone()).view(type).view(sizes);
}

// Parses a header, which is a Python dictionary. Returns no JSON object if it is malformed.
nlohmann::ordered_json parse_dictionary(std::string text) {
  constexpr std::pair<const char*, const char*> kAsJson[] = {
      {"'", "\""}, {"(", "["},         {")", "]"},      {",]", "]"},
      {",}", "}"}, {"False", "false"}, {"True", "true"}};
  std::erase(text, ' ');
  for (const auto& [python, json] : kAsJson) {
    text = replaced(text, python, json);
  }
  JsonProblem problem;
  return parse_json(text, problem);
}

at::Tensor map_npy(const std::string& path) {
  const at::Tensor file = mapped_file(path);
  const std::span bytes(file.const_data_ptr<std::uint8_t>(), file.nbytes());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr std::size_t kShortHeader = 10;  // magic, version, length of 2 bytes
  constexpr std::size_t kLongHeader = 12;   // length of 4 bytes
  ABT_CHECK(
      text.starts_with(kMagic) && bytes.size() >= kLongHeader, DamagedData,
      "{}: expected a file of numpy.save, found {}", path,
      text.starts_with(kMagic) ? "only its first bytes" : "no such header");
  const int version = bytes[kMagic.size()];
  ABT_CHECK(
      version >= 1 && version <= 3, DamagedData,
      "{}: expected format 1.0 to 3.0 of numpy.save, found {}.{}", path, version,
      bytes[kMagic.size() + 1]);
  std::size_t length = bytes[8] + 256U * bytes[9];
  std::size_t begin = kShortHeader;
  if (version > 1) {
    length += (std::size_t{bytes[10]} << 16) + (std::size_t{bytes[11]} << 24);
    begin = kLongHeader;
  }
  ABT_CHECK(
      length <= bytes.size() - begin, DamagedData,
      "{}: its header should have {} bytes, but only {} follow", path, with_commas(length),
      with_commas(bytes.size() - begin));
  const std::string header(text.substr(begin, length));
  begin += length;

  const nlohmann::ordered_json entries = parse_dictionary(header);
  bool is_fortran = false;
  std::vector<std::int64_t> sizes;
  std::string name;
  constexpr std::size_t kMaxDimensions = 32;  // as in numpy
  ABT_CHECK(
      entries.contains("descr") && read_json(entries, "fortran_order", is_fortran) &&
          read_json(entries, "shape", sizes) && sizes.size() <= kMaxDimensions &&
          std::ranges::none_of(sizes, [](std::int64_t size) { return size < 0; }),
      DamagedData, "{}: expected a header with descr, fortran_order and shape, found {}", path,
      printable(header.substr(0, 100)));
  ABT_CHECK(
      read_json(entries, "descr", name), DamagedData,
      "{}: expected an array of numbers, found one of records", path);
  const at::ScalarType type = type_of(path, dtype_of(name), name);
  const bool is_matrix =
      std::ranges::count_if(sizes, [](std::int64_t size) { return size > 1; }) > 1;
  ABT_CHECK(
      !is_fortran || !is_matrix, DamagedData,
      "{}: expected C order, found Fortran order; save numpy.ascontiguousarray(x)", path);
  auto wanted = static_cast<double>(c10::elementSize(type));
  for (const std::int64_t size : sizes) {
    wanted *= static_cast<double>(size);
  }
  // Exact below 2^53 bytes; no file is larger.
  ABT_CHECK(
      wanted == static_cast<double>(bytes.size() - begin), DamagedData,
      "{}: an array of {} {} takes {:.0f} bytes, but {} follow the header", path,
      state::shape_text(sizes), c10::toString(type), wanted, with_commas(bytes.size() - begin));
  return array_of(file, begin, bytes.size(), sizes, type);
}

at::Tensor map_safetensors(const std::string& path, const std::string& name, const char* expected) {
  const state::SafetensorsFile header(path);
  const at::Tensor file = mapped_file(path);
  const auto stored = std::ranges::find(header.tensors(), name, &state::StoredTensor::name);
  ABT_CHECK(
      stored != header.tensors().end(), DamagedData, "{}: expected {}, found {}", path, expected,
      header.tensors().empty() ? "none" : printable(join(header.names(), ", ")));
  const at::ScalarType type = type_of(path, stored->dtype, stored->dtype);
  const std::uint64_t begin = header.data_begin();
  ABT_CHECK(
      begin + stored->end <= file.nbytes(), DamagedData,
      "{}: it has become shorter since its header was read", path);
  return array_of(file, begin + stored->begin, begin + stored->end, stored->sizes, type);
}

}  // namespace

at::Tensor map_array(const std::string& path, const std::string& name, const char* expected) {
  return path.ends_with(".npy") ? map_npy(path) : map_safetensors(path, name, expected);
}

std::vector<std::string> class_names_in(const std::string& path) {
  const std::string text = state::SafetensorsFile(path).metadata("classes");
  JsonProblem problem;
  std::vector<std::string> names;
  ABT_CHECK(
      text.empty() || read_json(parse_json(text, problem), names), DamagedData,
      "{}: expected the metadata 'classes' to be a JSON list of names", path);
  return names;
}

}  // namespace abtrain::data
