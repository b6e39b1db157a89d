// The host's memory allocator, set up for training.
#pragma once

namespace abtrain::device {

// Lets the C library keep what is freed: it would give every activation back to
// the kernel and take the same pages again, zeroed, in the next step (5 to 8 %
// of a step of a conv net). Blocks of 256 MiB and more still go back. Call it
// before there are threads; does nothing without glibc.
void keep_freed_memory();

}  // namespace abtrain::device
