// Stands in for CUDA's runtime and driver where there is no GPU: the devices' memory is the
// host's, a stream is a queue with a thread of its own, and a graph is a list of what was
// queued while it was captured. Copies, events and captures work. Kernels are not run: what a
// test checks must be computed on the CPU and copied.
//
// Loaded with LD_PRELOAD, it lets LibTorch's streams, events, allocator and graphs and our code
// above them run as they are.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "stand_in/stand_in.h"

namespace {

using Clock = std::chrono::steady_clock;
using Work = std::function<void()>;

constexpr int kDevices = 4;

struct Graph {
  std::vector<Work> works;
};

class Stream;

// Streams that take part in a capture share one of these.
struct Capture {
  Graph graph;
  std::vector<Stream*> streams;
  bool broken = false;
  bool ended = false;
};

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) {
    last_error = error;
  }
  return error;
}

class Stream {
 public:
  explicit Stream(int number) : device(number) {}

  const int device;
  // Only one thread queues on a stream at a time, or captures into it.
  std::shared_ptr<Capture> capture;
  bool joined = true;  // nothing was captured that no other stream of the capture waits for

  void push(Work work) {
    if (capture) {
      joined = false;
      capture->graph.works.push_back(std::move(work));
      return;
    }
    const std::lock_guard lock(mutex_);
    if (!started_) {
      started_ = true;
      std::thread([this] { run(); }).detach();
    }
    queued_.push_back(std::move(work));
    ++open_;
    changed_.notify_all();
  }

  bool idle() {
    const std::lock_guard lock(mutex_);
    return open_ == 0;
  }

  void drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0; });
  }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queued_.empty(); });
      const Work work = std::move(queued_.front());
      queued_.pop_front();
      lock.unlock();
      // Late, so that whoever does not wait for it sees what was there before.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      work();
      lock.lock();
      --open_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queued_;
  std::size_t open_ = 0;
  bool started_ = false;
};

// Each record of an event has a number; the event is done once the last one was reached.
class Event {
 public:
  std::shared_ptr<Capture> capture;  // in which it was last recorded, and on which stream
  Stream* stream = nullptr;

  long next() {
    const std::lock_guard lock(mutex_);
    return ++recorded_;
  }

  long recorded() {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }

  void reach(long number) {
    const std::lock_guard lock(mutex_);
    reached_ = std::max(reached_, number);
    when_ = Clock::now();
    changed_.notify_all();
  }

  void wait(long number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= number; });
  }

  bool done() {
    const std::lock_guard lock(mutex_);
    return reached_ >= recorded_;
  }

  Clock::time_point when() {
    const std::lock_guard lock(mutex_);
    return when_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  long recorded_ = 0;
  long reached_ = 0;
  Clock::time_point when_;
};

// Streams and events are never freed: queued work may still name them.
struct Devices {
  std::mutex mutex;
  std::map<int, Stream*> default_streams;
  std::vector<Stream*> streams;
  // Memory of devices and pinned memory: begin, bytes, device (-1: pinned).
  struct Memory {
    std::size_t bytes;
    int device;
  };
  std::map<const char*, Memory> memory;
  std::map<std::string, int> failing;  // calls that are to fail, and how often
};

Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

Stream& new_stream() {
  auto* stream = new Stream(current_device);
  const std::lock_guard lock(devices().mutex);
  devices().streams.push_back(stream);
  return *stream;
}

Stream& stream_of(cudaStream_t handle) {
  if (handle != nullptr && handle != cudaStreamLegacy && handle != cudaStreamPerThread) {
    return *reinterpret_cast<Stream*>(handle);
  }
  {
    const std::lock_guard lock(devices().mutex);
    const auto found = devices().default_streams.find(current_device);
    if (found != devices().default_streams.end()) {
      return *found->second;
    }
  }
  Stream& stream = new_stream();
  const std::lock_guard lock(devices().mutex);
  return *devices().default_streams.emplace(current_device, &stream).first->second;
}

Event& event_of(cudaEvent_t handle) {
  return *reinterpret_cast<Event*>(handle);
}

// The block that holds the address.
std::optional<Devices::Memory> memory_at(const void* address) {
  const std::lock_guard lock(devices().mutex);
  const auto* byte = static_cast<const char*>(address);
  auto found = devices().memory.upper_bound(byte);
  if (found == devices().memory.begin()) {
    return std::nullopt;
  }
  --found;
  return byte < found->first + found->second.bytes ? std::optional(found->second) : std::nullopt;
}

cudaError_t allocate(void** memory, std::size_t bytes, int device) {
  const std::size_t whole = (bytes + 511) / 512 * 512;
  *memory = std::aligned_alloc(512, std::max<std::size_t>(whole, 512));
  std::memset(*memory, 0xA5, whole);
  const std::lock_guard lock(devices().mutex);
  devices().memory[static_cast<const char*>(*memory)] = {bytes, device};
  return cudaSuccess;
}

void drain_device() {
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(devices().mutex);
    streams = devices().streams;
  }
  for (Stream* stream : streams) {
    if (stream->device == current_device) {
      stream->drain();
    }
  }
}

cudaError_t release(void* memory) {
  if (memory != nullptr) {
    drain_device();  // as CUDA does
    const std::lock_guard lock(devices().mutex);
    devices().memory.erase(static_cast<const char*>(memory));
    std::free(memory);
  }
  return cudaSuccess;
}

// A call that makes the host wait spoils a capture.
bool spoils(Stream& stream) {
  if (stream.capture) {
    stream.capture->broken = true;
  }
  return stream.capture != nullptr;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, Stream& stream) {
  if (!memory_at(from)) {  // pageable: read before the call returns
    const auto* begin = static_cast<const char*>(from);
    stream.push([to, data = std::vector<char>(begin, begin + bytes)] {
      std::memcpy(to, data.data(), data.size());
    });
    return cudaSuccess;
  }
  stream.push([=] { std::memmove(to, from, bytes); });
  if (!memory_at(to) && !stream.capture) {
    stream.drain();
  }
  return cudaSuccess;
}

// Where a call may leave out a result.
template <class T>
void give(T* place, std::type_identity_t<T> value) {
  if (place != nullptr) {
    *place = value;
  }
}

cudaError_t launch_nothing(cudaStream_t stream) {
  static const int said = std::fprintf(stderr, "stand-in for GPUs: kernels are not run\n");
  static_cast<void>(said);
  stream_of(stream).push([] {});
  return cudaSuccess;
}

}  // namespace

bool abtrain::stand_in::fails(const char* call) {
  const std::lock_guard lock(devices().mutex);
  int& times = devices().failing[call];
  return times > 0 && times-- > 0;
}

using abtrain::stand_in::fails;

extern "C" {

// From now on, the next `times` calls of this name fail.
void abtrain_stand_in_fail(const char* call, int times) {
  const std::lock_guard lock(devices().mutex);
  devices().failing[call] = times;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kDevices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kDevices) {
    return result(cudaErrorInvalidDevice);
  }
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "stand-in %d", device);
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->totalGlobalMem = std::size_t{16} << 30;
  properties->major = 9;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->multiProcessorCount = 1;
  properties->sharedMemPerBlock = 48 << 10;
  properties->regsPerBlock = 65536;
  for (int i = 0; i < 3; ++i) {
    properties->maxGridSize[i] = 65535;
    properties->maxThreadsDim[i] = 1024;
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return last_error;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes, current_device);
}

cudaError_t cudaFree(void* memory) {
  return release(memory);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  return allocate(memory, bytes, -1);
}

cudaError_t cudaFreeHost(void* memory) {
  return release(memory);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{16} << 30;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  if (const auto memory = memory_at(address)) {
    attributes->type = memory->device < 0 ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
    attributes->device = std::max(memory->device, 0);
    attributes->devicePointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(&new_stream());
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) {
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Stream& stream = stream_of(handle);
  if (spoils(stream)) {
    return result(cudaErrorStreamCaptureUnsupported);
  }
  stream.drain();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Stream& stream = stream_of(handle);
  if (spoils(stream)) {
    return result(cudaErrorStreamCaptureUnsupported);
  }
  return stream.idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  drain_device();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t /*event*/) {
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  Event& event = event_of(handle);
  Stream& stream = stream_of(stream_handle);
  event.capture = stream.capture;
  event.stream = &stream;
  if (!stream.capture) {
    stream.push([&event, number = event.next()] { event.reach(number); });
  }
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned) {
  Event& event = event_of(handle);
  Stream& stream = stream_of(stream_handle);
  const auto refuse = [](Capture& capture, cudaError_t error) {
    capture.broken = true;
    return result(error);
  };
  if (event.capture && !event.capture->ended) {
    if (stream.capture && stream.capture != event.capture) {
      return refuse(*stream.capture, cudaErrorStreamCaptureMerge);
    }
    if (!stream.capture) {
      stream.capture = event.capture;
      stream.capture->streams.push_back(&stream);
    }
    event.stream->joined = true;  // the list's order is that of the calls: nothing to wait for
    stream.joined = false;
    return cudaSuccess;
  }
  const long number = event.recorded();
  if (stream.capture && number > 0) {
    return refuse(*stream.capture, cudaErrorStreamCaptureIsolation);
  }
  if (number > 0) {
    stream.push([&event, number] { event.wait(number); });
  }
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Event& event = event_of(handle);
  if (event.capture) {
    event.capture->broken = true;
    return result(cudaErrorCapturedEvent);
  }
  return event.done() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Event& event = event_of(handle);
  if (event.capture) {
    event.capture->broken = true;
    return result(cudaErrorCapturedEvent);
  }
  event.wait(event.recorded());
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!event_of(begin).done() || !event_of(end).done()) {
    return result(cudaErrorNotReady);
  }
  const std::chrono::duration<float, std::milli> between =
      event_of(end).when() - event_of(begin).when();
  *milliseconds = between.count();
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return copy(to, from, bytes, stream_of(stream));
}

cudaError_t cudaMemcpyPeerAsync(
    void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return copy(to, from, bytes, stream_of(stream));
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  copy(to, from, bytes, stream_of(nullptr));
  stream_of(nullptr).drain();
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  stream_of(stream).push([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

// For the stand-in for NCCL: runs a function in the stream's order.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  stream_of(stream).push([=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  Stream& stream = stream_of(handle);
  if (stream.capture || fails("cudaStreamBeginCapture")) {
    return result(cudaErrorIllegalState);
  }
  stream.capture = std::make_shared<Capture>();
  stream.capture->streams.push_back(&stream);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream_of(handle).capture;
  if (!capture) {
    return result(cudaErrorIllegalState);
  }
  capture->ended = true;
  bool joined = true;
  for (Stream* stream : capture->streams) {
    joined &= stream->joined || stream == capture->streams.front();
    stream->capture = nullptr;
    stream->joined = true;
  }
  if (!joined) {
    return result(cudaErrorStreamCaptureUnjoined);
  }
  if (capture->broken || fails("cudaStreamEndCapture")) {
    return result(cudaErrorStreamCaptureInvalidated);
  }
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(capture->graph));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const auto& capture = stream_of(stream).capture;
  *status = !capture          ? cudaStreamCaptureStatusNone
            : capture->broken ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
    cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
    std::size_t* count) {
  cudaStreamIsCapturing(stream, status);
  const auto& capture = stream_of(stream).capture;
  give(id, reinterpret_cast<std::uintptr_t>(capture.get()));
  give(graph, capture ? reinterpret_cast<cudaGraph_t>(&capture->graph) : nullptr);
  give(dependencies, nullptr);
  give(edges, nullptr);
  give(count, 0);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(
    cudaGraphExec_t* graph, cudaGraph_t from, unsigned long long) {
  if (fails("cudaGraphInstantiateWithFlags")) {
    return result(cudaErrorMemoryAllocation);
  }
  *graph = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(from)));
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const Work& work : reinterpret_cast<Graph*>(graph)->works) {
    stream_of(stream).push(work);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = reinterpret_cast<Graph*>(graph)->works.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t stream) {
  return launch_nothing(stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  return launch_nothing(config->stream);
}

// What nvcc's launches call since CUDA 13.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) {
  *kernel = nullptr;
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t stream) {
  return launch_nothing(stream);
}

// The driver: LibTorch asks for a context of each device and for many calls that it never makes.
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}

int cuGetErrorString(int, const char** text) {
  *text = "an error of the stand-in for GPUs";
  return 0;
}

int stand_in_unsupported() {
  return 801;  // CUDA_ERROR_NOT_SUPPORTED
}

cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned, unsigned long long,
    cudaDriverEntryPointQueryResult* status) {
  const std::string name = symbol;
  *function = name == "cuDevicePrimaryCtxGetState"
                  ? reinterpret_cast<void*>(cuDevicePrimaryCtxGetState)
              : name == "cuGetErrorString" ? reinterpret_cast<void*>(cuGetErrorString)
                                           : reinterpret_cast<void*>(stand_in_unsupported);
  give(status, cudaDriverEntryPointSuccess);
  return cudaSuccess;
}

// Named by libcaffe2_nvrtc.so, which looks for them in libcuda.so.1: this library's own name.
#define ABTRAIN_UNSUPPORTED(name)  \
  int name() {                     \
    return stand_in_unsupported(); \
  }
ABTRAIN_UNSUPPORTED(cuCtxGetCurrent)
ABTRAIN_UNSUPPORTED(cuCtxSetCurrent)
ABTRAIN_UNSUPPORTED(cuDeviceGet)
ABTRAIN_UNSUPPORTED(cuDeviceGetAttribute)
ABTRAIN_UNSUPPORTED(cuDevicePrimaryCtxRetain)
ABTRAIN_UNSUPPORTED(cuFuncGetAttribute)
ABTRAIN_UNSUPPORTED(cuFuncSetAttribute)
ABTRAIN_UNSUPPORTED(cuFuncSetCacheConfig)
ABTRAIN_UNSUPPORTED(cuLaunchCooperativeKernel)
ABTRAIN_UNSUPPORTED(cuLaunchKernel)
ABTRAIN_UNSUPPORTED(cuLinkAddData_v2)
ABTRAIN_UNSUPPORTED(cuLinkComplete)
ABTRAIN_UNSUPPORTED(cuLinkCreate_v2)
ABTRAIN_UNSUPPORTED(cuModuleGetFunction)
ABTRAIN_UNSUPPORTED(cuModuleLoad)
ABTRAIN_UNSUPPORTED(cuModuleLoadData)
ABTRAIN_UNSUPPORTED(cuModuleLoadDataEx)
ABTRAIN_UNSUPPORTED(cuModuleUnload)
ABTRAIN_UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
ABTRAIN_UNSUPPORTED(cuPointerGetAttribute)
ABTRAIN_UNSUPPORTED(cuTensorMapEncodeTiled)

}  // extern "C"
