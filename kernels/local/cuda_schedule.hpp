// SPDX-License-Identifier: LGPL-2.1-or-later
// How the work of sliding windows is divided (cuda_windows.cu). Plain C++, tested without a GPU.
//
//   the strip       the columns that the windows of the rectangle need, from a multiple of 16 samples on
//   a chunk         `samples` neighbouring samples of a row; a thread sums up the columns of one chunk
//   a block         `rows` rows of the rectangle, `batch` of them at a time, over the whole strip
//   the grid        the blocks of all channel sets, one after another, in one launch
//   a segment       `segment` steps of 32 chunks, which a warp computes one after another
//   an interval     `interval` rows, whose sums a kernel has stored before, where a window is so high that this saves time
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/core/image.hpp"
#include "kernels/local/cuda_tuning.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

/// Samples of a chunk.
constexpr int chunk_samples(Operation operation) {
  return operation == Operation::deviation ? tuning.deviation_chunk : tuning.mean_chunk;
}

/// What one channel set needs in a launch.
struct WindowSet {
  Rect grid;                       ///< of the set
  int channels = 1;                ///< samples a pixel
  Rect rect;                       ///< to compute, not empty
  int radius_x = 0, radius_y = 0;  ///< in samples of the grid
};

/// The work of one channel set.
struct WindowSchedule {
  int first = 0;   ///< first pixel of the strip
  int chunks = 0;  ///< of the strip, 1–1024
  int blocks = 0;
  int segment = 0;    ///< steps of a segment
  int interval = 0;   ///< 0: no stored sums
  int intervals = 0;  ///< number of them
  int table_y = 0;    ///< the first row of the first interval
};

/// The geometry of a launch.
struct WindowLaunch {
  std::array<WindowSchedule, 3> sets;
  int threads = 0;  ///< of a block: the chunks of the widest strip in whole warps
  int rows = 0;     ///< of the rectangle, for a block
  int batch = 0;    ///< rows whose column sums are in shared memory at once
  int blocks = 0;   ///< of all sets
  int shared_bytes = 0;
};

/// Whether windows of these radii can slide over a channel set of 8-bit samples: all of its channels are filtered, no sum of a window or a
/// column overflows, and a row has at most 1024 chunks.
bool can_slide(const Plan& plan, int set);

/// Bytes of a row of column sums (of 16 bits), and of sums of squares (of 32 bits), in shared memory: the strip and 16 bytes of zeros.
constexpr int column_row_bytes(Operation operation, int chunks) { return (chunks * chunk_samples(operation) / 8 + 1) * 16; }
constexpr int square_row_bytes(Operation operation, int chunks) {
  return operation == Operation::deviation ? (chunks * chunk_samples(operation) / 4 + 1) * 16 : 0;
}

/// `sets`: one to three.
WindowLaunch schedule_windows(Operation operation, const std::vector<WindowSet>& sets, int multiprocessors);

/// Bytes for the stored sums of any rectangle of the grid: of the samples, of their squares.
struct StoredBytes {
  std::size_t sums = 0, squares = 0;
};
StoredBytes stored_bytes(Operation operation, const Rect& grid, int channels, int radius_y);

}  // namespace cudavision::local
