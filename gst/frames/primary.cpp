// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/frames/primary.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "gst/base/cuda/peer_copy.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::frames {
namespace {

/// The number of waiting actions.
std::atomic<int> waiting{0};

Status no_device(int device_id, int count) {
  return Status::settings("there is no CUDA device " + std::to_string(device_id) + ": this machine has " +
                          std::to_string(count) + ", counted from 0");
}

}  // namespace

struct Primary::Pending {
  cudaEvent_t event;  // nullptr: all work of the context
  void (*action)(void*);
  void* data;
};

Primary::Primary(GstCudaContext* context, CUcontext handle)
    : context_(context), handle_(handle), queue_(g_async_queue_new()) {
  g_thread_unref(g_thread_new("cudavision-frames", run, this));
}

Result<Primary*> Primary::of(int device_id) {
  static std::mutex mutex;
  static std::map<int, Primary*> primaries;
  std::lock_guard lock(mutex);
  if (const auto found = primaries.find(device_id); found != primaries.end()) return found->second;

  if (Status status = compat::check_running_library(); !status.ok()) return status;
  if (!gst_cuda_load_library() || CuInit(0) != CUDA_SUCCESS)
    return Status::resource("the CUDA driver (libcuda.so.1) cannot be loaded, or finds no device");
  int count = 0;
  CUdevice device = 0;
  if (CuDeviceGetCount(&count) != CUDA_SUCCESS || device_id < 0 || device_id >= count)
    return no_device(device_id, count);
  if (CuDeviceGet(&device, device_id) != CUDA_SUCCESS) return no_device(device_id, count);
  const auto retain = reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(driver_function("cuDevicePrimaryCtxRetain"));
  CUcontext handle = nullptr;
  if (!retain || retain(&handle, device) != CUDA_SUCCESS)
    return Status::resource("the primary CUDA context of device " + std::to_string(device_id) + " cannot be made");
  GstCudaContext* context = gst_cuda_context_new_wrapped(handle, device);
  if (!context)
    return Status::resource("GStreamer cannot use the primary CUDA context of device " + std::to_string(device_id));
  GST_OBJECT_FLAG_SET(context, GST_OBJECT_FLAG_MAY_BE_LEAKED);
  return primaries[device_id] = new Primary(context, handle);
}

void* Primary::reach(void* pointer) const {
  static const auto attribute =
      reinterpret_cast<CUresult (*)(void*, CUpointer_attribute, CUdeviceptr)>(driver_function("cuPointerGetAttribute"));
  const CurrentContext current(context_);
  CUdeviceptr reached = 0;
  if (!current || !attribute) return nullptr;
  if (attribute(&reached, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CUdeviceptr(pointer)) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<void*>(reached);
}

bool Primary::record_all_work(cudaEvent_t event) const {
  static const auto record = reinterpret_cast<CUresult (*)(CUcontext, CUevent)>(driver_function("cuCtxRecordEvent"));
  return record && record(handle_, event) == CUDA_SUCCESS;
}

void Primary::after_all_work(void (*action)(void*), void* data) {
  after([this](cudaEvent_t event) { return record_all_work(event); }, action, data);
}

void Primary::after_work_of(CUstream stream, void (*action)(void*), void* data) {
  after([stream](cudaEvent_t event) { return cudaEventRecord(event, stream) == cudaSuccess; }, action, data);
}

/// Calls action(data) on the thread when the event recorded by record(event) is reached.
template <typename Record>
void Primary::after(Record&& record, void (*action)(void*), void* data) {
  cudaEvent_t event = nullptr;
  if (const CurrentContext current(context_); current) {
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync) != cudaSuccess)
      event = nullptr;
    else if (!record(event))
      cudaEventDestroy(std::exchange(event, nullptr));
  }
  ++waiting;
  g_async_queue_push(queue_, new Pending{event, action, data});
}

bool Primary::wait_for_all_work(int milliseconds) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  using Shared = std::remove_const_t<decltype(done)>;
  after_all_work(
      [](void* shared) {
        **static_cast<Shared*>(shared) = true;
        delete static_cast<Shared*>(shared);
      },
      new Shared(done));
  const gint64 end = g_get_monotonic_time() + gint64(milliseconds) * 1000;
  while (!*done && g_get_monotonic_time() < end) g_usleep(100);
  return *done;
}

/// The thread: waits for each event in order, and calls its action. If the device failed, it does not wait, because the
/// device no longer works.
void* Primary::run(void* self) {
  auto* primary = static_cast<Primary*>(self);
  for (;;) {
    auto* pending = static_cast<Pending*>(g_async_queue_pop(primary->queue_));
    if (const CurrentContext current(primary->context_); current) {
      if (pending->event) {
        cudaEventSynchronize(pending->event);
        cudaEventDestroy(pending->event);
      } else {
        cudaDeviceSynchronize();  // of the current context
      }
    }
    pending->action(pending->data);
    delete pending;
    --waiting;
  }
  return nullptr;
}

int drain(int milliseconds) {
  const gint64 end = g_get_monotonic_time() + gint64(milliseconds) * 1000;
  while (waiting > 0 && g_get_monotonic_time() < end) g_usleep(200);
  return waiting;
}

Status wait_for_event(const CudaEvent& event, int milliseconds, const char* late) {
  const gint64 end = g_get_monotonic_time() + gint64(milliseconds) * 1000;
  for (;;) {
    const cudaError_t result = event.query();
    if (result != cudaErrorNotReady) return cuda::check(result, "CUDA failed while it worked on a frame");
    if (g_get_monotonic_time() >= end) return Status::late(late);
    g_usleep(100);
  }
}

Result<GstContext*> primary_context(int device_id) {
  auto primary = Primary::of(device_id);
  if (!primary.ok()) return primary.error();
  return gst_context_new_cuda_context(primary.value()->context());
}

}  // namespace cudavision::frames
