#include "nn/exported/archive.h"

#include <ATen/ops/empty.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped.h"
#include "device/memory.h"

namespace abtrain::nn {

namespace {

using nlohmann::ordered_json;

constexpr at::ScalarType kNone = at::ScalarType::Undefined;
// Indexed by the schema's type numbers.
constexpr at::ScalarType kTypes[] = {
    kNone,     at::kByte,    at::kChar,   at::kShort, at::kInt,          at::kLong,
    at::kHalf, at::kFloat,   at::kDouble, kNone,      at::kComplexFloat, at::kComplexDouble,
    at::kBool, at::kBFloat16};
constexpr std::int64_t kFirstComplex = 9, kLastComplex = 11;

// Limit for the total size of all tensors, as a multiple of the file's size: tensors may share
// bytes, but honest files share few.
constexpr double kMaxCopies = 16;

std::vector<std::int64_t> whole_numbers(const ordered_json& list, const ExportArchive& archive) {
  return mapped(list, [&](const ordered_json& item) { return archive.whole(item.at("as_int")); });
}

// Reads a number in little-endian order, as in zip files.
template <class T>
T number_at(const InputFile& file, std::uint64_t offset) {
  T number{};
  file.read(offset, &number, sizeof(T));
  return number;
}

// The CRC that the file gives for this record: in the record's header or, if a flag bit there says
// so, after the record's bytes (APPNOTE.TXT of PKWARE, 4.3.7 and 4.3.9).
std::uint32_t stored_crc(const InputFile& file, std::uint64_t header, std::uint64_t end) {
  constexpr std::uint32_t kDescriptor = 0x08074B50;
  if ((number_at<std::uint16_t>(file, header + 6) & 8) == 0) {
    return number_at<std::uint32_t>(file, header + 14);
  }
  const auto first = number_at<std::uint32_t>(file, end);  // the signature may be left out
  return first == kDescriptor ? number_at<std::uint32_t>(file, end + 4) : first;
}

std::uint32_t crc_of(const void* data, std::size_t size) {
  return static_cast<std::uint32_t>(::crc32_z(0, static_cast<const unsigned char*>(data), size));
}

}  // namespace

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

at::ScalarType exported_type(std::int64_t number) {
  return number >= 0 && number < std::ssize(kTypes) ? kTypes[number] : at::ScalarType::Undefined;
}

bool is_exported_type(std::int64_t type) {
  return std::ranges::any_of(kTypes, [&](at::ScalarType known) {
    return known != at::ScalarType::Undefined && static_cast<std::int64_t>(known) == type;
  });
}

ExportArchive::ExportArchive(const std::string& path) : path_(path) {
  std::error_code failed;
  const std::uint64_t bytes = std::filesystem::file_size(path, failed);
  ABT_CHECK(!failed, MissingInput, "model.file: {}: {}", path, failed.message());
  bytes_ = std::make_unique<InputFile>(path);
  try {
    file_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(path);
    // Nothing in such a file is compressed, so no record can be larger than the file.
    std::uint64_t total = 0;
    for (const std::string& record : file_->getAllRecords()) {
      const std::uint64_t size = file_->getRecordSize(record);
      check(size <= bytes && (total += size) <= bytes, "its records are larger than the file");
    }
    check(
        file_->hasRecord("models/model.json"),
        "it has no models/model.json; export it with a newer PyTorch (2.9 is the oldest tested)");
    check(text("byteorder") == "little", "its numbers are not little-endian");
    program_ = json("models/model.json");
    add_entries("data/weights/", "model_weights_config.json");
    add_entries("data/constants/", "model_constants_config.json");
  } catch (const c10::Error& error) {
    throw Error(
        ErrorKind::DamagedData,
        formatted(
            "{}: expected a model that torch.export.save() has written (.pt2): {}", path,
            first_line(error)));
  } catch (const nlohmann::json::exception& error) {
    damaged(error.what());
  }
}

void ExportArchive::damaged(const std::string& what) const {
  throw Error(ErrorKind::DamagedData, formatted("{}: damaged export: {}", path_, what));
}

std::int64_t ExportArchive::whole(const ordered_json& value) const {
  std::int64_t number = 0;
  check(
      read_json(value, number),
      formatted("expected an integer of 64 bits, found {}", abtrain::shown(value)));
  return number;
}

void ExportArchive::check_crc(const std::string& record, const void* data, std::size_t size) const {
  const std::uint64_t begin = file_->getRecordOffset(record);
  check(
      crc_of(data, size) == stored_crc(*bytes_, file_->getRecordHeaderOffset(record), begin + size),
      formatted(
          "the bytes of {} do not have the CRC that the file gives for them: some have changed "
          "since "
          "they were written (or torch.serialization.set_crc32_options(False) was in force then)",
          record));
}

std::string ExportArchive::text(const std::string& record) const {
  const auto [data, size] = file_->getRecord(record);
  check_crc(record, data.get(), size);
  return {static_cast<const char*>(data.get()), size};
}

std::string ExportArchive::extra(const std::string& name) const {
  const std::string record = "extra/" + name;
  return file_->hasRecord(record) ? text(record) : "";
}

ordered_json ExportArchive::json(const std::string& record) const {
  JsonProblem problem;
  ordered_json parsed = parse_json(text(record), problem);
  check(!parsed.is_discarded(), record + ": " + problem.what);
  return parsed;
}

void ExportArchive::add_entries(const std::string& folder, const std::string& list) {
  const ordered_json listed = json(folder + list);
  for (const auto& [name, item] : listed.at("config").items()) {
    check(
        !item.value("use_pickle", false),
        formatted("tensor '{}' is stored as a pickle, which is not read", name));
    const ordered_json& meta = item.at("tensor_meta");
    const Entry entry{
        folder + item.at("path_name").get<std::string>(), exported_type(whole(meta.at("dtype"))),
        whole_numbers(meta.at("sizes"), *this),           whole_numbers(meta.at("strides"), *this),
        whole(meta.at("storage_offset").at("as_int")),    meta.value("requires_grad", true)};
    const std::int64_t type = whole(meta.at("dtype"));
    ABT_CHECK(
        type < kFirstComplex || type > kLastComplex, Config,
        "model.file: {}: tensor '{}' holds complex numbers; store them as real ones, as "
        "torch.view_as_real() returns them, and call torch.view_as_complex() in forward()",
        path_, printable(name));
    check(
        entry.type != kNone,
        formatted("tensor '{}' has the type number {}, which is not supported", name, type));
    // The largest index must lie in the record, which also bounds all sizes.
    const auto available =
        static_cast<double>(file_->getRecordSize(entry.record) / c10::elementSize(entry.type));
    double last = static_cast<double>(entry.offset);
    double numel = 1;
    bool ok = entry.offset >= 0 && entry.sizes.size() == entry.strides.size();
    for (std::size_t i = 0; ok && i < entry.sizes.size(); ++i) {
      ok = entry.sizes[i] >= 0 && entry.strides[i] >= 0;
      numel *= static_cast<double>(entry.sizes[i]);
      last += (static_cast<double>(entry.sizes[i]) - 1) * static_cast<double>(entry.strides[i]);
    }
    check(
        ok && numel <= available && (numel == 0 || last < available),
        formatted("tensor '{}' does not fit its bytes", name));
    entries_.emplace(name, entry);
    std::vector<std::string>& names = names_[entry];
    // Tensors that share a record get a copy each in memory.
    tensor_bytes_ += names.empty() ? numel * static_cast<double>(c10::elementSize(entry.type)) : 0;
    check(
        tensor_bytes_ <= kMaxCopies * static_cast<double>(bytes_->size()),
        formatted("its tensors are more than {} times as large as the file", kMaxCopies));
    names.push_back(name);
  }
}

const ExportArchive::Entry& ExportArchive::entry(const std::string& name) const {
  const auto place = entries_.find(name);
  check(place != entries_.end(), formatted("tensor '{}' is missing", name));
  return place->second;
}

const std::vector<std::string>& ExportArchive::names_of(const std::string& name) const {
  return names_.at(entry(name));
}

at::Tensor ExportArchive::read(const std::string& name) const {
  const at::Tensor tensor = stored(name);
  return tensor.is_floating_point() ? tensor.to(at::kFloat) : tensor;
}

at::Tensor ExportArchive::stored(const std::string& name) const {
  const Entry& e = entry(name);
  try {
    const std::size_t size = file_->getRecordSize(e.record);
    const auto width = static_cast<std::int64_t>(c10::elementSize(e.type));
    const at::Tensor whole =
        at::empty({static_cast<std::int64_t>(size) / width}, at::TensorOptions(e.type));
    check(
        size % static_cast<std::size_t>(width) == 0,
        formatted("tensor '{}' does not fit its bytes", name));
    file_->getRecord(e.record, whole.mutable_data_ptr(), whole.nbytes());
    check_crc(e.record, whole.const_data_ptr(), size);
    return whole.as_strided(e.sizes, e.strides, e.offset).contiguous();
  } catch (const c10::Error& error) {
    if (device::is_out_of_memory(error)) {
      throw;
    }
    damaged(formatted("tensor '{}': {}", name, first_line(error)));
  }
}

}  // namespace abtrain::nn
