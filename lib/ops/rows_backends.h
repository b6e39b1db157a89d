// The two forms of each op of rows.h; jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/rows.h"

namespace abtrain::ops {

void row_norms_cpu(const kernels::RowNorms& job);
void choose_rows_cpu(const kernels::ChooseRows& job);
void send_rows_cpu(const kernels::SendRows& job);
void add_rows_cpu(const kernels::AddRows& job);

void row_norms_cuda(const kernels::RowNorms& job, c10::Device device);
void choose_rows_cuda(const kernels::ChooseRows& job, c10::Device device);
void send_rows_cuda(const kernels::SendRows& job, c10::Device device);
void add_rows_cuda(const kernels::AddRows& job, c10::Device device);

}  // namespace abtrain::ops
