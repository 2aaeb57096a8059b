// SPDX-License-Identifier: LGPL-2.1-or-later
// For tests that compare with OpenCV's own functions.
#pragma once

#include <opencv2/core.hpp>
#include <utility>
#include <vector>

#include "tests/kernels/reference/picture.hpp"

namespace cudavision::test {

/// The first plane of a picture, not copied. `type` is the pixel type: CV_8U, CV_8UC3, …
inline cv::Mat mat_of(const reference::Picture& picture, int type = CV_8U) {
  const Plane plane = picture.at(const_cast<std::uint8_t*>(picture.bytes().data())).planes[0];
  return {picture.geometry().height, picture.geometry().width, type, plane.data, std::size_t(plane.pitch)};
}

/// The borders that OpenCV's filters support.
inline const std::vector<std::pair<Border, int>> opencv_borders = {{Border::constant, cv::BORDER_CONSTANT},
                                                                   {Border::replicate, cv::BORDER_REPLICATE},
                                                                   {Border::reflect, cv::BORDER_REFLECT},
                                                                   {Border::reflect_101, cv::BORDER_REFLECT_101}};
/// Formats that OpenCV's filters support, and their pixel types.
inline const std::vector<std::pair<Format, int>> opencv_types = {{Format::GRAY8, CV_8UC1},
                                                                 {Format::RGB, CV_8UC3},
                                                                 {Format::RGBA, CV_8UC4},
                                                                 {Format::GRAY16_LE, CV_16UC1},
                                                                 {Format::RGBA64_LE, CV_16UC4}};

}  // namespace cudavision::test
