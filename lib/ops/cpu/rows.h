// The forms of rows.h on the CPU; arguments are checked.
#pragma once

#include "kernels/rows.h"

namespace abtrain::ops {

void row_norms_cpu(const kernels::RowNorms& job);
void choose_rows_cpu(const kernels::ChooseRows& job);
void send_rows_cpu(const kernels::SendRows& job);
void add_rows_cpu(const kernels::AddRows& job);

}  // namespace abtrain::ops
