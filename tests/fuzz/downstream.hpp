// SPDX-License-Identifier: LGPL-2.1-or-later
// What is behind the element: which caps it takes, and which pool it has.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "tests/fuzz/random.hpp"

namespace cudavision::fuzz {

struct Downstream {
  std::string caps = "ANY";
  enum class Pool { none, strange_strides, plain, no_video_meta, lying } pool = Pool::none;

  /// Answers CAPS, ACCEPT_CAPS and ALLOCATION. False: it is another query.
  bool answer(GstQuery* query) const;

 private:
  void answer_allocation(GstQuery* query) const;
};

/// `mixer`: the element chooses the size of its output, which must then have bounds.
Downstream draw_downstream(Random& random, bool mixer);

}  // namespace cudavision::fuzz
