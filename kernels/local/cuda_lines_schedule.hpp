// SPDX-License-Identifier: LGPL-2.1-or-later
// How the work of windows with 32-bit column sums is divided (cuda_lines.cu). Plain C++, tested without a GPU.
//
//   a line         the column sums of one channel (or of its squares) for a row of windows, in shared memory
//   a chunk        adjacent pixels of a row, with all channels; a thread sums up its columns
//   a strip        columns of the rectangle, and the columns on both sides that the windows need; a strip is as wide as
//                  a block
//   a block        `rows` rows of a strip, `batch` of them at a time
//   stored sums    running column sums, which start from zero in each band of rows and are stored at intervals of a
//                  few rows
#pragma once

#include <cstddef>

#include "kernels/core/image.hpp"
#include "kernels/local/cuda_tuning.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

inline constexpr int line_results = 8;                  ///< pixels whose results a lane computes at once
inline constexpr int stored_rows = 16, band_rows = 64;  ///< rows between stored sums; rows of a band
inline constexpr int band_entries = band_rows / stored_rows;

/// The properties of a channel set that select the kernel.
struct LineShape {
  Operation operation = Operation::box_mean;
  int sample_bytes = 1, channels = 1;
  unsigned filtered = 1;  ///< bit c: channel c gets a result
  bool planes = false;    ///< threshold: whether luma is computed from three planes
  bool wide = false;      ///< whether window sums need 64 bits

  /// Whether the kernels rotate the channels of a pixel by one, so that sets that differ only in this share a kernel:
  /// ARGB and RGBA, UYVY and YUY2.
  bool rotated() const {
    return (channels == 2 && filtered == 2) || (channels == 4 && (filtered == 14 || filtered == 5));
  }
  /// `filtered` after the rotation.
  unsigned mask() const {
    return rotated() ? (filtered >> 1 | filtered << (channels - 1)) & ((1u << channels) - 1) : filtered;
  }

  int lines() const {
    int count = 0;
    for (int c = 0; c < channels; ++c) count += filtered >> c & 1;
    if (operation == Operation::threshold) return 1;
    return operation == Operation::deviation ? count * 2 : count;
  }
  /// The number of pixels in a chunk.
  int chunk() const { return line_chunk(sample_bytes, channels); }
  static constexpr int line_chunk(int sample_bytes, int channels) {
    return channels == 1 || (channels == 2 && sample_bytes == 1) ? 8 : 4;
  }
  /// The largest number of threads in a block. Kernels with many column sums need many registers.
  int most_threads() const { return lines() * chunk() > most_light_columns ? 512 : 1024; }
  static constexpr int most_light_columns = 16;
};

/// The work on one channel set.
struct LineSchedule {
  int threads = 0;  ///< threads of a block: one for each chunk of a strip
  int strip = 0;    ///< pixels of the rectangle in a strip, a multiple of line_results
  int strips = 0;
  int left = 0;  ///< first pixel of the first strip: the rectangle's, rounded down to a multiple of line_results
  int rows = 0, batch = 0;
  int blocks_y = 0;
  int segment = 0;  ///< steps of 32 · line_results pixels that a warp computes one after another
  int shared_bytes = 0;
  int stored_first = 0, stored_chunks = 0;  ///< the columns with stored sums
  int stored_y = 0, stored_entries = 0;     ///< the first row, and the number of stored rows; 0: none
};

/// Whether the sums of windows of this shape fit in 32 bits.
bool line_sums_fit(const LineShape& shape, std::int64_t window);
/// The work on a rectangle. It has no strips if the windows are so wide that blocks would read more than four times as
/// many samples as they write.
LineSchedule schedule_lines(const LineShape& shape, const Rect& grid, const Rect& rect, int radius_x, int radius_y,
                            int multiprocessors, int shared_limit);
/// The bytes needed for stored sums of any rectangle.
std::size_t stored_line_bytes(const LineShape& shape, const Rect& grid, int radius_y);

}  // namespace cudavision::local
