// SPDX-License-Identifier: LGPL-2.1-or-later
// Which kernels a plan runs, how they cut a frame into tiles, and what memory they need: plain C++, without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/diff/cuda_tuning.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

/// How the planes of a format lie to each other, which shapes a kernel. Plane 0 has channels0 interleaved channels (2: packed
/// 4:2:2), each other plane has channels1 and is subsampled by the shifts.
struct Layout {
  int sample_bytes, channels0, channels1, planes, shift_x, shift_y;
};
Layout layout_of(const FormatInfo& format);

/// Pixels of a row that a lane works on.
constexpr int strip_pixels(int channels0, int sample_bytes) {
  return channels0 == 4 ? 4 : channels0 == 2 ? 8 : tuning.strip_bytes / sample_bytes;
}
/// Rows of plane 0 that a lane works on: those of one row of the other planes.
constexpr int strip_rows(int shift_y) { return 1 + shift_y; }

inline constexpr int widest_tile = 32 * tuning.strip_bytes;  ///< pixels
/// Most cells that a tile touches.
inline constexpr int max_slots = (widest_tile / min_cell + 2) * (tuning.tile_rows / min_cell + 2);
static_assert(widest_tile * tuning.tile_rows <= 0xffff, "a count of a tile is a word of 16 bits");

/// What a kernel writes, besides counts.
enum class Writes { nothing, difference, changed };

/// The tiles of a picture, and the records that they store. A tile is a block.
struct Tiles {
  int x = 0, y = 0;
  int slots_x = 0, slots = 0;  ///< cells that a tile can touch: across, and in all
  int record_bytes = 0;        ///< of a tile: the sum of differences (4 bytes), then a count of 16 bits for each slot
  std::size_t bytes() const { return std::size_t(x) * y * record_bytes; }
};

/// What a plan runs.
struct Schedule {
  Layout layout{};
  bool compares = true;              ///< whether the comparing kernel runs
  Writes compare = Writes::nothing;  ///< what it writes
  bool scales = false;               ///< whether the analysis has a part of the size of the frame
  bool restarts = false;             ///< whether a kernel makes the frame the reference if light was switched; not of a mixture
  bool opens = false;                ///< whether a last kernel opens the mask, spreads it over the frame and counts
  Writes open = Writes::nothing;     ///< what the last kernel writes
  int tile_width = 0, threads = 0;   ///< pixels; of a block
  Tiles frame;                       ///< of the kernel that counts cells
  Tiles analysis;                    ///< of the comparing kernel; equal to `frame` if nothing scales, else without slots
  std::uint32_t cell_reciprocal = 0;

  /// The records of a frame: of the tiles of the frame, row by row, then of those of the analysis if they differ, then a Verdict.
  std::size_t analysis_offset() const { return scales ? frame.bytes() : 0; }
  std::size_t verdict_offset() const { return analysis_offset() + analysis.bytes(); }
  std::size_t frame_record_bytes() const { return verdict_offset() + 32; }
  /// The cell of slot 0 of a tile, along one axis.
  static int first_cell(int tile, int tile_length, int cell_size) { return tile * tile_length / cell_size; }
};
Schedule make_schedule(const Plan& plan);

/// Most cells that `pixels` neighbouring pixels touch, if they begin at a multiple of `pixels`.
int slots_along(int pixels, int cell_size);

/// Factor for cell_of().
constexpr std::uint32_t cell_reciprocal(std::uint32_t cell_size) {
  return std::uint32_t(((1ull << 32) + cell_size - 1) / cell_size);
}

/// Device memory of a plan, in two blocks. Offsets in bytes, multiples of 256; none: not needed.
struct Memory {
  // In the first block, which another plan can take over:
  std::vector<std::size_t> ring;  ///< kept frames
  std::size_t model = none;       ///< the background, the mixture or the pooled background
  std::size_t state = none;       ///< State in cuda_params.cuh, 256 bytes
  std::size_t kept_bytes = 0;
  // In the second block, bits of rows of Plan::mask_pitch():
  std::size_t counted = none, changed = none, foreground = none;
  std::size_t small = none, small_difference = none;  ///< pictures of the analysis, see frame_layout()
  std::size_t bits_bytes = 0;

  static constexpr std::size_t none = std::size_t(-1);
};
Memory memory_of(const Plan& plan);

/// Bytes of a row of a plane of `geometry` that belong to the picture.
int picture_row_bytes(const Geometry& geometry, int plane);

}  // namespace cudavision::diff
