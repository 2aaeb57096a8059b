// SPDX-License-Identifier: LGPL-2.1-or-later
// The division of work: the numbers of strips, segments and blocks, and the kernel for a radius. Plain C++, tested
// without a GPU.
//
//   row of a channel set:  | strip 0 | strip 1 | strip 2 | …  64 bytes each; the first begins at a multiple of 32 bytes
//   a strip, downwards:    | segment 0 | segment 1 | …        `steps` steps of 16 rows each
//   a block:               `warps` warps; each computes one segment.
//                          The kernel for strips counts the strips of a block as one wide strip
//   the grid:              for each channel set: blocks of edge strips, then blocks of inner strips
//
// The window of an edge strip leaves the row, and samples outside the row take longer to read. So segments of edge
// strips are processed first and are shorter.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/core/border.hpp"
#include "kernels/gaussian/cuda_tuning.hpp"

namespace cudavision::gaussian {

inline constexpr int strip_bytes = 64;  ///< bytes of a row that a warp computes. Fixed: four words per lane, see Store
inline constexpr int step_rows = 16;    ///< rows that a warp computes at a time. Fixed: the rows of a matrix product

// ---- Windows --------------------------------------------------------------------------------------------------------

// The matrix across counts elements of a row: bytes, words of 16 bits, or pixels of four bytes.
inline constexpr int pixel_bytes = 4;

/// The number of blocks of 16 elements in a strip.
CUDAVISION_HOST_DEVICE constexpr int strip_blocks(int element_bytes) { return 4 / element_bytes; }

/// The bytes and rows needed for a block of 16 elements × 16 rows.
struct Window {
  int reach = 0;  ///< radius in bytes
  /// Bytes from the start of the window to the block: a multiple of 8 (pixels: of 16), at least `reach`.
  int lead = 0;
  int window_groups_x = 0;  ///< groups of 16 elements across
  int window_groups_y = 0;  ///< groups of 16 rows down
};
/// `reach`: the radius across, in bytes.
Window window_of(int reach, int radius_y, int element_bytes);

// ---- Kernels --------------------------------------------------------------------------------------------------------

/// The largest window of a kernel that keeps its window in registers.
struct KernelShape {
  int window_groups_x, window_groups_y;
};
/// All such kernels, the fastest first. Add new shapes here; window_groups_x must be even for bytes.
/// Largest number of taps, across × down:
///            reach       1 channel    2 channels   3 channels   4 channels
///   {2, 2}   8 bytes      17 × 17       9 × 17       5 × 17       5 × 17
///   {4, 2}   24           49 × 17      25 × 17      17 × 17      13 × 17
///   {4, 3}   24           49 × 33      25 × 33      17 × 33      13 × 33
///   {6, 2}   40           81 × 17      41 × 17      27 × 17      21 × 17
///   {10, 3}  72          145 × 33      73 × 33      49 × 33      37 × 33
///   16 bit: {2, 2}        17 × 17       9 × 17       –            5 × 17;     {3, 3}   33 × 33, 17 × 33, –, 9 × 33
///   pixels: {2, 2}           –            –            –         17 × 17;     {3, 3}   33 × 33
inline constexpr std::array<KernelShape, 5> byte_shapes = {{{2, 2}, {4, 2}, {4, 3}, {6, 2}, {10, 3}}};
inline constexpr std::array<KernelShape, 2> word_shapes = {{{2, 2}, {3, 3}}};
inline constexpr std::array<KernelShape, 2> pixel_shapes = {{{2, 2}, {3, 3}}};

/// The index of the first shape that holds a window; −1: no shape holds it.
int find_shape(int element_bytes, int window_groups_x, int window_groups_y);

/// The number of kinds of samples, each with its own bands. Only packed 4:2:2 has two; its samples are bytes.
CUDAVISION_HOST_DEVICE constexpr int band_kinds(int sample_bytes) { return sample_bytes == 1 ? 2 : 1; }
/// Bytes of shared memory for the bands of the matrices and one additional word; see cuda_bands.cuh.
CUDAVISION_HOST_DEVICE constexpr int band_bytes(int sample_bytes, int window_groups_x, int window_groups_y) {
  return sample_bytes * (band_kinds(sample_bytes) * (16 * window_groups_x + 32) + 16 * window_groups_y + 16) + 4;
}

/// The shared memory of such a kernel: the groups of rows (see kernels/cuda/row_ring.cuh); 1 KB for each warp (see
/// cuda_store.cuh); the matrix down for each warp; the map of the sides; the bands.
struct StripLayout {
  int pitch;  ///< bytes from row to row, chosen so that rows that are read together are in different banks
  int slots;  ///< number of groups: those copied ahead, and those of a window
  int out, down, map, bands;  ///< first byte of each part; the groups begin at 0
  int down_size;              ///< bytes of the matrix down, for each warp
  int size;                   ///< total bytes

  CUDAVISION_HOST_DEVICE constexpr StripLayout(int element_bytes, int window_groups_x, int window_groups_y)
      : pitch(0),
        slots(tuning.groups_ahead + window_groups_y),
        out(0),
        down(0),
        map(0),
        bands(0),
        down_size(0),
        size(0) {
    const bool pixels = element_bytes == pixel_bytes;
    const int sample_bytes = pixels ? 1 : element_bytes, unit = pixels ? 64 : 32;
    const int before = pixels ? 0 : 24;  // largest distance in bytes from a multiple of 32 bytes to the window
    pitch = (strip_bytes * tuning.strip_warps + 16 * element_bytes * (window_groups_x - 1) + before + unit - 1) / unit *
            unit;
    if (pitch / unit % 2 == 0) pitch += unit;
    out = slots * step_rows * pitch;
    down = out + (pixels ? 0 : tuning.strip_warps * step_rows * strip_bytes);
    down_size = sample_bytes * window_groups_y * 32 * 8;
    map = down + tuning.strip_warps * down_size;
    bands = map + pitch / sample_bytes * 4;
    size = bands + band_bytes(sample_bytes, window_groups_x, window_groups_y);
  }
};
int strip_shared(int element_bytes, int shape);

/// The shared memory of the kernel for large windows: the fragments of the matrix across and of the matrix down; then,
/// for each warp, its results, the positions of the samples of its window, and a ring. The bands are needed only before
/// the rings, and use the same memory.
template <int sample_bytes>
struct LargeLayout {
  static constexpr int margin = strip_blocks(sample_bytes) - 1;  ///< groups of zeros before the matrix across
  static constexpr int fragment = 2 * 32 * 4;     ///< bytes of a matrix fragment: two words for each lane
  static constexpr int ring_group = 16 * 32 * 4;  ///< bytes of 16 rows in a ring
  static constexpr int loads_ahead = tuning.large_loads;

  int loads;  ///< groups of 16 samples to load for a strip, a multiple of loads_ahead
  int down;   ///< first byte of the matrix down; the matrix across begins at 0
  int out;    ///< first byte of the memory for the results of the warps
  int map;    ///< first byte of the maps (see load_row()); each has `places` entries
  int places;
  int ring;  ///< first byte of the rings and the bands
  int size;  ///< total bytes

  CUDAVISION_HOST_DEVICE LargeLayout(int window_groups_x, int window_groups_y, int warps) {
    loads = (window_groups_x + margin + loads_ahead - 1) / loads_ahead * loads_ahead;
    down = (margin + loads) * sample_bytes * fragment;
    out = down + window_groups_y * sample_bytes * fragment;
    map = out + warps * step_rows * strip_bytes;
    places = 16 * loads;
    ring = map + warps * places * 4;
    const int rings = warps * window_groups_y * ring_group,
              band = band_bytes(sample_bytes, window_groups_x, window_groups_y);
    size = ring + (rings > band ? rings : band);
  }
};
/// The bytes of shared memory, and the bytes of a row that a warp loads for a strip.
int large_bytes(int sample_bytes, int window_groups_x, int window_groups_y, int warps);
int large_window(int sample_bytes, int window_groups_x, int window_groups_y);
/// The largest number of warps, up to Tuning::large_warps, whose rings fit in `shared_limit` bytes; 0: no warp fits.
int large_warps(int sample_bytes, int window_groups_x, int window_groups_y, int shared_limit);

// ---- Strips and segments --------------------------------------------------------------------------------------------

/// The part of a channel set that a launch computes. Horizontal positions are bytes of a row.
struct SetWork {
  int row_bytes = 0;        ///< bytes of a row of the whole plane
  int x0 = 0, x1 = 0;       ///< bytes to write: [x0, x1)
  int y0 = 0, y1 = 0;       ///< rows to write: [y0, y1)
  int lead = 0;             ///< bytes from the start of a strip's window to the strip
  bool all_edges = false;   ///< whether every strip is read sample by sample, for example from unaligned memory
  int width = strip_bytes;  ///< width of a strip; the kernel for strips counts the strips of a block as one
  int origin() const { return x0 & ~31; }  ///< the byte where the first strip begins
  int strips() const { return y0 < y1 ? (x1 - origin() + width - 1) / width : 0; }
  int steps() const { return (y1 - y0 + step_rows - 1) / step_rows; }
};

/// The properties of the kernel and the device that make_schedule() needs.
struct Workers {
  int warps = 1;   ///< warps of a block, each with its own strip
  int window = 0;  ///< bytes of a row that a warp loads for a strip
  int window_groups_y =
      1;  ///< groups of rows in a window: the first window_groups_y − 1 steps of a segment only fill the ring
  int edge_percent = 100;  ///< steps of a segment of an edge strip, in percent of the steps of an inner segment
  int slots = 1;           ///< blocks that run at the same time on the device
  int max_steps = 1;       ///< largest number of steps of a segment
};

/// The blocks of a channel set. Kernels read it from their parameters.
struct SetSchedule {
  int first_block;          ///< the first block of the set
  int edge_blocks;          ///< number of blocks that compute edge strips; they are the first blocks of the set
  int left, edges, strips;  ///< numbers of strips: edge strips at the left end, all edge strips, all strips
  int blocks_x;             ///< blocks side by side that compute the inner strips
  int steps, edge_steps;    ///< steps of a segment of an inner strip, and of an edge strip
};

struct Schedule {
  std::array<SetSchedule, max_sets> sets{};
  int blocks = 0;  ///< 0: nothing to compute
};

/// Cuts each set into segments of `steps` steps.
Schedule cut(const std::array<SetWork, max_sets>& work, int sets, const Workers& workers,
             const std::array<int, max_sets>& steps);

/// Chooses the numbers of steps. Long segments are more efficient, because each begins with rows that only fill the
/// ring. But segments must not be so long that the last wave of blocks leaves most of the device idle.
Schedule make_schedule(const std::array<SetWork, max_sets>& work, int sets, const Workers& workers);

/// The segment that a warp computes.
struct Segment {
  int x, y;        ///< byte and row of the segment's upper left corner
  int steps;       ///< 0 or less: nothing to compute
  bool edge;       ///< whether its strip is an edge strip
  int strip, nth;  ///< number of its strip; number of the segment in the strip

  /// `block` is one of the set's blocks. The caller then calls set_position(), which sets x and y.
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

  /// Sets the position of the segment in the frame and shortens it at the lower end. `origin`, `y0`, `y1`, `width`: as
  /// in SetWork.
  CUDAVISION_HOST_DEVICE void set_position(int origin, int y0, int y1, int width) {
    x = origin + strip * width;
    y = y0 + nth * steps * step_rows;
    const int left = (y1 - y + step_rows - 1) / step_rows;
    steps = steps < left ? steps : left;
  }
};

}  // namespace cudavision::gaussian
