// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests memory that is page-locked in place, and copies from and to it, without a GPU. This file replaces the CUDA
// functions that they call. Like CUDA, these refuse to lock memory twice, and to copy from partly locked memory.
#include "gst/base/cuda/page_locks.hpp"

#include <cstring>
#include <map>
#include <vector>

#include "gst/base/cuda/bus_copies.hpp"
#include "gst/base/log.hpp"
#include "tests/elements/expect.hpp"

GST_DEBUG_CATEGORY(cudavision_debug);

namespace {

using cudavision::test::expect;

std::map<const char*, gsize> locked;  // page-locked memory: begin, bytes

/// The number of bytes of a range that are page-locked.
gsize locked_bytes(const void* data, gsize bytes) {
  const auto* begin = static_cast<const char*>(data);
  gsize sum = 0;
  for (const auto& [first, size] : locked)
    if (first < begin + bytes && begin < first + size)
      sum += gsize(MIN(first + size, begin + bytes) - MAX(first, begin));
  return sum;
}

}  // namespace

extern "C" {
cudaError_t cudaHostRegister(void* data, size_t bytes, unsigned) {
  if (locked_bytes(data, bytes) > 0) return cudaErrorHostMemoryAlreadyRegistered;
  locked[static_cast<char*>(data)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* data) {
  return locked.erase(static_cast<char*>(data)) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  *attributes = {};
  attributes->type = locked_bytes(data, 1) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t row, size_t rows,
                              cudaMemcpyKind kind, cudaStream_t) {
  const bool up = kind == cudaMemcpyHostToDevice;
  const gsize bytes = (up ? from_pitch : to_pitch) * (rows - 1) + row, in_lock = locked_bytes(up ? from : to, bytes);
  if (in_lock > 0 && in_lock < bytes) return cudaErrorInvalidValue;
  for (gsize y = 0; y < rows; ++y)
    std::memcpy(static_cast<char*>(to) + y * to_pitch, static_cast<const char*>(from) + y * from_pitch, row);
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "of the test"; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
gboolean gst_cuda_context_push(GstCudaContext*) { return TRUE; }
gboolean gst_cuda_context_pop(CUcontext*) { return TRUE; }
}

namespace cudavision::cuda {
Status check(cudaError_t error, const char* what) { return error == cudaSuccess ? Status() : Status::resource(what); }
}  // namespace cudavision::cuda

namespace {

using namespace cudavision;

/// One large picture, and memories that are windows of it.
struct Windows {
  static constexpr int width = 64, height = 32;
  static constexpr gsize bytes = gsize(width) * height;
  std::vector<char> picture = std::vector<char>(4 * bytes);
  GstCudaContext* context;

  explicit Windows(GstCudaContext* context_) : context(context_) {
    for (gsize i = 0; i < picture.size(); ++i) picture[i] = char(i * 31 + i / 251);
  }

  /// (transfer full)
  GstMemory* window(gsize offset, gsize size = bytes) {
    return gst_memory_new_wrapped(GstMemoryFlags(0), picture.data() + offset, size, 0, size, nullptr, nullptr);
  }
  /// Passes a memory in a buffer `times` times.
  void visit(GstMemory* memory, int times) const {
    for (int i = 0; i < times; ++i) {
      GstBuffer* buffer = gst_buffer_new();
      gst_buffer_append_memory(buffer, gst_memory_ref(memory));
      page_lock_recurring(buffer, GST_MAP_READ, context, this);
      gst_buffer_unref(buffer);
    }
  }
  Image image(gsize offset) {
    Image image{{Format::GRAY8, width, height}, {}};
    image.planes[0] = {picture.data() + offset, width};
    return image;
  }

  /// Whether a window can be copied in both directions with the right content.
  bool copies(gsize offset) {
    std::vector<char> device(bytes);
    Image on_device{{Format::GRAY8, width, height}, {}};
    on_device.planes[0] = {device.data(), width};
    if (!copy_planes(image(offset), on_device, cudaMemcpyHostToDevice, nullptr, "up").ok()) return false;
    if (std::memcmp(device.data(), picture.data() + offset, bytes) != 0) return false;
    for (char& sample : device) sample = char(~sample);
    if (!copy_planes(on_device, image(offset), cudaMemcpyDeviceToHost, nullptr, "down").ok()) return false;
    return std::memcmp(device.data(), picture.data() + offset, bytes) == 0;
  }
};

void locks_memory_that_comes_again(GstCudaContext* context) {
  Windows windows(context);
  GstMemory* memory = windows.window(0);
  expect(page_locked(windows.picture.data(), Windows::bytes) == PageLocked::no, "memory is not locked by itself");
  windows.visit(memory, 2);
  expect(locked.empty(), "two visits are no recurrence");
  windows.visit(memory, 5);
  expect(locked.size() == 1, "memory that comes again is locked once");
  expect(page_locked(windows.picture.data(), Windows::bytes) == PageLocked::yes, "the whole memory is locked");
  expect(is_page_locked(windows.image(0)), "its picture is copied by itself");
  expect(windows.copies(0), "it is copied");
  gst_memory_unref(memory);
  expect(locked.empty() && page_locked(windows.picture.data(), Windows::bytes) == PageLocked::no,
         "the lock ends with the memory");
}

void copies_windows_that_overlap(GstCudaContext* context) {
  Windows windows(context);
  const gsize half = Windows::bytes / 2;
  GstMemory *middle = windows.window(half), *before = windows.window(0), *after = windows.window(2 * half),
            *all = windows.window(0, 4 * Windows::bytes), *apart = windows.window(4 * half);
  windows.visit(middle, 3);
  for (GstMemory* memory : {before, after, all, apart}) windows.visit(memory, 5);
  expect(locked.size() == 2, "only memories that do not overlap are locked");
  for (gsize offset : {gsize(0), half, 2 * half, 3 * half, 4 * half, half + 1})
    expect(windows.copies(offset), "windows are copied, whichever part of them is locked");
  expect(is_page_locked(windows.image(half)) && is_page_locked(windows.image(4 * half)),
         "a window that is locked is copied by itself");
  for (gsize offset : {gsize(0), 2 * half, 3 * half})
    expect(!is_page_locked(windows.image(offset)), "a window that is partly locked is not");
  expect(page_locked(windows.picture.data(), 4 * Windows::bytes) == PageLocked::partly,
         "a lock in the middle is found");
  for (GstMemory* memory : {middle, before, after, all, apart}) gst_memory_unref(memory);
  expect(locked.empty(), "all locks end");
}

/// The application has page-locked part of the memory.
void copies_memory_that_others_lock(GstCudaContext* context) {
  Windows windows(context);
  expect(cudaHostRegister(windows.picture.data(), 100, cudaHostRegisterPortable) == cudaSuccess, "");
  GstMemory* memory = windows.window(0);
  windows.visit(memory, 5);
  expect(windows.copies(0), "memory that is partly locked is copied");
  expect(!is_page_locked(windows.image(0)), "not by itself");
  gst_memory_unref(memory);
  expect(locked.size() == 1, "the lock of others stays");
  locked.clear();
}

}  // namespace

int main() {
  gst_init(nullptr, nullptr);
  GST_DEBUG_CATEGORY_INIT(cudavision_debug, "cudavision", 0, "");
  auto* context = static_cast<GstCudaContext*>(static_cast<gpointer>(gst_object_ref_sink(gst_bin_new(nullptr))));
  for (const auto test : {locks_memory_that_comes_again, copies_windows_that_overlap, copies_memory_that_others_lock})
    test(context);
  gst_object_unref(context);
  return cudavision::test::exit_status();
}
