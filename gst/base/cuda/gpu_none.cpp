// SPDX-License-Identifier: LGPL-2.1-or-later
// Gpu in a build without CUDA: open() fails, so functions that require it are never called.
#include "gst/base/cuda/gpu.hpp"

namespace cudavision {

struct Gpu::State {};

Gpu::Gpu() = default;
Gpu::~Gpu() = default;
void Gpu::offer_context(GstElement*, GstContext*, int) {}
bool Gpu::answer_context_query(GstElement*, GstQuery*) const { return false; }
Status Gpu::open(GstElement*, int) { return Status::resource("this build has no CUDA backend"); }
void Gpu::close() {}
bool Gpu::is_open() const { return false; }
Gpu::Scope::Scope(const Gpu&) : pushed_(false), failed_(false) {}
Gpu::Scope::~Scope() = default;
Queue Gpu::queue() const { return {}; }
void Gpu::begin_frame() {}
void Gpu::end_frame() {}
Status Gpu::finish() { return {}; }
bool Gpu::has_unfinished_work() const { return false; }
Result<std::shared_ptr<const Image>> Gpu::allocate(const Geometry&) const {
  return Status::resource("this build has no CUDA backend");
}
void Gpu::page_lock_recurring(GstBuffer*, GstMapFlags) const {}
Status Gpu::upload(const Image&, const Image&) { return {}; }
bool Gpu::copies_by_itself(const Image&) { return false; }
Status Gpu::wait_for_uploads() { return {}; }
bool Gpu::keep_until_uploaded(GstBuffer*) { return false; }
Status Gpu::fill(const Image&, const Image&) { return {}; }
void Gpu::acquire_staging() {}
Status Gpu::download(const Image&, const Image&) { return {}; }
Status Gpu::download(const void*, void*, gsize) const { return {}; }
bool Gpu::is_device_buffer(GstBuffer*) { return false; }
GstMapFlags Gpu::map_flag() { return GstMapFlags(0); }
void Gpu::acquire_to_read(GstBuffer*) {}
void Gpu::acquire_to_write(GstBuffer*) const {}
bool Gpu::hand_over(GstBuffer*) const { return false; }
bool Gpu::pass_on(GstBuffer*) const { return true; }
bool Gpu::may_hand_over() const { return false; }
void Gpu::hold_up_writers() {}
void Gpu::keep_for_download(GstBuffer*) {}
std::optional<std::uint64_t> Gpu::keep_inputs(bool) { return {}; }
Gpu::Progress Gpu::progress(std::uint64_t) const { return Progress::done; }
Status Gpu::wait_for(std::uint64_t) const { return {}; }
void Gpu::release(GstMemory*) const {}
bool Gpu::is_foreign(GstBuffer*) const { return false; }
bool Gpu::is_on_other_device(GstBuffer*) const { return false; }
Status Gpu::copy_from_peer(GstBuffer*, const Image&, const Image&) { return {}; }
Status Gpu::adopt(GstBuffer*) { return {}; }
GstBufferPool* Gpu::new_device_pool(GstCaps*, guint, guint, guint*) const { return nullptr; }
Owned<GstBuffer> Gpu::new_device_frame(GstCaps*) const { return nullptr; }
bool Gpu::follow_pool(GstBufferPool*) { return false; }
void Gpu::offer_handover(GstQuery*) {}
void Gpu::learn_handover(GstQuery*) {}
GstMemory* Gpu::new_linear_memory(gsize) const { return nullptr; }
GstAllocator* Gpu::new_pinned_allocator() const { return nullptr; }

}  // namespace cudavision
