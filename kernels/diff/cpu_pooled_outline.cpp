// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_pooled_outline.hpp"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "kernels/diff/pooled_outline.hpp"

namespace cudavision::diff::pooled {
namespace {

template <typename T, typename Changed>
void refine_block(const Job& job, int x, int y, Changed changed, cv::Mat& whole) {
  const int scale = 1 << job.log2_scale;
  for (int at_y = y * scale; at_y < std::min((y + 1) * scale, job.whole_height); ++at_y)
    for (int at_x = x * scale; at_x < std::min((x + 1) * scale, job.whole_width); ++at_x)
      whole.ptr(at_y)[at_x] = pixel_changed<T>(job, at_x, at_y, changed) ? 255 : 0;
}

/// Not 0 where at_outline() of a block is true: where the blocks around it, which OpenCV clips to the mask, differ.
cv::Mat outline_of(const cv::Mat& mask) {
  cv::Mat most, least;
  cv::dilate(mask, most, cv::Mat());
  cv::erode(mask, least, cv::Mat());
  return most != least;
}

}  // namespace

void refine_outline(const Job& job, bool bytes, const cv::Mat& mask, const cv::Mat& counted, cv::Mat& whole) {
  const auto changed = [&mask](int x, int y) { return mask.ptr(y)[x] != 0; };
  const cv::Mat outline = outline_of(mask);
  cv::parallel_for_({0, job.height}, [&](const cv::Range& rows) {
    for (int y = rows.start; y < rows.end; ++y) {
      for (int x = 0; x < job.width; ++x) {
        if (!outline.ptr(y)[x] || (!counted.empty() && !counted.ptr(y)[x])) continue;
        bytes ? refine_block<std::uint8_t>(job, x, y, changed, whole)
              : refine_block<std::uint16_t>(job, x, y, changed, whole);
      }
    }
  });
}

}  // namespace cudavision::diff::pooled
