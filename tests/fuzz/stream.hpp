// SPDX-License-Identifier: LGPL-2.1-or-later
// The stream that one upstream peer sends into one sink pad.
#pragma once

#include <string>
#include <vector>

#include "tests/streams/frames.hpp"
#include "tests/streams/rig.hpp"

namespace cudavision::fuzz {

struct StreamPlan {
  std::string format, other_format;  ///< caps may alternate between the two
  int width = 1, height = 1, frames = 1;
  bool device = false;          ///< frames in CUDA memory
  bool hostile_frames = false;  ///< some frames are invalid
  bool hostile_caps = false;    ///< some caps have invalid values
  bool disturbed = false;       ///< events, queries, flushes and new caps occur between the frames
};

std::string caps_text(const StreamPlan& plan);
GstVideoInfo video_of(const StreamPlan& plan);
/// Draws a width and height: often very small, odd, or next to a multiple of a kernel's tile size; sometimes large.
void draw_size(streams::Random& random, StreamPlan& plan);

/// Sends a stream as planned, until all frames are sent or the element refuses more.
void feed(streams::Rig& rig, streams::Input& input, streams::Random random, StreamPlan plan);

/// Sends these pictures in this layout, and then EOS. `decorated` adds metas and flags, which depend on `random` but
/// not on the layout.
void feed_pictures(streams::Input& input, streams::Random random, const StreamPlan& plan,
                   const std::vector<streams::Picture>& pictures, streams::Layout layout, bool decorated);

}  // namespace cudavision::fuzz
