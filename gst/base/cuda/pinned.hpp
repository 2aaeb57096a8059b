// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include "gst/base/compat.hpp"

namespace cudavision {

/// Page-locked system memory, for the CPU and all CUDA contexts. Begins at a page.
struct PinnedBlock {
  void* data;
  gsize bytes;  ///< as allocated; may be more than requested
};

/// Makes a block of at least `bytes`: a block that was given back, if one fits, or a new one. Returns CUDA's error if
/// there is none. Any thread may call this while it holds a reference to the context.
cudaError_t take_pinned_block(GstCudaContext* context, gsize bytes, PinnedBlock* block);

/// Returns a block that was taken with the same context. Neither the CPU nor the GPU may use it any more: unlike
/// cudaFreeHost(), this waits for nothing. Any thread may call this while it holds a reference to the context.
void give_back_pinned_block(GstCudaContext* context, const PinnedBlock& block);

/// (transfer full) An allocator of page-locked system memory, for the CPU and all CUDA contexts. If the driver has no
/// more page-locked memory, it allocates pageable memory.
GstAllocator* pinned_allocator_new(GstCudaContext* context);

}  // namespace cudavision
