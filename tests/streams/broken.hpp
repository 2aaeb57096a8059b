// SPDX-License-Identifier: LGPL-2.1-or-later
// Unusual frames, and invalid frames as from a faulty source.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "tests/streams/random.hpp"

namespace cudavision::streams {

/// Makes a frame that may contradict itself in its GstVideoMeta, crop, regions of interest, flags or times. `buffer`
/// must be writable. Two things are never made, because GStreamer itself fails at them: a GstVideoMeta with more planes
/// than its arrays have, and one with a format that does not exist.
void spoil(Random& random, GstBuffer* buffer, const GstVideoInfo& video);
/// Usually makes the buffer smaller than its caps require.
void shorten(Random& random, GstBuffer* buffer);
/// Makes rows share bytes. The buffer is exactly as large as its GstVideoMeta requires.
void overlap_rows(Random& random, GstBuffer* buffer, const GstVideoInfo& video);

/// Adds unusual but valid metas and flags, which every element must accept: regions of interest (large, empty, many),
/// GAP, DISCONT, interlacing.
void decorate(Random& random, GstBuffer* buffer);

/// Draws a video with one of the formats, a width and height of at least 1, and at most `most_pixels` pixels.
GstVideoInfo raw_video(Random& random, const std::vector<std::string>& formats, int most_pixels);
/// (transfer full) Makes a frame that may fit the video, from memories of about its size, and spoils it.
GstBuffer* raw_frame(Random& random, const GstVideoInfo& video);

}  // namespace cudavision::streams
