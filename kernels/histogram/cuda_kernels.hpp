// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels that cuda.cu launches.
#pragma once

#include "kernels/core/format.hpp"

namespace cudavision::histogram {

/// Takes ByteParams; blocks of 32 × Limits::byte_warps threads, with byte_warp_bytes of dynamic shared memory for each warp.
const void* byte_kernel();
/// Takes PixelParams; blocks of tuning.pixel_threads.
const void* pixel_kernel(const FormatInfo& format, bool three_planes);
/// Takes Gather; blocks of tuning.gather_threads.
const void* gather_kernel();

}  // namespace cudavision::histogram
