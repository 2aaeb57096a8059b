// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_pooled.hpp"

#include <algorithm>
#include <utility>

namespace cudavision::diff::pooled {
namespace {

template <typename Work>
void for_pixels(const Job& job, Work work) {
  cv::parallel_for_({0, job.height}, [&](const cv::Range& range) {
    for (int y = range.start; y < range.end; ++y)
      for (int x = 0; x < job.width; ++x) work(x, y);
  });
}

/// The median of the bins of the pixels of a cell that are not left out, by value(median); empty if these are too few.
template <typename Bin, typename Value>
float of_cell(const Job& job, int cell_x, int cell_y, Bin bin, Value value) {
  unsigned histogram[bins] = {}, total = 0;
  const int right = std::min((cell_x + 1) * cell, job.width), bottom = std::min((cell_y + 1) * cell, job.height);
  for (int y = cell_y * cell; y < bottom; ++y)
    for (int x = cell_x * cell; x < right; ++x)
      if (const std::size_t at = job.at(x, y); !job.left_out[at]) ++histogram[bin(at)], ++total;
  const unsigned area = unsigned(right - cell_x * cell) * unsigned(bottom - cell_y * cell);
  return total > 0 && 2 * total >= area ? value(median_from(histogram, total, 0, 0)) : empty;
}

/// The gain of the frame, if no cell has one.
float of_frame(const Job& job) {
  unsigned histogram[bins] = {}, total = 0;
  for (std::size_t at = 0; at < job.pixels(); ++at)
    if (!job.left_out[at]) ++histogram[gain_bin(job, at)], ++total;
  return 8 * std::size_t(total) > job.pixels() ? gain_of(median_from(histogram, total, 0, 0)) : 1;
}

/// Fills the cells that are empty, round by round. `none()`: the value if all are empty.
template <typename None>
void fill(const Job& job, float* light, None none) {
  const int cells = job.cells_x * job.cells_y;
  if (std::all_of(light, light + cells, [](float value) { return value == empty; })) {
    std::fill_n(light, cells, none());
    return;
  }
  while (std::count(light, light + cells, empty) > 0) {
    for (int i = 0; i < cells; ++i) job.spare[i] = filled(job, light, i % job.cells_x, i / job.cells_x);
    std::copy_n(job.spare, cells, light);
  }
}

void estimate_light(const Job& job) {
  const int cells = job.cells_x * job.cells_y;
  const auto for_cells = [&](auto work) {
    cv::parallel_for_({0, cells}, [&](const cv::Range& range) {
      for (int i = range.start; i < range.end; ++i) work(i, i % job.cells_x, i / job.cells_x);
    });
  };
  float* const gain = job.light[0];
  for_cells([&](int i, int x, int y) {
    gain[i] = of_cell(
        job, x, y, [&](std::size_t at) { return gain_bin(job, at); }, gain_of);
  });
  fill(job, gain, [&] { return of_frame(job); });
  for (int i = 0; i < cells; ++i) job.spare[i] = smooth(job, gain, i % job.cells_x, i / job.cells_x);
  std::copy_n(job.spare, cells, gain);
  for (int c = 1; c < job.channels; ++c) {
    for_cells([&](int i, int x, int y) {
      job.light[c][i] = of_cell(
          job, x, y, [&](std::size_t at) { return offset_bin(job, c, at, gain[i]); }, offset_of);
    });
    fill(job, job.light[c], [] { return 0.0f; });
  }
}

template <typename T>
void prepare_all(const Job& job, bool begin, bool fresh) {
  for_pixels(job, [&](int x, int y) {
    prepare<T>(job, x, y, begin, fresh);
    show_mean<T>(job, x, y);
  });
}

}  // namespace

void update(const Job& job, bool bytes, std::uint64_t began, cv::Mat& changed) {
  bytes ? prepare_all<std::uint8_t>(job, job.begin, job.begin) : prepare_all<std::uint16_t>(job, job.begin, job.begin);
  if (job.begin) {
    changed.setTo(0);
  } else {
    if (job.compensates) estimate_light(job);
    for_pixels(job, [&](int x, int y) { expect(job, x, y); });
    for_pixels(job, [&](int x, int y) { pool(job, x, y); });
    for_pixels(job, [&](int x, int y) { changed.at<uchar>(y, x) = change(job, x, y) ? 255 : 0; });
    for_pixels(job, [&](int x, int y) { learn(job, x, y, job.number - began); });
  }
}

void begin_anew(const Job& job, bool bytes) {
  bytes ? prepare_all<std::uint8_t>(job, true, false) : prepare_all<std::uint16_t>(job, true, false);
}

}  // namespace cudavision::diff::pooled
