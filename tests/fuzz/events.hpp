// SPDX-License-Identifier: LGPL-2.1-or-later
// Events and queries, sensible and not.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "tests/fuzz/random.hpp"

namespace cudavision::fuzz {

/// More fields of raw video caps than format and size, as text: framerate, colorimetry, interlacing … `hostile`: also values that
/// do not exist.
std::string draw_caps_fields(Random& random, bool hostile);

/// (transfer full) A segment of any format and range.
GstEvent* draw_segment(Random& random);
/// (transfer full) Something else that comes with a stream: GAP, TAG, custom events … (Not EOS, flushes, caps.)
GstEvent* draw_downstream_event(Random& random);
/// (transfer full) Something that downstream or an application sends.
GstEvent* draw_upstream_event(Random& random);

/// (transfer full) A query for a sink pad (CAPS, ACCEPT_CAPS, ALLOCATION …).
GstQuery* draw_sink_query(Random& random, const GstVideoInfo& video);
/// (transfer full) A query for a src pad (LATENCY, POSITION, CAPS …).
GstQuery* draw_src_query(Random& random);

}  // namespace cudavision::fuzz
