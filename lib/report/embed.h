// Puts a file into the program when it is compiled: ABT_EMBED(NAME, "FILE")
// declares NAME_begin and NAME_end, the place behind its last byte.
#pragma once

#define ABT_EMBED(name, file)                                                 \
  asm(".pushsection .rodata\n" #name "_begin:\n.incbin \"" file "\"\n" #name  \
      "_end:\n.byte 0\n.popsection");                                         \
  extern "C" __attribute__((visibility("hidden"))) const char name##_begin[]; \
  extern "C" __attribute__((visibility("hidden"))) const char name##_end[]
