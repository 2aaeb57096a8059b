// SPDX-License-Identifier: LGPL-2.1-or-later
// A downstream buffer pool that makes invalid frames.
#pragma once

#include <gst/video/video.h>

namespace cudavision::fuzz {

/// (transfer full) Makes a pool of system memory. The rows of its frames share bytes.
GstBufferPool* new_lying_pool();

}  // namespace cudavision::fuzz
