// SPDX-License-Identifier: LGPL-2.1-or-later
// Which kernels a plan runs, how they divide a frame into tiles, and their memory: plain C++, without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/diff/cuda_tuning.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

/// The arrangement of the planes of a format, which determines the shape of a kernel. Plane 0 has channels0 interleaved
/// channels (2: packed 4:2:2). Each other plane has channels1 channels and is subsampled by the shifts. An alpha plane
/// is not included: no kernel reads it.
struct Layout {
  int sample_bytes, channels0, channels1, planes, shift_x, shift_y;
};
Layout layout_of(const FormatInfo& format);

/// The number of pixels in a row that a lane processes.
constexpr int strip_pixels(int channels0, int sample_bytes) {
  return channels0 == 4 ? 4 : channels0 == 2 ? 8 : tuning.strip_bytes / sample_bytes;
}
/// The number of rows of plane 0 that a lane processes: the rows that share one row of the other planes. More if there
/// is only one plane and the row of a lane has 16 bytes.
constexpr int strip_rows(int channels0, int sample_bytes, int planes, int shift_y) {
  const bool short_row = planes == 1 && strip_pixels(channels0, sample_bytes) * channels0 * sample_bytes <= 16;
  return short_row ? tuning.plane_rows : 1 + shift_y;
}
/// The alignment, in bytes, of the words that a lane loads at once.
constexpr int strip_alignment(int bytes) { return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : 4; }

inline constexpr int compared_tile = 32 * tuning.strip_bytes;  ///< width of the widest compared tile, in pixels
/// The shape of an opened tile, in wide frames (tuning.wide_pixels) and in others. words: words of 32 pixels in the row
/// of a warp; two more lanes hold the words on both sides. parts: warps side by side.
struct Opened {
  static constexpr int words(bool wide) { return wide ? 30 : 15; }
  static constexpr int parts(bool wide) { return wide ? 2 : 1; }
  static constexpr int width(bool wide) { return 32 * words(wide) * parts(wide); }  ///< pixels
};
/// The maximum number of cells that a tile can touch.
constexpr int max_slots(int tile_width) { return (tile_width / min_cell + 2) * (tuning.tile_rows / min_cell + 2); }
static_assert(Opened::width(true) * tuning.tile_rows <= 0xffff, "a count of a tile is a word of 16 bits");

/// What a kernel writes besides counts.
enum class Writes {
  nothing,
  difference,
  changed,  ///< writes the mask or the overlay
  mask,     ///< in an opening: writes the mask of a format without copied channels
  chosen,   ///< for kernels of rare formats: KernelParams::writes decides
};
/// Whether a kernel for `writes` can write `what`.
constexpr bool may_write(Writes writes, Writes what) { return writes == what || writes == Writes::chosen; }

/// The tiles of a picture. A tile is the work of a block.
struct Tiles {
  int width = 0, rows = 0;  ///< size of a tile, in pixels
  int x = 0, y = 0;
  int slots_x = 0, slots = 0;  ///< most cells that a tile can touch: across, and in total
  std::vector<int> first_x;    ///< the cell of slot 0 of each tile in a row
  int record_bytes = 0;        ///< size of a tile's record: a stamp of 4 bytes, and a count of 2 bytes for each slot
  bool share_cells = false;    ///< whether a cell can lie in several tiles
  std::size_t count() const { return std::size_t(x) * y; }
};

/// The kernels of a plan, and how they are launched.
struct Schedule {
  Layout layout{};
  bool compares = true;              ///< whether the comparing kernel runs
  Writes compare = Writes::nothing;  ///< what the comparing kernel writes
  bool scales = false;               ///< whether the analysis is smaller than the frame
  bool restarts = false;             ///< whether the opening makes the frame the reference if the light was switched
  bool opens = false;                ///< whether the mask is opened, spread over the frame and then counted
  Writes open = Writes::nothing;     ///< what the opening writes
  /// Whether the comparison shows the changes before the opening. The opening then writes only pixels that it removes.
  bool corrects = false;
  int threads = 0;              ///< threads of a block
  Tiles analysis;               ///< compared tiles
  Tiles frame;                  ///< tiles whose cells are counted: `analysis`, or the opened tiles
  bool wide = false;            ///< whether tiles are opened as in wide frames; see Opened
  std::size_t open_shared = 0;  ///< dynamic shared memory of the opening, in bytes
  std::uint32_t cell_reciprocal = 0;

  /// The output of a frame: the records of the tiles of the frame, row by row, then a Verdict.
  std::size_t verdict_offset() const { return frame.count() * frame.record_bytes; }
  std::size_t frame_record_bytes() const { return verdict_offset() + 32; }
  /// Whether the opening skips tiles without changed pixels. Then the tiles of both kernels must have the same rows.
  bool skips_tiles() const { return opens && compares && !scales; }
  /// The cell of slot 0 of a tile, along one axis.
  static int first_cell(int tile, int tile_length, int cell_size) { return tile * tile_length / cell_size; }
};
Schedule make_schedule(const Plan& plan);

/// The maximum number of cells that `pixels` adjacent pixels touch, if they begin at a multiple of `pixels`.
int slots_along(int pixels, int cell_size);

/// The factor for cell_of().
constexpr std::uint32_t cell_reciprocal(std::uint32_t cell_size) {
  return std::uint32_t(((1ull << 32) + cell_size - 1) / cell_size);
}

inline constexpr std::size_t state_bytes = 256;

/// The device memory of a plan, in two blocks. Offsets in bytes, multiples of 256; none: not needed.
struct Memory {
  // In the first block, which another plan can take over:
  std::vector<std::size_t> ring;  ///< kept frames
  std::size_t model = none;       ///< the background, the mixture or the adaptive background
  std::size_t state = none;       ///< State in cuda_params.cuh, state_bytes
  std::size_t kept_bytes = 0;
  // In the second block, bits in rows of Plan::mask_pitch():
  std::size_t unmasked = none, changed = none, foreground = none;
  std::size_t final_mask = none;                        ///< bits of the frame (see final_pitch()); may be `changed`
  std::size_t found_tiles = none, filled_tiles = none;  ///< see KernelParams
  /// See CellList: the list, the stamps, and the number of cells with a counter of cuda_looks.cu.
  std::size_t list = none, list_stamps = none, list_count = none;
  /// See Plan::completes(): the filled mask of the analysis, if the analysis is smaller than the frame; the mask that
  /// is shown; records that nobody reads.
  std::size_t filled = none, shown = none, spare_records = none;
  std::size_t learning = none;                        ///< a byte for each cell; see Diff::steer()
  std::size_t small = none, small_difference = none;  ///< pictures of the analysis; see frame_layout()
  std::size_t bits_bytes = 0;

  static constexpr std::size_t none = std::size_t(-1);
};
Memory memory_of(const Plan& plan);
/// The size of a row of the final mask, in bytes.
std::size_t final_pitch(const Plan& plan);

/// The bytes of a row of a plane that belong to the picture.
int picture_row_bytes(const Geometry& geometry, int plane);

}  // namespace cudavision::diff
