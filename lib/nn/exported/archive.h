// A model written by torch.export.save() (.pt2): a zip file with the graph as JSON and the tensors
// as raw bytes.
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
  // A parameter, buffer or constant, without its values.
  struct Entry {
    std::string record;  // file in the zip; tied tensors share it
    at::ScalarType type;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset;
    bool trained;  // requires_grad

    auto operator<=>(const Entry&) const = default;
  };

  // Reads the graph. Throws Error(MissingInput); DamagedData, which names the file, for anything
  // that torch.export.save() would not have written.
  explicit ExportArchive(const std::string& path);

  const std::string& path() const {
    return path_;
  }
  // models/model.json, in the schema of PyTorch's torch/_export/serde/schema.py.
  const nlohmann::ordered_json& program() const {
    return program_;
  }
  // A text that was saved with the program, as `extra_files`; "" if there is none with this name.
  std::string extra(const std::string& name) const;
  // Looks up a name of the graph's signature. Throws Error(DamagedData) for an unknown name.
  const Entry& entry(const std::string& name) const;
  // All names of the tensor with this name, in state dict order: tied parameters have several.
  const std::vector<std::string>& names_of(const std::string& name) const;
  // Reads the tensor of this name: contiguous, on the CPU, in its own type. Throws
  // Error(DamagedData), also if its bytes have changed since they were written.
  at::Tensor stored(const std::string& name) const;
  // The same, converted to fp32 if it is floating-point.
  at::Tensor read(const std::string& name) const;

  // Throws Error(DamagedData), "PATH: damaged export: WHAT".
  [[noreturn]] void damaged(const std::string& what) const;
  void check(bool ok, const std::string& otherwise) const {
    if (!ok) {
      damaged(otherwise);
    }
  }
  // Returns the value; throws Error(DamagedData) if it is not a 64-bit integer.
  std::int64_t whole(const nlohmann::ordered_json& value) const;

 private:
  std::string text(const std::string& record) const;
  // Throws Error(DamagedData) if the record's CRC is wrong, which PyTorch's reader does not check.
  void check_crc(const std::string& record, const void* data, std::size_t size) const;
  nlohmann::ordered_json json(const std::string& record) const;
  void add_entries(const std::string& folder, const std::string& list);

  std::string path_;
  std::unique_ptr<InputFile> bytes_;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> file_;
  nlohmann::ordered_json program_;
  std::map<std::string, Entry> entries_;
  std::map<Entry, std::vector<std::string>> names_;
  double tensor_bytes_ = 0;  // total of all entries, shared tensors once
};

// The first line of c10's message, without the stack trace.
std::string first_line(const c10::Error& error);

// PyTorch's type for a type number of the schema; Undefined if there is none.
at::ScalarType exported_type(std::int64_t number);
// Whether exported_type() can return this value of at::ScalarType.
bool is_exported_type(std::int64_t type);

}  // namespace abtrain::nn
