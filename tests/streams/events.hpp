// SPDX-License-Identifier: LGPL-2.1-or-later
// Random events and queries, valid and invalid.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "tests/streams/random.hpp"

namespace cudavision::streams {

/// Draws fields of raw video caps other than format and size, as text: framerate, colorimetry, interlacing … With
/// `hostile`, some values do not exist.
std::string draw_caps_fields(Random& random, bool hostile);

/// (transfer full) Draws a segment of any format and range.
GstEvent* draw_segment(Random& random);
/// (transfer full) Draws another event of a stream: GAP, TAG, custom events … (never EOS, flushes or caps).
GstEvent* draw_downstream_event(Random& random);
/// (transfer full) Draws an event that downstream or an application sends.
GstEvent* draw_upstream_event(Random& random);

/// (transfer full) Draws a query for a sink pad (CAPS, ACCEPT_CAPS, ALLOCATION …).
GstQuery* draw_sink_query(Random& random, const GstVideoInfo& video);
/// (transfer full) Draws a query for a src pad (LATENCY, POSITION, CAPS …).
GstQuery* draw_src_query(Random& random);

}  // namespace cudavision::streams
