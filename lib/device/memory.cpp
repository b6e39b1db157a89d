#include "device/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "device/devices.h"

namespace abtrain::device {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Makes malloc return blocks of at least this size to the kernel when they are freed. If this
// threshold is not set, malloc raises it whenever a larger block is freed.
void map_from([[maybe_unused]] std::size_t bytes) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
#endif
}

// Keeps freed blocks for the next tensor of their size class. If a new block would make the total
// larger than kSpare times the peak use, all kept blocks are freed first.
class TensorMemory final : public c10::Allocator {
 public:
  static constexpr std::size_t kHuge = 2 * kMiB;  // a huge page

  static TensorMemory& instance() {
    static auto* const memory = new TensorMemory;  // tensors may outlive static objects
    return *memory;
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = bytes == 0 ? nullptr : instance().take(bytes);
    return {data, data, &give_back, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &give_back;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  // The header before a block's data, padded to a cache line.
  struct alignas(64) Header {
    std::size_t size;  // header included
  };
  static constexpr std::size_t kLargest = 256 * kMiB;
  static constexpr double kSpare = 1.25;

  // Rounded up, by less than 64 bytes or an eighth.
  static std::size_t size_class(std::size_t size) {
    const std::size_t step = std::max(sizeof(Header), std::bit_floor(size) / 8);
    return (size + step - 1) / step * step;
  }

  // The kept blocks of a size class.
  std::vector<Header*>& kept(std::size_t size) {
    const auto octave = static_cast<std::size_t>(std::bit_width(size));
    return kept_[8 * octave + size / (std::bit_floor(size) / 8) % 8];
  }

  void* take(std::size_t bytes) {
    TORCH_CHECK(  // before the sums below, which could overflow
        bytes <= limit_, "can't allocate memory: you tried to allocate ", bytes, " bytes of ",
        limit_);
    const std::size_t size = size_class(bytes + sizeof(Header));
    const std::lock_guard lock(mutex_);
    if (auto& blocks = kept(size); !blocks.empty()) {
      Header* const block = blocks.back();
      blocks.pop_back();
      kept_bytes_ -= size;
      use(size);
      return block + 1;
    }
    TORCH_CHECK(
        used_ + size <= limit_, "can't allocate memory: you tried to allocate ", bytes,
        " bytes; tensors have ", used_, " of ", limit_);
    const std::size_t most = std::max(most_used_, used_ + size);
    if (static_cast<double>(used_ + size + kept_bytes_) > kSpare * static_cast<double>(most)) {
      free_kept();
    }
    void* block = fresh(size);
    if (block == nullptr) {
      free_kept();
      block = fresh(size);
    }
    TORCH_CHECK(block != nullptr, "can't allocate memory: you tried to allocate ", bytes, " bytes");
    use(size);
    return new (block) Header{size} + 1;
  }

  void use(std::size_t size) {
    used_ += size;
    most_used_ = std::max(most_used_, used_);
  }

  static void* fresh(std::size_t size) {
    void* block = nullptr;  // null on failure; aligned_alloc() wants multiples of the alignment
    ::posix_memalign(&block, size < kHuge ? alignof(Header) : kHuge, size);
#ifdef __linux__
    if (block != nullptr && size >= kHuge) {
      madvise(block, size, MADV_HUGEPAGE);
    }
#endif
    return block;
  }

  static void give_back(void* data) {
    if (data == nullptr) {
      return;
    }
    auto* const block = static_cast<Header*>(data) - 1;
    TensorMemory& own = instance();
    const std::lock_guard lock(own.mutex_);
    own.used_ -= block->size;
    if (block->size >= kLargest) {
      std::free(block);
      return;
    }
    own.kept_bytes_ += block->size;
    own.kept(block->size).push_back(block);
  }

  void free_kept() {
    for (auto& blocks : kept_) {
      std::ranges::for_each(blocks, std::free);
      blocks.clear();
    }
    kept_bytes_ = 0;
    malloc_trim(0);
  }

  std::mutex mutex_;
  std::array<std::vector<Header*>, 8 * 64> kept_;
  std::size_t kept_bytes_ = 0, used_ = 0, most_used_ = 0;
  // With more, the kernel would end the process without a message.
  const std::size_t limit_ = static_cast<std::size_t>(info_of(c10::Device(c10::kCPU)).memory_bytes);
};

}  // namespace

bool is_out_of_memory(const c10::Error& error) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         std::string_view(error.msg()).find("can't allocate memory") != std::string_view::npos;
}

void keep_freed_memory() {
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer must see every free()
  map_from(TensorMemory::kHuge);
  c10::SetCPUAllocator(&TensorMemory::instance(), 1);
#endif
}

void return_freed_memory() {
  map_from(kMiB);
}

}  // namespace abtrain::device
