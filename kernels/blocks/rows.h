// Rows (output filters) of tensors in a flat buffer: computes their squared norms, chooses the rows
// with the largest norms, and converts these to fp16 and back (see ops/rows.h). Launchers take
// device pointers and a cudaStream_t, and return a cudaError_t. The host has its own
// implementation. It sorts the norms, whereas on a GPU one thread per row counts the rows with
// larger norms, and it converts fp16 in tiles.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace abtrain::kernels {

// A tensor of `rows` rows of `length` elements each; `chosen` of the rows are sent.
struct RowTensor {
  std::int64_t begin;  // index of its first element in the buffer
  std::int64_t rows;
  std::int64_t length;
  std::int64_t chosen;        // at least 1
  std::int64_t first_row;     // rows in the tensors before it
  std::int64_t first_chosen;  // chosen rows in the tensors before it
  std::int64_t first_value;   // elements in the chosen rows of the tensors before it
};

// The square of element i of a row is added to partial sum (lane) i mod kRowLanes, in order. Then
// the upper half of the lanes is added to the lower half until one lane is left.
constexpr int kRowLanes = 256;

struct RowNorms {
  const RowTensor* tensors;
  int count;          // number of tensors
  std::int64_t rows;  // rows in all tensors
  const float* u;
  float* norms;  // squared norms, one per row
};
ABT_LAUNCHER int row_norms(const RowNorms& job, void* stream);
void work_on_host(const RowNorms& job);

// For each tensor: chosen[first_chosen + r] = the index in the tensor of the row with the r-th
// largest norm, r from 0.
struct ChooseRows {
  const RowTensor* tensors;
  int count;
  std::int64_t rows;
  const float* norms;
  std::int32_t* chosen;
};
ABT_LAUNCHER int choose_rows(const ChooseRows& job, void* stream);
void work_on_host(const ChooseRows& job);

struct SendRows {
  const RowTensor* tensors;
  int count;
  std::int64_t total;  // chosen rows in all tensors
  const std::int32_t* chosen;
  float* u;     // chosen rows: u -= members * wire
  void* wire;   // output, fp16: chosen rows of u / members
  int members;  // workers in the mean
};
ABT_LAUNCHER int send_rows(const SendRows& job, void* stream);
void work_on_host(const SendRows& job);

struct AddRows {
  const RowTensor* tensors;
  int count;
  std::int64_t total;
  const std::int32_t* chosen;
  const void* wire;
  float* estimate;  // chosen rows: estimate += wire
};
ABT_LAUNCHER int add_rows(const AddRows& job, void* stream);
void work_on_host(const AddRows& job);

}  // namespace abtrain::kernels
