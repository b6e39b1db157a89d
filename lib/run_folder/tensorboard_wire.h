// The bytes of TensorBoard's event files: protocol buffers, written field by
// field, framed as TFRecords. No protobuf library is needed, nor can one be
// linked: LibTorch exports its own. Sources, field numbers included:
//   frames    tensorflow/core/lib/io/record_writer.h
//   messages  tensorboard/compat/proto/{event,summary,tensor}.proto,
//             tensorboard/plugins/hparams/{plugin_data,api}.proto,
//             google/protobuf/struct.proto
// All numbers are little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace abtrain::run_folder {

// A protocol buffer under construction. Each call appends one field.
class Message {
 public:
  // An integer, enumeration or bool.
  Message& integer(int field, std::int64_t value);
  Message& real(int field, double value);
  Message& real32(int field, float value);
  // A string, bytes, or another message.
  Message& bytes(int field, std::string_view value);
  Message& message(int field, const Message& value) {
    return bytes(field, value.bytes_);
  }

  const std::string& bytes() const {
    return bytes_;
  }

 private:
  void varint(std::uint64_t value);
  void key(int field, unsigned type);
  std::string bytes_;
};

// The Castagnoli checksum (RFC 3720, B.4).
std::uint32_t crc32c(std::string_view bytes);

// One record of a TFRecord file: length, bytes, and a masked checksum of each.
std::string tfrecord(std::string_view bytes);

}  // namespace abtrain::run_folder
