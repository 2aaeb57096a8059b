// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include "gst/base/compat.hpp"

namespace cudavision {

/// Page-locked system memory, for the CPU and all CUDA contexts. Starts at a page boundary.
struct PinnedBlock {
  void* data;
  gsize bytes;  ///< as allocated; may be more than requested
};

/// Takes a block of at least `bytes`: one that was given back, if it fits, or a new one. Returns CUDA's error if there
/// is none. Any thread may call this while it holds a reference to the context.
cudaError_t take_pinned_block(GstCudaContext* context, gsize bytes, PinnedBlock* block);

/// Gives back a block that was taken with the same context. Neither the CPU nor the GPU may still use it: unlike
/// cudaFreeHost(), this function does not wait. Any thread may call this while it holds a reference to the context.
void give_back_pinned_block(GstCudaContext* context, const PinnedBlock& block);

/// (transfer full) An allocator of page-locked system memory, for the CPU and all CUDA contexts. If the driver has no
/// more page-locked memory, the allocator returns pageable memory.
GstAllocator* pinned_allocator_new(GstCudaContext* context);

}  // namespace cudavision
