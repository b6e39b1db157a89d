#include "kernels/images/augment_images.h"

#include <algorithm>
#include <optional>

#include "kernels/elements.cuh"
#include "kernels/launch.cuh"

namespace abtrain::kernels {

namespace {

constexpr int kLevels = 256;
constexpr int kMaxThreads = 256;

// A Treatment (augment_images.h) in the form that the pixel loops read.
struct DrawnImage {
  Placement place;
  int top, left, bottom, end;  // the erased box; bottom and end are exclusive
};

__device__ DrawnImage draw(const AugmentImages& job, std::int64_t index) {
  const auto [place, box] = draw_treatment(job.how, index, job.height, job.width);
  return {
      place, static_cast<int>(box.top), static_cast<int>(box.left),
      static_cast<int>(box.top + box.height), static_cast<int>(box.left + box.width)};
}

__device__ bool within(int x, int size) {
  return static_cast<unsigned>(x) < static_cast<unsigned>(size);
}

// How a thread block of augment_staged() divides its work.
struct Plan {
  int images;        // images per block
  int image_bytes;   // shared memory per image, a multiple of 16
  int row_packets;   // packets per output row, one per thread
  int rows_at_once;  // output rows that the threads write at a time
  bool wide_loads;   // all stored images are 16-byte aligned
};

// The table in shared memory holds kCopies copies of each entry side by side, one for each of
// kCopies adjacent threads, which reduces bank conflicts.
template <int kChannels>
constexpr int kCopies = kChannels == 1   ? 8
                        : kChannels == 3 ? 4
                                         : 1;

template <int kChannels>
__host__ __device__ int table_bytes(int channels) {
  return channels * kLevels * kCopies<kChannels> * static_cast<int>(sizeof(float));
}

template <int kChannels>
__device__ void stage_table(const AugmentImages& job, float* table) {
  constexpr int copies = kCopies<kChannels>;
  const int size = job.channels * kLevels;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    const float value = job.table[i];
#pragma unroll
    for (int k = 0; k < copies; ++k) {
      table[i * copies + k] = value;
    }
  }
}

// Starts copying `count` whole images to shared memory, image_bytes apart.
__device__ void stage_images(
    const AugmentImages& job, const Plan& plan, std::int64_t first, int count, std::uint8_t* to) {
  const int numel = job.channels * job.height * job.width;
  const int step = plan.wide_loads ? 16 : 1;
  const int pieces = numel / step;
  for (int i = threadIdx.x; i < count * pieces; i += blockDim.x) {
    const int image = i / pieces;
    const int begin = (i - image * pieces) * step;
    const std::uint8_t* from = job.pixels + job.indices[first + image] * numel + begin;
    std::uint8_t* place = to + image * plan.image_bytes + begin;
    if (plan.wide_loads) {
      copy_16_bytes(place, from);
    } else {
      *place = *from;
    }
  }
}

// Processes whole images in shared memory, several per thread block. A thread writes packets at the
// same place in each of its rows, so it determines only once per image where the elements of its
// packet come from. kChannels = 0: any number.
template <class Out, int kChannels, int kVector>
__global__ void __launch_bounds__(kMaxThreads, 5)
    augment_staged(const AugmentImages job, const Plan plan) {
  using Values = Packet<Out, kVector>;
  constexpr int copies = kCopies<kChannels>;
  const int channels = kChannels > 0 ? kChannels : job.channels;
  const int area = job.height * job.width;
  float* const table = reinterpret_cast<float*>(shared_memory());
  std::uint8_t* const staged = shared_memory() + table_bytes<kChannels>(channels);
  auto* const treatments = reinterpret_cast<DrawnImage*>(staged + plan.images * plan.image_bytes);

  const std::int64_t first = std::int64_t{blockIdx.x} * plan.images;
  const std::int64_t left = job.count - first;
  const int count = left < plan.images ? static_cast<int>(left) : plan.images;
  stage_images(job, plan, first, count, staged);
  stage_table<kChannels>(job, table);
  if (static_cast<int>(threadIdx.x) < count) {
    const std::int64_t place = first + threadIdx.x;
    const std::int64_t index = job.indices[place];
    treatments[threadIdx.x] = draw(job, index);
    job.image_labels[place] = job.labels[index];
  }
  wait_for_copies();
  __syncthreads();

  const int packet = static_cast<int>(threadIdx.x) % plan.row_packets;
  const int first_row = static_cast<int>(threadIdx.x) / plan.row_packets;
  const int copy = static_cast<int>(threadIdx.x) % copies;
  for (int image = 0; image < count; ++image) {
    const DrawnImage t = treatments[image];
    const std::uint8_t* const pixels = staged + image * plan.image_bytes;
    int source[kVector];  // offset of channel plane plus column; -1: black
    unsigned in_box = 0;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const int element = packet * kVector + v;
      const int x = element / channels;
      const int from = (t.place.mirrored ? job.width - 1 - x : x) + t.place.right;
      source[v] = within(from, job.width) ? element % channels * area + from : -1;
      in_box |= static_cast<unsigned>(t.left <= x && x < t.end) << v;
    }
    auto* const out =
        static_cast<Values*>(job.images) + (first + image) * job.height * plan.row_packets + packet;
    for (int y = first_row; y < job.height; y += plan.rows_at_once) {
      const int from = y + t.place.down;
      const bool inside = within(from, job.height);
      const unsigned erased = t.top <= y && y < t.bottom ? in_box : 0;
      Values values;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const int byte = inside && source[v] >= 0 ? pixels[source[v] + from * job.width] : 0;
        const int channel = (packet * kVector + v) % channels;
        const float value = table[(channel * kLevels + byte) * copies + copy];
        store(values.values[v], (erased >> v & 1) != 0 ? 0.0f : value);
      }
      out[y * plan.row_packets] = values;
    }
  }
}

// For images of any size, read and written element by element: a thread block processes kPart
// elements of an image.
constexpr int kPart = 4096;

template <class Out>
__global__ void __launch_bounds__(kMaxThreads, 5)
    augment_direct(const AugmentImages job, int parts) {
  const int area = job.height * job.width;
  const int numel = job.channels * area;
  const std::int64_t place = blockIdx.x / static_cast<unsigned>(parts);
  const int part = static_cast<int>(blockIdx.x % static_cast<unsigned>(parts));
  const std::int64_t index = job.indices[place];
  auto* const treatment = reinterpret_cast<DrawnImage*>(shared_memory());
  if (threadIdx.x == 0) {
    *treatment = draw(job, index);
    if (part == 0) {
      job.image_labels[place] = job.labels[index];
    }
  }
  __syncthreads();
  const DrawnImage t = *treatment;
  const std::uint8_t* const pixels = job.pixels + index * numel;
  Out* const out = static_cast<Out*>(job.images) + place * numel;
  // Counts from the beginning of the part: begin + kPart could overflow an int.
  const int begin = part * kPart;
  const int count = numel - begin < kPart ? numel - begin : kPart;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int element = begin + i;
    const int pixel = element / job.channels;
    const int channel = element % job.channels;
    const int y = pixel / job.width;
    const int x = pixel % job.width;
    const int from_x = (t.place.mirrored ? job.width - 1 - x : x) + t.place.right;
    const int from_y = y + t.place.down;
    const int byte = within(from_x, job.width) && within(from_y, job.height)
                         ? pixels[channel * area + from_y * job.width + from_x]
                         : 0;
    const bool erased = t.top <= y && y < t.bottom && t.left <= x && x < t.end;
    store(out[element], erased ? 0.0f : job.table[channel * kLevels + byte]);
  }
}

// A thread block may use 48 KiB of shared memory without special attributes; with about half of
// that, enough thread blocks fit on a multiprocessor.
constexpr std::int64_t kMaxShared = 48 * 1024;
constexpr std::int64_t kShared = 25 * 1024;
constexpr std::int64_t kMaxImages = 16;
// A thread block takes several images only if at least this many thread blocks remain.
constexpr std::int64_t kEnoughBlocks = 1024;

std::int64_t numel_of(const AugmentImages& job) {
  return std::int64_t{job.channels} * job.height * job.width;
}

// Returns no plan if an image and the table exceed shared memory, if the output is not aligned to
// packets, or if a row is not a whole number of packets, at most kMaxThreads.
template <class Out, int kChannels, int kVector>
std::optional<Plan> make_plan(const AugmentImages& job) {
  const std::int64_t row = std::int64_t{job.width} * job.channels;
  const std::int64_t numel = numel_of(job);
  const std::int64_t image = (numel + 15) / 16 * 16;
  const std::int64_t each = image + sizeof(DrawnImage);
  const std::int64_t table =
      std::int64_t{job.channels} * kLevels * kCopies<kChannels> * sizeof(float);
  if (row % kVector != 0 || row / kVector > kMaxThreads || table + each > kMaxShared ||
      !is_aligned(job.images, sizeof(Packet<Out, kVector>))) {
    return {};
  }
  const std::int64_t images = std::clamp<std::int64_t>(
      std::min((kShared - table) / each, job.count / kEnoughBlocks), 1, kMaxImages);
  const std::int64_t row_packets = row / kVector;
  std::int64_t rows_at_once = 1;
  while (rows_at_once < job.height && 2 * rows_at_once * row_packets <= kMaxThreads) {
    rows_at_once *= 2;
  }
  return Plan{// Each image of the block needs a thread that draws its random numbers.
              static_cast<int>(std::min(images, row_packets * rows_at_once)),
              static_cast<int>(image), static_cast<int>(row_packets),
              static_cast<int>(rows_at_once), numel % 16 == 0 && is_aligned(job.pixels, 16)};
}

// If make_plan() finds a plan for these template parameters, launches augment_staged(), sets
// `status` and returns true.
template <class Out, int kChannels, int kVector>
bool queue_staged(const AugmentImages& job, void* stream, int& status) {
  const std::optional<Plan> plan = kChannels == 0 || kChannels == job.channels
                                       ? make_plan<Out, kChannels, kVector>(job)
                                       : std::nullopt;
  if (!plan) {
    return false;
  }
  const auto shared = static_cast<std::size_t>(table_bytes<kChannels>(job.channels)) +
                      static_cast<std::size_t>(plan->images) *
                          (static_cast<std::size_t>(plan->image_bytes) + sizeof(DrawnImage));
  status = launch(
      augment_staged<Out, kChannels, kVector>, (job.count + plan->images - 1) / plan->images,
      plan->row_packets * plan->rows_at_once, shared, stream, job, *plan);
  return true;
}

template <class Out>
int queue(const AugmentImages& job, void* stream) {
  constexpr int kWide = 16 / sizeof(Out);
  int status = 0;
  if (numel_of(job) > 0 && (queue_staged<Out, 3, kWide>(job, stream, status) ||
                            queue_staged<Out, 1, kWide>(job, stream, status) ||
                            queue_staged<Out, 3, 4>(job, stream, status) ||
                            queue_staged<Out, 1, 4>(job, stream, status) ||
                            queue_staged<Out, 0, 1>(job, stream, status))) {
    return status;
  }
  const auto parts =
      static_cast<int>(std::max<std::int64_t>(1, (numel_of(job) + kPart - 1) / kPart));
  return launch(
      augment_direct<Out>, job.count * parts, kMaxThreads, sizeof(DrawnImage), stream, job, parts);
}

}  // namespace

int augment_images(const AugmentImages& job, void* stream) {
  switch (job.element) {
    case Element::F32:
      return queue<float>(job, stream);
    case Element::BF16:
      return queue<__nv_bfloat16>(job, stream);
    default:
      return 1;  // cudaErrorInvalidValue
  }
}

}  // namespace abtrain::kernels
