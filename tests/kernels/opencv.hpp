// SPDX-License-Identifier: LGPL-2.1-or-later
// For tests that compare with OpenCV's own functions.
#pragma once

#include <opencv2/core.hpp>

#include "tests/kernels/reference/picture.hpp"

namespace cudavision::test {

/// The first plane of a picture, not copied. `type` is that of its pixels: CV_8U, CV_8UC3, …
inline cv::Mat mat_of(const reference::Picture& picture, int type = CV_8U) {
  const Plane plane = picture.at(const_cast<std::uint8_t*>(picture.bytes().data())).planes[0];
  return {picture.geometry().height, picture.geometry().width, type, plane.data, std::size_t(plane.pitch)};
}

}  // namespace cudavision::test
