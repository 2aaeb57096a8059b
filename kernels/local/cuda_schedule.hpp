// SPDX-License-Identifier: LGPL-2.1-or-later
// How the work of sliding windows is divided (cuda_windows.cu). Plain C++, tested without a GPU.
//
//   a chunk         8 adjacent samples of a row; a thread sums up the columns of one chunk
//   a tile          32 adjacent samples of a row, beginning at a multiple of 32
//   a strip         `tiles` tiles; a block has chunks for a strip and for the samples beside it that its windows need
//   a block         `rows` rows of a strip, a batch at a time
//   the grid        the blocks of all channel sets, one after another, in one launch
//   a group         tiles that some lanes compute one after another; each lane computes a row of the batch
//   an interval     `interval` rows. If windows are so high that it saves time, an earlier kernel stores the sums of
//                   each interval
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/core/image.hpp"
#include "kernels/local/cuda_tuning.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

inline constexpr int window_tile = 32;      ///< samples of a tile
inline constexpr int window_threads = 128;  ///< threads of a block
/// The distance between rows in shared memory, in chunks: odd, so that lanes with eight adjacent rows use all banks.
inline constexpr int window_pitch = window_threads + 1;

/// The number of blocks that must fit on a multiprocessor. `batch`: rows whose sums (deviation: also sums of squares)
/// are in shared memory at once, 8 or 16.
constexpr int window_blocks(Operation operation, int batch) {
  if (operation == Operation::deviation) return tuning.deviation_blocks;
  if (operation == Operation::threshold && batch == 16) return tuning.threshold_blocks;
  return batch == 8 ? tuning.low_blocks : tuning.mean_blocks;
}

/// The data of one channel set in a launch.
struct WindowSet {
  Rect grid;                       ///< grid of the set
  int channels = 1;                ///< samples per pixel
  Rect rect;                       ///< rectangle to compute, not empty
  int radius_x = 0, radius_y = 0;  ///< radii of the window in pixels of the grid, not larger than the grid
};

/// The work of one channel set.
struct WindowSchedule {
  int left = 0;  ///< first sample of the first strip
  int tiles = 0, strips = 0;
  int per_group = 0;  ///< tiles in a group
  int blocks = 0;
  int interval = 0;                         ///< rows in an interval; 0: no stored sums
  int intervals = 0;                        ///< number of intervals
  int table_y = 0;                          ///< the first row of the first interval; may be negative
  int stored_first = 0, stored_chunks = 0;  ///< the chunks with stored sums
};

/// The geometry of a launch.
struct WindowLaunch {
  std::array<WindowSchedule, 3> sets;
  int rows = 0;    ///< rows of the rectangle that a block computes
  int batch = 0;   ///< rows of a batch: 8 or 16
  int blocks = 0;  ///< blocks of all sets
  int shared_bytes = 0;
  bool wide = false;  ///< sums may reach 2^23
};

/// Whether windows of these radii can slide over a channel set of 8-bit samples: all of its channels are filtered, no
/// sum of a window or a column overflows, and a strip has room for the windows.
bool can_slide(const Plan& plan, int set);

/// Chooses the geometry of a launch. `sets`: one to three.
WindowLaunch schedule_windows(Operation operation, const std::vector<WindowSet>& sets, int multiprocessors);

/// The bytes needed for the stored sums of any rectangle of the grid.
std::size_t stored_bytes(Operation operation, const Rect& grid, int channels, int radius_y);

}  // namespace cudavision::local
