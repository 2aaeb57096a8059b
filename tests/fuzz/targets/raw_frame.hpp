// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames whose bytes decide everything that a frame can say: memories, GstVideoMeta, crop,
// regions of interest, flags and times.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "tests/fuzz/bytes.hpp"

namespace cudavision::fuzz {

/// The video that bytes describe: one of the formats, width and height from 1 on, of at most `most_pixels` pixels.
/// Colorimetry and framerate are any, also without a meaning.
GstVideoInfo raw_video(Bytes& bytes, const std::vector<std::string>& formats, int most_pixels);

/// (transfer full) Makes a frame that may fit the video. Two things are never made, because GStreamer itself fails at
/// them: a GstVideoMeta with more planes than its arrays have, and one of a format that does not exist.
GstBuffer* raw_frame(Bytes& bytes, const GstVideoInfo& video);

}  // namespace cudavision::fuzz
