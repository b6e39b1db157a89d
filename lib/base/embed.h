// Embeds a file in the program at compile time: ABT_EMBED(NAME, "FILE"), at the
// scope of a namespace, defines the function std::string_view NAME() that
// returns the file's text.
#pragma once

#include <string_view>

// abtrain_NAME_begin is the first byte, abtrain_NAME_end one past the last one.
#define ABT_EMBED(name, file)                                                                \
  asm(".pushsection .rodata\nabtrain_" #name "_begin:\n.incbin \"" file "\"\nabtrain_" #name \
      "_end:\n.byte 0\n.popsection");                                                        \
  extern "C" __attribute__((visibility("hidden"))) const char abtrain_##name##_begin[];      \
  extern "C" __attribute__((visibility("hidden"))) const char abtrain_##name##_end[];        \
  std::string_view name() {                                                                  \
    return {abtrain_##name##_begin, abtrain_##name##_end};                                   \
  }
