// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>

#include "kernels/cpu/lanes.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/diff/cpu_stages.hpp"

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
  cv::Mat even;  // pads the mask to whole samples
  const int columns = 1 << shift_x;
  cv::copyMakeBorder(mask, even, 0, shift_y & mask.rows, 0, -mask.cols & (columns - 1), cv::BORDER_REPLICATE);
  cv::Mat any(even.rows >> shift_y, even.cols >> shift_x, CV_8U);
  for (int y = 0; y < any.rows; ++y) {
    const uchar *top = even.ptr(y << shift_y), *bottom = even.ptr((y << shift_y) + shift_y);
    uchar* to = any.ptr(y);
    if (columns == 2) {
      for (int x = 0; x < any.cols; ++x) to[x] = top[2 * x] | top[2 * x + 1] | bottom[2 * x] | bottom[2 * x + 1];
      continue;
    }
    for (int x = 0; x < any.cols; ++x) {
      to[x] = 0;
      for (int i = x * columns; i < (x + 1) * columns; ++i) to[x] |= top[i] | bottom[i];
    }
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
  shown.depth() == CV_8U ? tint_samples<std::uint8_t>(changed, colour, shown)
                         : tint_samples<std::uint16_t>(changed, colour, shown);
}

namespace {

/// show_mask() for one row.
template <int N>
CUDAVISION_INLINE void show_row(const std::uint8_t* mask, int width, std::uint8_t unset, std::uint8_t set,
                                std::uint8_t* to) {
  using Bytes = cpu::Lanes<std::uint8_t, 4 * N>;
  int x = 0;
  for (; x + 4 * N <= width; x += 4 * N) {
    const Bytes here = Bytes::load(mask + x);
    ((here & Bytes(set)) | (no(here) & Bytes(unset))).store(to + x);
  }
  for (; x < width; ++x) to[x] = mask[x] ? set : unset;
}
#ifdef CUDAVISION_AVX2
CUDAVISION_AVX2 void show_row_wide(const std::uint8_t* mask, int width, std::uint8_t unset, std::uint8_t set,
                                   std::uint8_t* to) {
  show_row<8>(mask, width, unset, set, to);
}
#endif
CUDAVISION_FLAT void show_row_narrow(const std::uint8_t* mask, int width, std::uint8_t unset, std::uint8_t set,
                                     std::uint8_t* to) {
  show_row<4>(mask, width, unset, set, to);
}

}  // namespace

void show_mask(const cv::Mat& changed, std::uint8_t unchanged_sample, std::uint8_t changed_sample, cv::Mat& shown) {
  const auto show = CUDAVISION_WIDEST(show_row_wide, show_row_narrow);
  for (int y = 0; y < shown.rows; ++y) show(changed.ptr(y), shown.cols, unchanged_sample, changed_sample, shown.ptr(y));
}

namespace {

/// Adds the set pixels of a row to the counts of the columns.
template <int N>
CUDAVISION_INLINE void add_set(const uchar* mask, int width, std::uint8_t* columns) {
  using Bytes = cpu::Lanes<std::uint8_t, 4 * N>;
  int x = 0;
  for (; x + 4 * N <= width; x += 4 * N) (Bytes::load(columns + x) + (Bytes::load(mask + x) & 1)).store(columns + x);
  for (; x < width; ++x) columns[x] = std::uint8_t(columns[x] + (mask[x] & 1));
}
#ifdef CUDAVISION_AVX2
CUDAVISION_AVX2 void add_set_wide(const uchar* mask, int width, std::uint8_t* columns) {
  add_set<8>(mask, width, columns);
}
#endif
CUDAVISION_FLAT void add_set_narrow(const uchar* mask, int width, std::uint8_t* columns) {
  add_set<4>(mask, width, columns);
}

/// Calls add(x, n) for each mask column x with n > 0 set pixels in the rows begin … end.
template <typename Add>
void count_columns(const cv::Mat& mask, int begin, int end, std::vector<std::uint8_t>& columns, Add add) {
  const auto add_row = CUDAVISION_WIDEST(add_set_wide, add_set_narrow);
  for (int y = begin; y < end;) {
    columns.assign(std::size_t(mask.cols), 0);
    for (const int most = std::min(end, y + 255); y < most; ++y) add_row(mask.ptr(y), mask.cols, columns.data());
    for (int x = 0; x < mask.cols; ++x)
      if (columns[std::size_t(x)]) add(x, columns[std::size_t(x)]);
  }
}

}  // namespace

void count(const cv::Mat& mask, int scale, const CellGrid& grid, std::vector<std::uint32_t>& cells) {
  cells.assign(grid.changed.size(), 0);
  cpu::for_ranges(grid.height, cpu::analysis_work(double(mask.total()), 0.3), [&](int first, int last) {
    std::vector<std::uint8_t> columns;
    for (int cell_y = first; cell_y < last; ++cell_y) {
      std::uint32_t* const row = &cells[std::size_t(cell_y) * grid.width];
      const int begin = cell_y * grid.cell_size, end = std::min(begin + grid.cell_size, grid.frame_height);
      // The last row and column of the mask may represent fewer pixels.
      const int whole = end / scale;
      const auto add = [&](int height) {
        return [=, &grid](int x, int n) {
          const int at = x * scale;
          row[at / grid.cell_size] += std::uint32_t(n * height * std::min(scale, grid.frame_width - at));
        };
      };
      count_columns(mask, begin / scale, whole, columns, add(scale));
      if (whole * scale < end) count_columns(mask, whole, whole + 1, columns, add(end - whole * scale));
    }
  });
}

}  // namespace cudavision::diff
