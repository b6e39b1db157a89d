// A safetensors file of random matrices.
#pragma once

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace abtrain {

// `count` fp32 matrices, rows x columns, of normal numbers: NAME0.weight, ...
inline std::string weights(
    int count, std::size_t rows, std::size_t columns, const std::string& name = "layer") {
  nlohmann::json header;
  std::string data;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> matrix(rows * columns);
  for (int i = 0; i < count; ++i) {
    const std::size_t begin = data.size();
    for (float& x : matrix) {
      x = normal(random);
    }
    data.append(reinterpret_cast<const char*>(matrix.data()), 4 * matrix.size());
    header[name + std::to_string(i) + ".weight"] = {
        {"dtype", "F32"}, {"shape", {rows, columns}}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string begin(8, '\0');
  std::memcpy(begin.data(), &length, 8);
  return begin + text + data;
}

}  // namespace abtrain
