// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/frames/cuda_use.hpp"

#include <atomic>
#include <string>

#include "gst/base/cuda/cuda_stream.hpp"
#include "gst/base/cuda/peer_copy.hpp"
#include "gst/frames/primary.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::frames {
namespace {

class MemoryUse : public CudaUse {
 public:
  MemoryUse(GstCudaMemory* memory, Primary* primary) : memory_(memory), primary_(*primary) {}

  int device_id() const override { return device_of(memory_->context); }
  Result<void*> address(void* mapped) const override;
  void mark_written() override { mark_unfinished(memory_); }
  Status wait_for_writer(std::intptr_t stream) override;
  Status hand_back(std::intptr_t stream, int milliseconds) override;
  void end(void (*end)(void*), void* data) override {
    if (used_)
      primary_.after_all_work(end, data);
    else
      end(data);
  }

 private:
  GstCudaMemory* const memory_;
  Primary& primary_;
  std::atomic<bool> used_{false};
};

Status failed(const char* what) { return cuda::check(cudaGetLastError(), what); }

/// Always returns an error, with CUDA's text if there is one.
Status error_of(const char* what) {
  const Status status = failed(what);
  return status.ok() ? Status::resource(what) : status;
}

}  // namespace

bool is_cuda_memory(GstMemory* memory) { return gst_is_cuda_memory(memory); }

Result<std::unique_ptr<CudaUse>> CudaUse::make(GstMemory* memory) {
  GstCudaMemory* cuda_memory = GST_CUDA_MEMORY_CAST(memory);
  auto primary = Primary::of(device_of(cuda_memory->context));
  if (!primary.ok()) return primary.error();
  return std::unique_ptr<CudaUse>(std::make_unique<MemoryUse>(cuda_memory, primary.value()));
}

Result<void*> MemoryUse::address(void* mapped) const {
  if (gst_cuda_context_get_handle(memory_->context) == gst_cuda_context_get_handle(primary_.context())) return mapped;
  if (void* reached = primary_.reach(mapped)) return reached;
  return Status::resource(
      "the frame is in its own CUDA context, which PyTorch, CuPy, JAX and Numba cannot reach: call "
      "pipeline.set_context(cudavision.frames.context(" +
      std::to_string(device_id()) + ")) before the pipeline starts");
}

Status MemoryUse::wait_for_writer(std::intptr_t stream) {
  used_ = true;
  if (stream == -1) return {};
  if (follow_writer(memory_, primary_.context(), stream_of(stream))) return {};
  return error_of("the consumer's stream cannot be made to wait for the frame");
}

Status MemoryUse::hand_back(std::intptr_t stream, int milliseconds) {
  constexpr const char* late = "the GPU has not finished the work on the frame in the given time";
  const CurrentContext current(primary_.context());
  if (!current) return error_of("the primary CUDA context cannot be made current");
  const CudaEvent event(primary_.context());
  if (!event.handle()) return error_of("cannot create an event");
  if (stream != -1) {
    if (!event.record(stream_of(stream))) return error_of("cannot wait for the consumer's stream");
  } else if (!primary_.record_all_work(event.handle())) {  // a driver before CUDA 12.5
    return primary_.wait_for_all_work(milliseconds) ? Status() : Status::late(late);
  }
  return hold_up_users(memory_, event.handle()) ? Status() : wait_for_event(event, milliseconds, late);
}

}  // namespace cudavision::frames
