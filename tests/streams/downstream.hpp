// SPDX-License-Identifier: LGPL-2.1-or-later
// The peer downstream of the element: the caps that it accepts and the buffer pool that it offers.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "tests/streams/random.hpp"

namespace cudavision::streams {

struct Downstream {
  std::string caps = "ANY";
  enum class Pool { none, strange_strides, plain, no_video_meta, lying } pool = Pool::none;

  /// Answers CAPS, ACCEPT_CAPS and ALLOCATION queries. Returns false for any other query.
  bool answer(GstQuery* query) const;

 private:
  void answer_allocation(GstQuery* query) const;
};

/// A `mixer` chooses the size of its output, so the caps then limit that size.
Downstream draw_downstream(Random& random, bool mixer);

}  // namespace cudavision::streams
