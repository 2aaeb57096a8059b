// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_masks.hpp"

#include <algorithm>

namespace cudavision::diff {

namespace {

template <typename T>
void tint_samples(const cv::Mat& changed, const cv::Scalar& colour, cv::Mat& shown) {
  const int channels = shown.channels();
  for (int y = 0; y < shown.rows; ++y) {
    const uchar* mask = changed.ptr(y);
    T* pixel = shown.ptr<T>(y);
    for (int x = 0; x < shown.cols; ++x, pixel += channels)
      for (int c = 0; mask[x] && c < channels; ++c) pixel[c] = T((int(pixel[c]) + int(colour[c]) + 1) / 2);
  }
}

}  // namespace

cv::Mat any_of(const cv::Mat& mask, int shift_x, int shift_y) {
  if (shift_x == 0 && shift_y == 0) return mask;
  cv::Mat even;  // completes the last samples
  cv::copyMakeBorder(mask, even, 0, shift_y & mask.rows, 0, shift_x & mask.cols, cv::BORDER_REPLICATE);
  cv::Mat any(even.rows >> shift_y, even.cols >> shift_x, CV_8U);
  for (int y = 0; y < any.rows; ++y) {
    const uchar *top = even.ptr(y << shift_y), *bottom = even.ptr((y << shift_y) + shift_y);
    uchar* to = any.ptr(y);
    for (int x = 0; x < any.cols; ++x) to[x] = top[2 * x] | top[2 * x + 1] | bottom[2 * x] | bottom[2 * x + 1];
  }
  return any;
}

cv::Mat repeated(const cv::Mat& one, int channels) {
  if (channels == 1) return one;
  cv::Mat all;
  cv::merge(std::vector<cv::Mat>(std::size_t(channels), one), all);
  return all;
}

void tint(const cv::Mat& changed, const cv::Scalar& colour, cv::Mat& shown) {
  shown.depth() == CV_8U ? tint_samples<std::uint8_t>(changed, colour, shown) : tint_samples<std::uint16_t>(changed, colour, shown);
}

void count(const cv::Mat& mask, const CellGrid& grid, std::vector<std::uint32_t>& cells) {
  cells.assign(grid.changed.size(), 0);
  cv::parallel_for_({0, grid.height}, [&](const cv::Range& range) {
    for (int cell_y = range.start; cell_y < range.end; ++cell_y) {
      std::uint32_t* const row = &cells[std::size_t(cell_y) * grid.width];
      const int end = std::min((cell_y + 1) * grid.cell_size, grid.frame_height);
      for (int y = cell_y * grid.cell_size; y < end; ++y) {
        const uchar* pixels = mask.ptr(y);
        for (int cell_x = 0, x = 0; cell_x < grid.width; ++cell_x) {
          const int cell_end = std::min((cell_x + 1) * grid.cell_size, grid.frame_width);
          std::uint32_t changed = 0;
          for (; x < cell_end; ++x) changed += pixels[x] & 1;
          row[cell_x] += changed;
        }
      }
    }
  });
}

}  // namespace cudavision::diff
