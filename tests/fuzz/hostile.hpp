// SPDX-License-Identifier: LGPL-2.1-or-later
// Invalid frames, as a faulty source sends them.
#pragma once

#include "tests/fuzz/frames.hpp"

namespace cudavision::fuzz {

/// Makes a frame contradict itself in one or several ways: its GstVideoMeta, crop, regions of interest, size or flags.
/// `buffer` must be writable. Values at which GStreamer's own code crashes are not used (more than four planes, formats
/// that do not exist).
/// `resizable`: the buffer's memory may also be shortened.
void spoil(Random& random, GstBuffer* buffer, const GstVideoInfo& video, bool resizable);

/// Makes rows share bytes. The buffer is exactly as large as its GstVideoMeta requires.
void overlap_rows(Random& random, GstBuffer* buffer, const GstVideoInfo& video);

/// Adds unusual but valid metas and flags, which every element must accept: regions of interest (large, empty, many),
/// GAP, DISCONT, interlacing.
void decorate(Random& random, GstBuffer* buffer);

}  // namespace cudavision::fuzz
