// Embeds a file in the program at compile time: ABT_EMBED(NAME, "FILE")
// declares the arrays NAME_begin, the first byte, and NAME_end, one past the
// last byte.
#pragma once

#define ABT_EMBED(name, file)                                                 \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name  \
      "_end:\n.byte 0\n.popsection");                                         \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[]; \
  extern "C" __attribute__((visibility("hidden"))) const char name##_end[]
