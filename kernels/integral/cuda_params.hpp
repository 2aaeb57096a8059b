// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel, its parameters, and the work of each block. Plain C++, so that tests of the schedule need no GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/host_device.hpp"
#include "kernels/integral/cuda_tuning.hpp"
#include "kernels/integral/integral.hpp"

namespace cudavision::integral {

/// The maximum number of tables in one launch: the channels of a format.
inline constexpr int max_jobs = 4;
/// The width of a tile in entries: two quads (four adjacent samples each) for each of the 32 lanes of a warp. A row of
/// a tile fills whole cache lines.
inline constexpr int tile_width = 256;
inline constexpr int warps = tuning.warps;
inline constexpr int threads = 32 * warps;
static_assert(threads >= tile_width, "one thread adds up one column of a tile");

/// The columns by which tiles overlap if rows may begin inside a sector (cuda_store.cuh): two quads, or a sector of
/// four-byte entries.
inline constexpr int tile_overlap = 8;

/// Where the rows of a table (without the zero column) begin, relative to sectors of 32 bytes.
enum class RowAlignment : std::uint8_t {
  aligned,  ///< every row begins with a sector
  /// Row y begins (y + 1) % 4 entries of four bytes after the start of a 16-byte word. Padded tables with tight rows of
  /// 4n + 1 entries are of this kind.
  stepped,
  other,
};

/// One table: its source, its destination, and its scratch memory.
struct SumJob {
  const unsigned char* src[3];  ///< the first sample; for luma of RGB, the first red, green and blue
  std::ptrdiff_t src_pitch[3];
  unsigned char* dst;
  std::ptrdiff_t dst_pitch;
  /// The first pixel, if pixels of four samples or of three bytes are aligned words; otherwise nullptr.
  const unsigned char* pixels;
  int channel[3];        ///< channels of src[] in such a pixel
  int step;              ///< distance between samples of a row, in bytes
  bool quads;            ///< whether samples are contiguous and quads are aligned words
  bool whole_quads;      ///< whether rows end with a whole quad
  int shift, max_value;  ///< see sample_of()
  int width, height;     ///< samples
  int zero_line;  ///< 1: padded. Row y of the tiles holds samples of row y − 1; column x is in entry x + 1. Otherwise 0
  int tiles_x, tiles_y, first_tile;
  int overlap;    ///< columns at the left of a tile that belong to the previous tile: 0 or tile_overlap
  int tile_step;  ///< columns from tile to tile: tile_width − overlap
  SumType type;
  bool luma;  ///< whether the samples are luma of red, green and blue
  RowAlignment row_alignment;
  // Sums of tiles. If blocks sum and write, the top bit of every word is a mark; see cuda_mark.cuh.
  void* rows;        ///< LineSum [tiles_y][warps][tiles_x][rows of a warp]: row sums of each tile
  void* columns;     ///< ColumnSum [tiles_y][tiles_x][tile_step]: column sums of each tile
  void* totals;      ///< LineSum [tiles_y][tiles_x]: total sum of each tile
  unsigned* summed;  ///< [tiles_y]: number of summed tiles in each row of tiles; used if blocks sum or write
};

struct KernelParams {
  SumJob jobs[max_jobs];
  int count;  ///< number of jobs
  int tiles;  ///< number of tiles of all jobs
  /// The number of tiles that are summed before the first one is written, at least a row of tiles; 0: a block sums and
  /// writes a tile.
  int ahead;
  /// Whether all jobs have the same tiles. Tiles at one position are then consecutive: they read the same samples.
  bool jobs_in_turn;
  /// apart: number of tiles that have stopped waiting. together: number of written tiles modulo 2 · tiles, which
  /// distinguishes odd and even frames.
  unsigned* written;
  int tile_rows;  ///< rows of tiles of all jobs; as many `summed` counters follow `written`

  /// The number of blocks in the launch.
  int blocks() const { return ahead == 0 ? tiles : 2 * tiles; }
};

/// The work of a block. Either each block sums a tile and writes it; or, in the order of blocks, `ahead` tiles are
/// summed, then tiles are summed and written alternately, then the remaining tiles are written. A block needs only sums
/// from blocks with smaller numbers.
struct Turn {
  bool sums, writes;
  int tile;  ///< index of the tile
};
CUDAVISION_HOST_DEVICE inline Turn turn_of(const KernelParams& p, int block) {
  if (p.ahead == 0) return {true, true, block};
  const int later = block - p.ahead, alternate = 2 * (p.tiles - p.ahead);
  const bool sums = later < 0 || (later < alternate && later % 2 == 0);
  return {sums, !sums,
          later < 0            ? block
          : later >= alternate ? block - p.tiles
          : sums               ? p.ahead + later / 2
                               : later / 2};
}

struct TableTile {
  int job, x, y;
};
CUDAVISION_HOST_DEVICE inline TableTile tile_of(const KernelParams& p, int number) {
  TableTile tile{0, 0, 0};
  if (p.jobs_in_turn) {
    tile.job = number % p.count;
    number /= p.count;
  } else {
    while (tile.job + 1 < p.count && number >= p.jobs[tile.job + 1].first_tile) ++tile.job;
    number -= p.jobs[tile.job].first_tile;
  }
  tile.y = number / p.jobs[tile.job].tiles_x;
  tile.x = number - tile.y * p.jobs[tile.job].tiles_x;
  return tile;
}

/// A kernel, launched with `threads` threads, `shared_bytes` of dynamic shared memory, and KernelParams.
struct TablesKernel {
  const void* kernel = nullptr;
  int shared_bytes = 0;
};

/// The kernel for these samples and sums. `rows`: the rows of a warp that make_schedule() chose, or the largest number
/// if not `together`. `together`: each block sums a tile and writes it.
TablesKernel tables_kernel(int sample_bytes, bool squared, SumType type, int rows, bool together);

}  // namespace cudavision::integral
