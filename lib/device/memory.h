// Settings of the host's memory allocator (glibc malloc).
#pragma once

namespace abtrain::device {

// Makes the C library keep freed memory. Otherwise it returns every activation
// to the kernel and obtains the same pages again, zeroed, in the next step,
// which takes 5 to 8 % of a convolutional network's step. Blocks of 256 MiB and
// more are still returned. Call it before any thread starts. Does nothing
// without glibc.
void keep_freed_memory();

// The opposite, for programs that use large blocks one after another and should
// stay small: freed memory is returned at once.
void return_freed_memory();

}  // namespace abtrain::device
