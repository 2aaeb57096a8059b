// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/compat.hpp"

namespace cudavision {

/// Page-locks the memories of a buffer in place if they have arrived several times. Such memories belong to a pool of
/// pageable memory that upstream reuses, for example videotestsrc or a software decoder. Copies of page-locked memory
/// are several times as fast, and overlap with kernels. A lock ends when the memory is freed. The locked bytes of the
/// process are limited; beyond the limit, memory stays pageable. The context must be current. `visitor`: the caller.
/// Only visits of the first visitor count, because a memory may pass several elements each time.
/// `access`: how the caller maps the buffer afterwards. The buffer must not be mapped yet.
void page_lock_recurring(GstBuffer* buffer, GstMapFlags access, GstCudaContext* context, const void* visitor);

/// How much of a range of system memory is page-locked. A copy by the GPU from or to a partly locked range fails. Such
/// ranges occur if memories overlap (for example, windows of one picture) and one of them is locked. Locks that
/// page_lock_recurring() did not make are detected only at both ends of the range.
enum class PageLocked { no, partly, yes };
PageLocked page_locked(const void* begin, gsize bytes);

}  // namespace cudavision
