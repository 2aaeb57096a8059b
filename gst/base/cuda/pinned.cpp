// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/pinned.hpp"

#include "gst/base/log.hpp"

namespace {

struct PinnedMemory {
  GstMemory memory;
  cudavision::PinnedBlock block;
};

struct GstCudaVisionPinnedAllocator {
  GstAllocator parent;
  GstCudaContext* context;
};
struct GstCudaVisionPinnedAllocatorClass {
  GstAllocatorClass parent_class;
};

G_DEFINE_TYPE(GstCudaVisionPinnedAllocator, pinned_allocator, GST_TYPE_ALLOCATOR)
#define PINNED_ALLOCATOR(obj) (reinterpret_cast<GstCudaVisionPinnedAllocator*>(obj))

constexpr char memory_type[] = "GstCudaVisionPinnedMemory";

GstMemory* pinned_alloc(GstAllocator* allocator, gsize size, GstAllocationParams* params) {
  // Allocations begin at a page boundary, which satisfies usual alignments. For a larger alignment, the start is moved.
  const gsize maxsize = size + params->prefix + params->padding + params->align;
  cudavision::PinnedBlock block;
  const cudaError_t error = cudavision::take_pinned_block(PINNED_ALLOCATOR(allocator)->context, maxsize, &block);
  if (error != cudaSuccess) {
    GST_WARNING_OBJECT(allocator, "no page-locked memory (%s): taking %" G_GSIZE_FORMAT " pageable bytes",
                       cudaGetErrorString(error), size);
    return gst_allocator_alloc(nullptr, size, params);
  }
  const gsize misaligned = (GPOINTER_TO_SIZE(block.data) + params->prefix) & params->align;
  const gsize offset = params->prefix + (misaligned ? params->align + 1 - misaligned : 0);

  auto* pinned = g_new0(PinnedMemory, 1);
  pinned->block = block;
  gst_memory_init(&pinned->memory, params->flags, allocator, nullptr, maxsize, params->align, offset, size);
  return &pinned->memory;
}

void pinned_free(GstAllocator* allocator, GstMemory* memory) {
  auto* pinned = reinterpret_cast<PinnedMemory*>(memory);
  if (!memory->parent) cudavision::give_back_pinned_block(PINNED_ALLOCATOR(allocator)->context, pinned->block);
  g_free(pinned);
}

gpointer pinned_map(GstMemory* memory, gsize, GstMapFlags) {
  return reinterpret_cast<PinnedMemory*>(memory)->block.data;
}

void pinned_unmap(GstMemory*) {}

GstMemory* pinned_share(GstMemory* memory, gssize offset, gssize size) {
  GstMemory* parent = memory->parent ? memory->parent : memory;
  auto* shared = g_new0(PinnedMemory, 1);
  shared->block = reinterpret_cast<PinnedMemory*>(memory)->block;
  if (size == -1) size = gssize(memory->size) - offset;
  gst_memory_init(&shared->memory, GstMemoryFlags(GST_MINI_OBJECT_FLAGS(parent) | GST_MINI_OBJECT_FLAG_LOCK_READONLY),
                  memory->allocator, parent, memory->maxsize, memory->align, memory->offset + offset, gsize(size));
  return &shared->memory;
}

void pinned_allocator_init(GstCudaVisionPinnedAllocator* self) {
  GstAllocator* allocator = GST_ALLOCATOR(self);
  allocator->mem_type = memory_type;
  allocator->mem_map = pinned_map;
  allocator->mem_unmap = pinned_unmap;
  allocator->mem_share = pinned_share;
}

void pinned_allocator_dispose(GObject* object) {
  gst_clear_object(&PINNED_ALLOCATOR(object)->context);
  G_OBJECT_CLASS(pinned_allocator_parent_class)->dispose(object);
}

void pinned_allocator_class_init(GstCudaVisionPinnedAllocatorClass* klass) {
  G_OBJECT_CLASS(klass)->dispose = pinned_allocator_dispose;
  GST_ALLOCATOR_CLASS(klass)->alloc = pinned_alloc;
  GST_ALLOCATOR_CLASS(klass)->free = pinned_free;
}

}  // namespace

namespace cudavision {

GstAllocator* pinned_allocator_new(GstCudaContext* context) {
  auto* self = PINNED_ALLOCATOR(g_object_new(pinned_allocator_get_type(), nullptr));
  gst_object_ref_sink(self);
  self->context = GST_CUDA_CONTEXT(gst_object_ref(context));
  return GST_ALLOCATOR(self);
}

}  // namespace cudavision
