// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_scale.hpp"

#include <algorithm>
#include <cstdint>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace cudavision::diff {
namespace {

/// Shrinks the rows of `small` from `begin` to `end`.
template <typename T>
void shrink_rows(const cv::Mat& values, int scale, cv::Mat& small, int begin, int end) {
  const int channels = values.channels();
  std::vector<std::uint32_t> sums(std::size_t(small.cols) * channels);
  for (int y = begin; y < end; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    const int bottom = std::min((y + 1) * scale, values.rows);
    for (int row = y * scale; row < bottom; ++row) {
      const T* from = values.ptr<T>(row);
      for (int x = 0; x < values.cols; ++x)
        for (int c = 0; c < channels; ++c) sums[std::size_t(x / scale) * channels + c] += *from++;
    }
    T* to = small.ptr<T>(y);
    for (int x = 0; x < small.cols; ++x) {
      const std::uint32_t count = std::uint32_t(std::min(scale, values.cols - x * scale)) * (bottom - y * scale);
      for (int c = 0; c < channels; ++c) *to++ = T((sums[std::size_t(x) * channels + c] + count / 2) / count);
    }
  }
}

}  // namespace

void shrink(const cv::Mat& values, int scale, cv::Mat& small) {
  small.create((values.rows + scale - 1) / scale, (values.cols + scale - 1) / scale, values.type());
  cv::parallel_for_({0, small.rows}, [&](const cv::Range& range) {
    values.depth() == CV_8U ? shrink_rows<std::uint8_t>(values, scale, small, range.start, range.end)
                            : shrink_rows<std::uint16_t>(values, scale, small, range.start, range.end);
  });
}

cv::Mat enlarged(const cv::Mat& small, int scale, cv::Size size) {
  cv::Mat all;
  cv::resize(small, all, {small.cols * scale, small.rows * scale}, 0, 0, cv::INTER_NEAREST);
  return all(cv::Rect({0, 0}, size));
}

}  // namespace cudavision::diff
