// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/compat.hpp"

namespace cudavision {

/// (transfer full) An allocator of page-locked system memory, for the CPU and all CUDA contexts. If the driver has no
/// more, it allocates pageable memory.
GstAllocator* pinned_allocator_new(GstCudaContext* context);

}  // namespace cudavision
