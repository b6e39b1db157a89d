// Rows (output filters) of tensors in a flat buffer: their squared norms, the
// most important ones, their way to fp16 and back (ops/rows.h has the meaning).
// Pointers are device pointers; launches are asynchronous on `stream` (a
// cudaStream_t) and return a cudaError_t as int.
#pragma once

#include <cstdint>

namespace abtrain::kernels {

// A tensor of `rows` rows of `length` numbers each, of which `chosen` are sent.
struct RowTensor {
  std::int64_t begin;  // of its first number in the buffer
  std::int64_t rows;
  std::int64_t length;
  std::int64_t chosen;        // at least 1
  std::int64_t first_row;     // rows of the tensors before it
  std::int64_t first_chosen;  // chosen ones of the tensors before it
  std::int64_t first_value;   // numbers of them
};

// A square of number i of a row goes to lane i mod kRowLanes, in order; then
// the upper half of the lanes is added to the lower one until one is left.
constexpr int kRowLanes = 256;

struct RowNorms {
  const RowTensor* tensors;
  int count;          // of tensors
  std::int64_t rows;  // of all
  const float* u;
  float* norms;  // one a row
};
int row_norms(const RowNorms& job, void* stream);

// chosen[first_chosen + r]: the row of rank r, counted within its tensor.
struct ChooseRows {
  const RowTensor* tensors;
  int count;
  std::int64_t rows;
  const float* norms;
  std::int32_t* chosen;
};
int choose_rows(const ChooseRows& job, void* stream);

struct SendRows {
  const RowTensor* tensors;
  int count;
  std::int64_t total;  // chosen rows of all
  const std::int32_t* chosen;
  float* u;     // chosen rows: less what was sent, times `members`
  void* wire;   // fp16
  int members;  // sent: u / members
};
int send_rows(const SendRows& job, void* stream);

struct AddRows {
  const RowTensor* tensors;
  int count;
  std::int64_t total;
  const std::int32_t* chosen;
  const void* wire;
  float* estimate;
};
int add_rows(const AddRows& job, void* stream);

}  // namespace abtrain::kernels
