// A model that torch.export.save() has written (.pt2): a zip file with the graph as JSON and the
// tensors as raw bytes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"

namespace abtrain::nn {

class ExportArchive {
 public:
  // A parameter, buffer or constant, without its numbers.
  struct Entry {
    std::string record;  // two names of one tensor share it
    at::ScalarType type;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset;
    bool trained;  // requires_grad

    auto operator<=>(const Entry&) const = default;
  };

  // Reads the graph. Throws Error(MissingInput); DamagedData, naming the file, for anything that
  // torch.export.save() would not have written.
  explicit ExportArchive(const std::string& path);

  const std::string& path() const {
    return path_;
  }
  // models/model.json, by the schema in PyTorch's torch/_export/serde/schema.py.
  const nlohmann::ordered_json& program() const {
    return program_;
  }
  // A text that was saved with the program, as `extra_files`; "" if there is none of this name.
  std::string extra(const std::string& name) const;
  // By the names that the graph's signature uses. Throws Error(DamagedData) for an unknown one.
  const Entry& entry(const std::string& name) const;
  // All names of the tensor that has this one, in the order of the state dict: tied parameters
  // have several.
  const std::vector<std::string>& names_of(const std::string& name) const;
  // Reads the tensor of this name: contiguous, on the CPU, and converted to fp32 if
  // it is floating-point. Throws Error(DamagedData), also for bytes that have changed since they
  // were written.
  at::Tensor read(const std::string& name) const;

  // Throws Error(DamagedData), "PATH: damaged export: WHAT".
  [[noreturn]] void damaged(const std::string& what) const;
  void check(bool ok, const std::string& otherwise) const {
    if (!ok) {
      damaged(otherwise);
    }
  }
  // Throws that, too, for a number that is no integer of 64 bits.
  std::int64_t whole(const nlohmann::ordered_json& value) const;

 private:
  std::string text(const std::string& record) const;
  // PyTorch's reader does not check the CRCs of a zip file.
  void check_crc(const std::string& record, const void* data, std::size_t size) const;
  nlohmann::ordered_json json(const std::string& record) const;
  void add_entries(const std::string& folder, const std::string& list);

  std::string path_;
  std::unique_ptr<InputFile> bytes_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> file_;
  nlohmann::ordered_json program_;
  std::map<std::string, Entry> entries_;
  std::map<Entry, std::vector<std::string>> names_;
  double tensor_bytes_ = 0;  // of all entries that differ
};

// What c10 says, without its stack trace.
std::string first_line(const c10::Error& error);

// PyTorch's type for the number that the schema gives it; Undefined if there is none.
at::ScalarType exported_type(std::int64_t number);
// Whether it is a result of exported_type(), as PyTorch numbers its types.
bool is_exported_type(std::int64_t type);

}  // namespace abtrain::nn
