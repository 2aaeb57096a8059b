// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <opencv2/core.hpp>

#include "../filter.hpp"

namespace cudavision::cpu {

/// What filters on the CPU share: copying, and OpenCV's view of a plane.
class CpuFilter : public Filter {
 public:
  using Filter::Filter;

 protected:
  Status copy_frame(const Image& src, const Image& dst, Queue queue) override;
  Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override;
};

/// The whole grid of a channel set, without copying: 8- or 16-bit unsigned, `set.channels` channels. In packed 4:2:2 the
/// channels of Role::other are there too, and are not the caller's to write.
cv::Mat set_mat(const Image& image, const ChannelSet& set);

}  // namespace cudavision::cpu
