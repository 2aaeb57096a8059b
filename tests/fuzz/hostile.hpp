// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames as no source should make them.
#pragma once

#include "tests/fuzz/frames.hpp"

namespace cudavision::fuzz {

/// Makes a frame lie about itself, in one or several ways: its GstVideoMeta, its crop, its regions of interest, its size, its
/// flags. `buffer` is writable. What GStreamer's own code cannot stand is left out (more than four planes, formats that do not
/// exist). `resizable`: its memory can be shortened, too.
void spoil(Random& random, GstBuffer* buffer, const GstVideoInfo& video, bool resizable);

/// Has rows share bytes, in a buffer that holds what its GstVideoMeta says and not a byte more.
void overlap_rows(Random& random, GstBuffer* buffer, const GstVideoInfo& video);

/// Adds legal and odd metas and flags that every element must stand: regions of interest (large, empty, many), GAP, DISCONT,
/// interlacing.
void decorate(Random& random, GstBuffer* buffer);

}  // namespace cudavision::fuzz
