// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels that cuda.cu launches.
#pragma once

#include "kernels/core/format.hpp"

namespace cudavision::histogram {

/// Takes PixelParams; blocks of tuning.pixel_threads.
const void* pixel_kernel(const FormatInfo& format, bool three_planes);
/// Takes WordParams; blocks of tuning.pixel_threads, with word_counter_bytes of dynamic shared memory.
const void* word_kernel();
/// Takes Gather; blocks of tuning.gather_threads.
const void* gather_kernel();

}  // namespace cudavision::histogram
