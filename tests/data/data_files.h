// Small files and images for the tests of the data floor.
#pragma once

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/batch_source.h"
#include "data/dataset.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::data {

using Bytes = std::vector<std::uint8_t>;
using Indices = std::vector<std::int64_t>;

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(
      reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out) {
    throw std::runtime_error(path);
  }
}

inline Bytes gzipped(const Bytes& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<std::uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline Bytes idx_header(std::uint32_t magic, const std::vector<std::uint32_t>& dimensions) {
  Bytes out;
  const auto put = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      out.push_back(static_cast<std::uint8_t>(value >> shift));
    }
  };
  put(magic);
  for (const std::uint32_t dimension : dimensions) {
    put(dimension);
  }
  return out;
}

inline Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes random_bytes(std::size_t count, std::uint32_t stream = 0) {
  Random random(7, RandomPurpose::Test, stream);
  Bytes out(count);
  for (std::uint8_t& byte : out) {
    byte = static_cast<std::uint8_t>(random.below(256));
  }
  return out;
}

inline ByteImages random_images(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
  ByteImages images;
  images.pixels = at::empty({count, channels, height, width}, at::kByte);
  images.labels = at::empty({count}, at::kLong);
  const Bytes bytes = random_bytes(static_cast<std::size_t>(images.pixels.numel()));
  std::copy(bytes.begin(), bytes.end(), images.pixels.data_ptr<std::uint8_t>());
  for (std::int64_t i = 0; i < count; ++i) {
    images.labels.data_ptr<std::int64_t>()[i] = i % 10;
  }
  return images;
}

// Random images whose channels have a mean and a standard deviation each.
inline Dataset random_set(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Dataset set;
  set.name = "test-set";
  set.channels = channels;
  set.height = height;
  set.width = width;
  set.classes = 10;
  for (std::int64_t c = 0; c < channels; ++c) {
    set.mean.push_back(0.3f + 0.1f * static_cast<float>(c));
    set.std.push_back(0.2f + 0.05f * static_cast<float>(c));
  }
  set.train = random_images(count, channels, height, width);
  return set;
}

// 0, 1, ..., count - 1.
inline Indices first(std::int64_t count) {
  Indices indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

inline Batch next_of(BatchSource& source) {
  Batch batch;
  source.next(batch);
  return batch;
}

}  // namespace abtrain::data
