// The host's memory allocator, set up for what is to be done.
#pragma once

namespace abtrain::device {

// Lets the C library keep what is freed: it would give every activation back to
// the kernel and take the same pages again, zeroed, in the next step (5 to 8 %
// of a step of a conv net). Blocks of 256 MiB and more still go back. Call it
// before there are threads; does nothing without glibc.
void keep_freed_memory();

// The opposite, for programs that take large blocks one after the other and are
// to stay small: what is freed goes back at once.
void return_freed_memory();

}  // namespace abtrain::device
