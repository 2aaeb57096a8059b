// SPDX-License-Identifier: LGPL-2.1-or-later
// A pool of downstream whose frames lie about themselves.
#pragma once

#include <gst/video/video.h>

namespace cudavision::fuzz {

/// (transfer full) A pool of system memory. The rows of its frames share bytes.
GstBufferPool* new_lying_pool();

}  // namespace cudavision::fuzz
