// Where the tensors of the host come from.
#pragma once

#include <c10/util/Exception.h>

namespace abtrain::device {

// True if the error says that a tensor got no memory. LibTorch has a type for such errors of a GPU;
// those of the host are known by their text.
bool is_out_of_memory(const c10::Error& error);

// From now on tensors on the CPU take the memory of tensors that were freed. The C library would
// return large blocks to the kernel and obtain the same pages again, zeroed, in the next step, and
// the workers' threads would wait for the lock of its arena. Blocks of 2 MiB and more lie in huge
// pages where the kernel has them; those of 256 MiB and more are returned at once. Safe at any
// time: each block goes back to where it came from.
void keep_freed_memory();

// For programs that use large blocks one after another and should stay small: freed memory is
// returned at once.
void return_freed_memory();

}  // namespace abtrain::device
