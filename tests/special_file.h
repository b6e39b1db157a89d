// What can stand in a file's place without being one that can be read, for
// tests: readers must refuse each, without waiting or filling the memory.
#pragma once

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace abtrain {

enum class Special { Fifo, Device, Folder, Huge };

constexpr std::array kSpecials = {Special::Fifo, Special::Device, Special::Folder, Special::Huge};

// Replaces the file. A huge one has a hole of a terabyte after what it held.
inline void make_special(const std::string& path, Special kind) {
  namespace fs = std::filesystem;
  if (kind != Special::Huge || !fs::is_regular_file(path)) {
    fs::remove_all(path);
  }
  if (kind == Special::Huge) {
    std::ofstream(path, std::ios::app);
    fs::resize_file(path, std::uintmax_t{1} << 40);
  } else if (kind == Special::Fifo) {
    ::mkfifo(path.c_str(), 0600);
  } else if (kind == Special::Device) {
    fs::create_symlink("/dev/zero", path);
  } else {
    fs::create_directory(path);
  }
}

}  // namespace abtrain
