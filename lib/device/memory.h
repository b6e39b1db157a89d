// Memory for CPU tensors.
#pragma once

#include <c10/util/Exception.h>

namespace abtrain::device {

// True if the error says that a tensor could not be allocated. LibTorch has an error type for this
// on a GPU; on the CPU, only the message tells.
bool is_out_of_memory(const c10::Error& error);

// From now on, tensors on the CPU reuse the memory of freed tensors. Otherwise malloc would return
// large blocks to the kernel and obtain the same pages again, zeroed, in the next step, and the
// workers' threads would wait for malloc's lock. Blocks of 2 MiB and more use huge pages if the
// kernel has them; freed blocks of 256 MiB and more return to the kernel at once. Safe at any time:
// each block goes back to where it came from.
void keep_freed_memory();

// For programs that use large blocks one after another and should stay small: malloc then returns
// freed blocks of 1 MiB and more to the kernel.
void return_freed_memory();

}  // namespace abtrain::device
