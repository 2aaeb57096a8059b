// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/gpu.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gst/base/cuda/bus_copies.hpp"
#include "gst/base/cuda/cuda_stream.hpp"
#include "gst/base/cuda/current_context.hpp"
#include "gst/base/cuda/in_flight.hpp"
#include "gst/base/cuda/page_locks.hpp"
#include "gst/base/cuda/peer_copy.hpp"
#include "gst/base/cuda/pinned.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/log.hpp"
#include "kernels/cuda/filter.hpp"

namespace cudavision {
namespace {

using cuda::check;

constexpr const char* failed_text = "CUDA failed while a frame was being processed";

GstCudaMemory* cuda_memory(GstBuffer* buffer) { return GST_CUDA_MEMORY_CAST(gst_buffer_peek_memory(buffer, 0)); }

void free_plane(void* plane) { (void)check(cudaFree(plane), ""); }  // fails if the context is dead

/// A picture in device memory.
struct DevicePicture {
  Image image;
  std::vector<InContext<void*, free_plane>> planes;
};

/// The longest pause of Gpu::begin_frame(), in ms; 0: none.
int wanted_pause() {
  const char* text = g_getenv("CUDAVISION_DELAY_STREAMS");
  return text ? int(CLAMP(g_ascii_strtoll(text, nullptr, 10), 0, 1000)) : 0;
}

/// Checks that a driver and a device are present. Errors: resource.
Status probe(int device_id) {
  if (Status status = compat::check_running_library(); !status.ok()) return status;
  if (!gst_cuda_load_library()) return Status::resource("the CUDA driver (libcuda.so.1) cannot be loaded");
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return check(error, "no CUDA device");
  if (device_id >= count)
    return Status::resource("cuda-device-id is " + std::to_string(device_id) + ": this machine has " +
                            std::to_string(count) + " CUDA device(s), counted from 0");
  return {};
}

}  // namespace

struct Gpu::State {
  /// Guards `context` and the three members after it. Neighbours and the application ask for the context, offer theirs,
  /// and ask for a pool, all in their own threads. Only the streaming thread changes `stream`, and reads it without the
  /// lock.
  mutable std::mutex mutex;
  GstCudaContext* context = nullptr;
  /// Where to store an offered context while the thread `asking` asks neighbours, bins and the application for one.
  GstCudaContext** asked_for = nullptr;
  std::thread::id asking;
  std::unique_ptr<Stream> stream;
  // For the streaming thread:
  std::unique_ptr<InFlight> in_flight;
  std::unique_ptr<BusCopies> copies;                   // made when the first frame crosses the bus
  std::atomic<bool> downstream_takes_handover{false};  // also set when upstream asks in its own thread
  bool unfinished = false;
  bool downloads = false;  // the current frame is downloaded
  int longest_pause = 0;   // of begin_frame()

  /// A reference to the context, or nullptr.
  Owned<GstCudaContext> ref_context() const {
    std::lock_guard lock(mutex);
    return context ? new_reference(context) : nullptr;
  }
  void ask(GstCudaContext** destination) {
    std::lock_guard lock(mutex);
    asked_for = destination;
    asking = std::this_thread::get_id();
  }
  /// Replaces the context with `fresh` (taken).
  void replace_context(GstCudaContext* fresh) {
    Owned<GstCudaContext> old;  // dropped without holding the lock
    std::lock_guard lock(mutex);
    old.reset(std::exchange(context, fresh));
  }
  void replace_stream(std::unique_ptr<Stream> fresh) {
    std::lock_guard lock(mutex);
    stream.swap(fresh);
  }
};

Gpu::Gpu() : state_(std::make_unique<State>()) {}
Gpu::~Gpu() { close(); }

void Gpu::offer_context(GstElement* element, GstContext* context, int device_id) {
  std::lock_guard lock(state_->mutex);
  const bool asked_for = state_->asked_for && state_->asking == std::this_thread::get_id();
  gst_cuda_handle_set_context(element, context, device_id, asked_for ? state_->asked_for : &state_->context);
}

bool Gpu::answer_context_query(GstElement* element, GstQuery* query) const {
  return gst_cuda_handle_context_query(element, query, state_->ref_context().get());
}

Status Gpu::open(GstElement* element, int device_id) {
  if (Status status = probe(device_id); !status.ok()) return status;
  gst_cuda_memory_init_once();
  state_->longest_pause = wanted_pause();
  close();  // the context may belong to another device, if cuda-device-id was changed
  // close() drops a context that was set on the element, but the element still holds it.
  if (const auto set = owned(gst_element_get_context(element, GST_CUDA_CONTEXT_TYPE)))
    offer_context(element, set.get(), device_id);
  GstCudaContext* context = state_->ref_context().release();
  if (!context) {
    // Answers arrive through set_context() in this thread, and are stored in `context`, which libgstcuda reads without
    // our lock.
    state_->ask(&context);
    gst_cuda_ensure_element_context(element, device_id, &context);
    state_->ask(nullptr);
  }
  if (!context)
    return Status::resource("a CUDA context cannot be created on device " + std::to_string(std::max(device_id, 0)));
  state_->replace_context(context);
  if (open_stream()) return {};

  // The pipeline keeps a context after a permanent failure, and would offer it again. Replace it with a new one.
  context = gst_cuda_context_new(guint(std::max(device_id, 0)));
  if (context) {
    GstContext* fresh = gst_context_new_cuda_context(context);
    state_->replace_context(context);
    gst_element_set_context(element, fresh);
    gst_element_post_message(element, gst_message_new_have_context(GST_OBJECT(element), fresh));
    if (open_stream()) return {};
  }
  close();
  return Status::resource("a CUDA stream cannot be created");
}

bool Gpu::open_stream() {
  const CurrentContext current(state_->context);
  if (!current) return false;
  auto stream = std::make_unique<Stream>(state_->context);
  state_->replace_stream(stream->ok() ? std::move(stream) : nullptr);
  state_->unfinished = false;
  state_->copies.reset();
  if (is_open()) state_->in_flight = std::make_unique<InFlight>(state_->context);
  return is_open();
}

void Gpu::close() {
  state_->downstream_takes_handover = false;
  state_->in_flight.reset();
  state_->copies.reset();
  state_->replace_stream(nullptr);
  state_->replace_context(nullptr);
}

bool Gpu::is_open() const { return state_->stream != nullptr; }

Gpu::Scope::Scope(const Gpu& gpu)
    : pushed_(gpu.is_open() && gst_cuda_context_push(gpu.state_->context)), failed_(gpu.is_open() && !pushed_) {}
Gpu::Scope::~Scope() {
  if (pushed_) gst_cuda_context_pop(nullptr);
}

Queue Gpu::queue() const { return {state_->stream->handle()}; }

namespace {

/// Makes the GPU pause in a stream for a random time of up to `longest` ms. Half of the calls cause no pause.
void pause_randomly(CUstream stream, int longest) {
  const gint ms = g_random_int_range(-longest, longest + 1);  // negative: no pause
  if (ms > 0)
    (void)cudaLaunchHostFunc(
        stream, [](void* pause) { g_usleep(1000 * GPOINTER_TO_UINT(pause)); }, GUINT_TO_POINTER(guint(ms)));
}

}  // namespace

void Gpu::begin_frame() {
  state_->downloads = false;
  if (state_->longest_pause == 0) return;
  pause_randomly(state_->stream->handle(), state_->longest_pause);
  if (!state_->copies) return;
  pause_randomly(state_->copies->upload_stream(), state_->longest_pause);
  pause_randomly(state_->copies->download_stream(), state_->longest_pause);
}

void Gpu::end_frame() {
  if (state_->copies) state_->copies->end_frame(state_->stream->handle());
}

Status Gpu::finish() {
  GST_LOG("waits for the GPU");
  cudaError_t result = state_->copies ? cudaStreamSynchronize(state_->copies->upload_stream()) : cudaSuccess;
  if (result == cudaSuccess) result = cudaStreamSynchronize(state_->stream->handle());
  if (result == cudaSuccess && state_->copies) result = cudaStreamSynchronize(state_->copies->download_stream());
  state_->in_flight->finished(result);
  state_->unfinished = false;
  return check(result, failed_text);
}

bool Gpu::has_unfinished_work() const { return state_->unfinished; }

Result<std::shared_ptr<const Image>> Gpu::allocate(const Geometry& geometry) const {
  const auto picture = std::make_shared<DevicePicture>();
  picture->image.geometry = geometry;
  for (int i = 0; i < info(geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(geometry, i);
    void* plane = nullptr;
    std::size_t pitch = 0;
    if (Status status = check(cudaMallocPitch(&plane, &pitch, bytes.row_bytes, bytes.rows),
                              "cannot allocate a frame on the device");
        !status.ok())
      return status;
    picture->planes.push_back(in_context<free_plane>(state_->context, plane));
    picture->image.planes[i] = {plane, std::ptrdiff_t(pitch)};
  }
  return std::shared_ptr<const Image>(picture, &picture->image);
}

void Gpu::page_lock_recurring(GstBuffer* buffer, GstMapFlags access) const {
  cudavision::page_lock_recurring(buffer, access, state_->context, this);
}

Status Gpu::open_copies() {
  if (!state_->copies) {
    state_->copies = std::make_unique<BusCopies>(state_->context);
    // Frames from other contexts are copied to Staging pictures, which kernels of earlier frames may be using.
    put_in_order(state_->stream->handle(), state_->copies->upload_stream(), CudaEvent(state_->context));
  }
  return state_->copies->ok() ? Status() : Status::resource("CUDA streams for copies cannot be created");
}

Status Gpu::upload(const Image& host, const Image& device) {
  if (Status status = open_copies(); !status.ok()) return status;
  return state_->copies->upload(host, device, state_->stream->handle());
}

bool Gpu::copies_by_itself(const Image& host) { return is_page_locked(host); }

Status Gpu::wait_for_uploads() {
  GST_LOG("waits for the upload of a frame");
  return check(cudaStreamSynchronize(state_->copies->upload_stream()), failed_text);
}

bool Gpu::keep_until_uploaded(GstBuffer* buffer) {
  state_->unfinished = true;
  return state_->in_flight->keep(buffer, state_->copies->upload_stream());
}

Status Gpu::fill(const Image& host, const Image& device) {
  const Status status =
      copy_planes(host, device, cudaMemcpyHostToDevice, state_->stream->handle(), "cannot upload a frame");
  return status.ok() ? check(cudaStreamSynchronize(state_->stream->handle()), failed_text) : status;
}

void Gpu::acquire_staging() {
  if (state_->copies) state_->copies->wait_for_download(state_->stream->handle());
}

Status Gpu::download(const Image& device, const Image& host) {
  if (Status status = open_copies(); !status.ok()) return status;
  state_->downloads = true;
  return state_->copies->download(device, host, state_->stream->handle());
}

Status Gpu::download(const void* device, void* host, gsize bytes) const {
  return check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, state_->stream->handle()),
               "cannot download results");
}

bool Gpu::is_device_buffer(GstBuffer* buffer) {
  return gst_buffer_n_memory(buffer) > 0 && gst_is_cuda_memory(gst_buffer_peek_memory(buffer, 0));
}

GstMapFlags Gpu::map_flag() { return GstMapFlags(GST_MAP_CUDA); }

void Gpu::acquire_to_read(GstBuffer* buffer) {
  state_->stream->wait_for_writer(cuda_memory(buffer));
  if (!state_->stream->precedes_next_writer(cuda_memory(buffer))) state_->in_flight->add(buffer);
}

void Gpu::acquire_to_write(GstBuffer* buffer) const { state_->stream->wait_for_readers(cuda_memory(buffer)); }

bool Gpu::hand_over(GstBuffer* buffer) const {
  return state_->stream->hand_over(cuda_memory(buffer), state_->downstream_takes_handover);
}

bool Gpu::pass_on(GstBuffer* buffer) const {
  return state_->stream->pass_on(cuda_memory(buffer), state_->downstream_takes_handover);
}

bool Gpu::may_hand_over() const { return state_->stream->can_hand_over(state_->downstream_takes_handover); }

void Gpu::keep_for_download(GstBuffer* buffer) { state_->in_flight->add(buffer); }

void Gpu::hold_up_writers() {
  state_->in_flight->filter_added(
      [this](GstBuffer* buffer) { return !state_->stream->hold_up_next_writer(cuda_memory(buffer)); });
}

std::optional<std::uint64_t> Gpu::keep_inputs(bool named) {
  state_->unfinished = true;
  return state_->in_flight->submitted(state_->downloads ? state_->copies->download_stream() : state_->stream->handle(),
                                      named);
}

Gpu::Progress Gpu::progress(std::uint64_t ticket) const {
  const cudaError_t result = state_->in_flight->query(ticket);
  return result == cudaSuccess ? Progress::done : result == cudaErrorNotReady ? Progress::running : Progress::failed;
}

Status Gpu::wait_for(std::uint64_t ticket) const {
  GST_LOG("waits for the GPU");
  return check(state_->in_flight->wait(ticket), failed_text);
}

void Gpu::release(GstMemory* memory) const { mark_finished(GST_CUDA_MEMORY_CAST(memory)); }

bool Gpu::is_foreign(GstBuffer* buffer) const { return cuda_memory(buffer)->context != state_->context; }

bool Gpu::is_on_other_device(GstBuffer* buffer) const {
  return is_foreign(buffer) && device_of(cuda_memory(buffer)->context) != device_of(state_->context);
}

Status Gpu::copy_from_peer(GstBuffer* buffer, const Image& from, const Image& to) {
  GstCudaMemory* memory = cuda_memory(buffer);
  state_->stream->wait_for_writer(memory);
  state_->in_flight->add(buffer);
  return cudavision::copy_from_peer(memory->context, from, state_->context, to, state_->stream->handle());
}

Status Gpu::adopt(GstBuffer* buffer) {
  GstCudaContext* context = cuda_memory(buffer)->context;
  state_->in_flight.reset();
  state_->copies.reset();
  state_->replace_stream(nullptr);
  state_->replace_context(GST_CUDA_CONTEXT(gst_object_ref(context)));
  if (open_stream()) return {};
  return Status::resource("a CUDA stream cannot be created in the context of the incoming frames");
}

GstBufferPool* Gpu::new_device_pool(GstCaps* caps, guint min_buffers, guint max_buffers, guint* size) const {
  GstVideoInfo video;
  if (!video_from_caps(video, caps)) return nullptr;
  GstBufferPool* pool;
  GstStructure* config;
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->stream) return nullptr;
    pool = gst_cuda_buffer_pool_new(state_->context);
    config = gst_buffer_pool_get_config(pool);
    state_->stream->set_on(config);
  }
  gst_buffer_pool_config_set_params(config, caps, guint(GST_VIDEO_INFO_SIZE(&video)), min_buffers, max_buffers);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config(pool, config)) {
    gst_object_unref(pool);
    return nullptr;
  }
  // The pool rounds rows up to the pitch of the device, and sets the size of its buffers accordingly.
  config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_get_params(config, nullptr, size, nullptr, nullptr);
  gst_structure_free(config);
  return pool;
}

Owned<GstBuffer> Gpu::new_device_frame(GstCaps* caps) const {
  guint size;
  const auto pool = owned(new_device_pool(caps, 0, 0, &size));
  GstBuffer* frame = nullptr;
  if (!pool || !gst_buffer_pool_set_active(pool.get(), TRUE) ||
      gst_buffer_pool_acquire_buffer(pool.get(), &frame, nullptr) != GST_FLOW_OK)
    frame = nullptr;
  if (pool) gst_buffer_pool_set_active(pool.get(), FALSE);
  return owned(frame);
}

bool Gpu::follow_pool(GstBufferPool* pool) {
  if (!is_open() || !GST_IS_CUDA_BUFFER_POOL(pool) || GST_CUDA_BUFFER_POOL(pool)->context != state_->context)
    return false;
  GstStructure* config = gst_buffer_pool_get_config(pool);
  if (GstCudaStream* stream = state_->stream->other_stream(config)) {
    const Scope scope(*this);
    (void)finish();  // a failure appears again in the next frame
    std::lock_guard lock(state_->mutex);
    state_->stream->change_to(stream);
  }
  gst_structure_free(config);
  return true;
}

void Gpu::offer_handover(GstQuery* query) { cudavision::offer_handover(query); }
void Gpu::learn_handover(GstQuery* query) { state_->downstream_takes_handover = query && takes_handover(query); }

GstMemory* Gpu::new_linear_memory(gsize bytes) const {
  // libgstcuda allocates pictures, whose rows it may pad. It does not pad rows of this length on any device.
  constexpr gsize row = 1 << 16;
  const gsize rows = (bytes + row - 1) / row;
  if (rows * row > G_MAXUINT) return nullptr;  // the buffer size of a pool is a guint
  const auto caps = owned(gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "RGBA", "width", G_TYPE_INT,
                                              gint(row / 4), "height", G_TYPE_INT, gint(rows), nullptr));
  const auto frame = new_device_frame(caps.get());
  if (!frame) return nullptr;
  GstMemory* memory = gst_buffer_get_memory(frame.get(), 0);
  gst_buffer_remove_all_memory(frame.get());  // so that the pool drops the buffer
  if (gsize(GST_CUDA_MEMORY_CAST(memory)->info.stride[0]) != row) {
    GST_ERROR("rows of %" G_GSIZE_FORMAT " bytes do not lie end to end in CUDA memory", row);
    gst_clear_mini_object(reinterpret_cast<GstMiniObject**>(&memory));
  }
  return memory;
}

GstAllocator* Gpu::new_pinned_allocator() const {
  const auto context = state_->ref_context();
  return context ? pinned_allocator_new(context.get()) : nullptr;
}

}  // namespace cudavision
