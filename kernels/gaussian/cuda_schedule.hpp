// SPDX-License-Identifier: LGPL-2.1-or-later
// Who computes what: the numbers of strips, segments and blocks, and the kernel for a radius. Plain C++, tested without a GPU.
//
//   row of a channel set:  | strip 0 | strip 1 | strip 2 | …  64 bytes each; the first begins at a multiple of 32 bytes
//   a strip, downwards:    | segment 0 | segment 1 | …        `steps` steps of 16 rows each
//   a block:               `warps` warps; each computes one segment
//   the grid:              for each channel set: blocks of edge strips, then blocks of inner strips
//
// An edge strip has a window that leaves the row. Its samples are read one by one, so its warps take longer: its segments come first
// and are shorter.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/core/border.hpp"
#include "kernels/gaussian/cuda_tuning.hpp"

namespace cudavision::gaussian {

inline constexpr int strip_bytes = 64;  ///< of a row, computed by one warp. Fixed: four words a lane, see Store
inline constexpr int step_rows = 16;    ///< computed by a warp at a time. Fixed: the rows of a matrix product

// ---- Windows --------------------------------------------------------------------------------------------------------------------

/// How the matrix products of a sample type are shaped; see cuda_arithmetic.cuh.
struct Products {
  int blocks;  ///< of 16 samples in a strip
  int across;  ///< products across, for each block
  int planes;  ///< bytes of a row sum
  int down;    ///< bytes of a weight
};
CUDAVISION_HOST_DEVICE constexpr Products products(int sample_bytes) {
  return sample_bytes == 1 ? Products{4, 1, 2, 1} : Products{2, 3, 4, 2};
}

/// The bytes and rows that a block of 16 samples × 16 rows depends on.
struct Window {
  int reach = 0;  ///< radius in bytes
  int lead = 0;   ///< bytes by which the window begins before the block: a multiple of 8, at least `reach`
  int gx = 0;     ///< groups of 16 bytes across
  int gy = 0;     ///< groups of 16 rows down
};
/// `stride`: bytes from a sample to the next one of its channel.
Window window_of(int radius_x, int radius_y, int stride, int sample_bytes);

// ---- Kernels --------------------------------------------------------------------------------------------------------------------

/// The largest window of a kernel that keeps its window in registers.
struct KernelShape {
  int gx, gy;
};
/// All such kernels, the cheapest first. Here is the place to add a shape; gx must be even. The most taps across × down:
///            reach       1 channel    2 channels   3 channels   4 channels
///   {2, 2}   8 bytes      17 × 17       9 × 17       5 × 17       5 × 17
///   {4, 2}   24           49 × 17      25 × 17      17 × 17      13 × 17
///   {4, 3}   24           49 × 33      25 × 33      17 × 33      13 × 33
///   {6, 2}   40           81 × 17      41 × 17      27 × 17      21 × 17
///   {10, 3}  72          145 × 33      73 × 33      49 × 33      37 × 33
///   16 bit: {4, 2}        17 × 17       9 × 17       –            5 × 17;     {6, 3}   33 × 33, 17 × 33, –, 9 × 33
inline constexpr std::array<KernelShape, 5> byte_shapes = {{{2, 2}, {4, 2}, {4, 3}, {6, 2}, {10, 3}}};
inline constexpr std::array<KernelShape, 2> word_shapes = {{{4, 2}, {6, 3}}};

/// Index of the first shape that holds a window; −1: none does, and the kernel for large windows computes it.
int find_shape(int sample_bytes, int gx, int gy);

/// Words of a row that a lane of such a kernel loads for a strip.
constexpr int strip_loads(int sample_bytes, int gx) { return 2 * (gx / 2 + (sample_bytes == 1 ? 2 : 1)); }
/// Bytes of a row that a warp of the kernel of a shape loads for a strip: four lanes load each row.
int strip_window(int sample_bytes, int shape);

/// Bytes of shared memory for the bands of the matrices; see cuda_bands.cuh.
CUDAVISION_HOST_DEVICE constexpr int band_bytes(int sample_bytes, int gx, int gy) {
  return products(sample_bytes).across * (16 * gx + 32) + products(sample_bytes).down * (16 * gy + 16);
}

/// Shared memory of the kernel for large windows: the fragments of the matrix across and of the matrix down, then a ring for each
/// warp. The bands are only needed before the rings and share their place.
template <int sample_bytes>
struct LargeLayout {
  static constexpr int margin = (products(sample_bytes).blocks - 1) * sample_bytes;  ///< groups of zeros before the matrix across
  static constexpr int fragment = 2 * 32 * 4;     ///< bytes of a matrix fragment: two words for each lane
  static constexpr int ring_group = 16 * 32 * 4;  ///< bytes of 16 rows in a ring
  static constexpr int loads_ahead = tuning.large_loads;

  int loads;  ///< groups of 16 bytes to load for a strip, a multiple of loads_ahead
  int down;   ///< byte at which the matrix down begins; the matrix across begins at 0
  int ring;   ///< byte at which the rings and the bands begin
  int size;   ///< bytes in all

  CUDAVISION_HOST_DEVICE LargeLayout(int gx, int gy, int warps) {
    loads = (gx + margin + loads_ahead - 1) / loads_ahead * loads_ahead;
    down = (margin + loads) * products(sample_bytes).across * fragment;
    ring = down + gy * products(sample_bytes).down * fragment;
    const int rings = warps * gy * ring_group, band = band_bytes(sample_bytes, gx, gy);
    size = ring + (rings > band ? rings : band);
  }
};
/// Bytes of shared memory, and bytes of a row that a warp loads for a strip.
int large_bytes(int sample_bytes, int gx, int gy, int warps);
int large_window(int sample_bytes, int gx, int gy);
/// The most warps, up to Tuning::large_warps, whose rings fit into `shared_limit` bytes; 0: not even one.
int large_warps(int sample_bytes, int gx, int gy, int shared_limit);

// ---- Strips and segments --------------------------------------------------------------------------------------------------------

/// What a launch computes of a channel set. Horizontal positions are bytes of a row.
struct SetWork {
  int row_bytes = 0;                       ///< of the whole plane
  int x0 = 0, x1 = 0;                      ///< to write: [x0, x1)
  int y0 = 0, y1 = 0;                      ///< rows to write: [y0, y1)
  int lead = 0;                            ///< of the window
  bool all_edges = false;                  ///< every strip is read sample by sample (memory that is not aligned, for example)
  int origin() const { return x0 & ~31; }  ///< where the first strip begins
  int strips() const { return y0 < y1 ? (x1 - origin() + strip_bytes - 1) / strip_bytes : 0; }
  int steps() const { return (y1 - y0 + step_rows - 1) / step_rows; }
};

/// The kernel that computes it, and the device.
struct Workers {
  int warps = 1;      ///< of a block
  int window = 0;     ///< bytes of a row that a warp loads for a strip
  int gy = 1;         ///< groups of rows in a window: the first gy − 1 steps of a segment only fill the ring
  int slots = 1;      ///< blocks that run at the same time on the device
  int max_steps = 1;  ///< of a segment
};

/// The blocks of a channel set. (Kernels read it from their parameters: the order of the fields is part of their machine code.)
struct SetSchedule {
  int first_block;          ///< of the set
  int edge_blocks;          ///< the set's first blocks, which compute edge strips
  int left, edges, strips;  ///< numbers of strips: edge strips at the left end, edge strips, all
  int blocks_x;             ///< blocks side by side that compute the inner strips
  int steps, edge_steps;    ///< of a segment of an inner strip and of an edge strip
};

struct Schedule {
  std::array<SetSchedule, 3> sets{};
  int blocks = 0;  ///< 0: nothing to compute
};

/// Cuts the sets into segments of `steps` steps.
Schedule cut(const std::array<SetWork, 3>& work, int sets, const Workers& workers, int steps);

/// Chooses the number of steps: long segments, because each begins with rows that only fill the ring, but no last wave of blocks
/// that leaves most of the device idle.
Schedule make_schedule(const std::array<SetWork, 3>& work, int sets, const Workers& workers);

/// The segment that a warp computes.
struct Segment {
  int x, y;        ///< byte and row of its upper left corner
  int steps;       ///< 0 or less: nothing to compute
  bool edge;       ///< whether its strip is an edge strip
  int strip, nth;  ///< its strip; its number in the strip

  /// `block` is one of the set's blocks. place() comes next, and sets x and y.
  // cppcheck-suppress uninitMemberVar
  CUDAVISION_HOST_DEVICE Segment(const SetSchedule& set, int block, int warp, int warps) {
    block -= set.first_block;
    edge = block < set.edge_blocks;
    steps = edge ? set.edge_steps : set.steps;
    if (edge) {
      const int id = block * warps + warp, edge_strip = id % set.edges;
      strip = edge_strip < set.left ? edge_strip : set.strips - set.edges + edge_strip;
      nth = id / set.edges;
    } else {
      block -= set.edge_blocks;
      strip = set.left + block % set.blocks_x * warps + warp;
      nth = block / set.blocks_x;
      if (strip >= set.strips - set.edges + set.left) steps = 0;
    }
  }

  /// Places it in the frame and shortens it at the lower end. `origin`, `y0`, `y1`: as in SetWork.
  CUDAVISION_HOST_DEVICE void place(int origin, int y0, int y1) {
    x = origin + strip * strip_bytes;
    y = y0 + nth * steps * step_rows;
    const int left = (y1 - y + step_rows - 1) / step_rows;
    steps = steps < left ? steps : left;
  }
};

}  // namespace cudavision::gaussian
