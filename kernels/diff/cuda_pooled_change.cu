// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled, second kernel: finds the changed pixels under the measured light, and learns (see pooled.hpp).
//
//   grid: tiles of 32 × 16 pixels; a warp has 2 rows of the tile. Each step goes over the tile and a margin, in shared memory:
//
//     | 4 |<- 32 ->| 4 |   margin 4: expected values, evidence        lanes go over all pixels, row by row
//     |   |  tile  |   |   then      sums across 5 pixels of each row
//     |   |        |   |   margin 2: unlike a shadow                  (sums down 5 rows)
//     |   |        |   |   margin 1: above, changed                   (sums down 5 rows; 3 × 3 pixels)
//     |   |        |   |   the tile: near a change -> learn; a warp stores the bits of 32 pixels as one word
//
//   Neighbours read the means of the same pixels, so what is learned goes to another place (Job::next_mean).
//
// Where to change what:
//   the arithmetic         pooled.hpp, for both backends
#include "kernels/diff/cuda_pooled.hpp"

namespace cudavision::diff {
namespace {

using pooled::Expected, pooled::Job, pooled::Light;

constexpr int tile_width = 32, tile_rows = 16, margin = 4;
/// The tile and a margin of `m` pixels.
template <int m>
struct Area {
  static constexpr int width = tile_width + 2 * m, rows = tile_rows + 2 * m, size = width * rows;
};
using Whole = Area<margin>;
/// Cells beside which pixels of the tile and its margin lie.
constexpr int cells_across = (tile_width + 2 * margin - 1) / pooled::cell + 2,
              cells_down = (tile_rows + 2 * margin - 1) / pooled::cell + 2;

/// Sums of 5 pixels of a row; for the pixels of the tile and margins of 2 across, 4 down.
struct RowSums {
  int values[Whole::rows][Area<2>::width];

  /// The sum of 5 × 5 pixels about pixel (x, y) of Area<m>.
  template <int m>
  __device__ __forceinline__ int around(int x, int y) const {
    int sum = 0;
#pragma unroll
    for (int dy = -2; dy <= 2; ++dy) sum += values[y + margin - m + dy][x + 2 - m];
    return sum;
  }
};

struct Shared {
  float light[3][cells_down][cells_across];
  float expected[3][Whole::size];
  int evidence[Whole::size];
  std::int16_t luma[Whole::size];
  RowSums evidence_sums, luma_sums, expected_sums;
  int unlike[Area<2>::size];
  bool above[Area<1>::size], changed[Area<1>::size];
};

struct Tile {
  int x0, y0, cell_x, cell_y;  ///< its first pixel, and the first cell that is used

  __device__ Tile()
      : x0(blockIdx.x * tile_width),
        y0(blockIdx.y * tile_rows),
        cell_x(max(0, (x0 - margin - pooled::cell / 2) / pooled::cell)),
        cell_y(max(0, (y0 - margin - pooled::cell / 2) / pooled::cell)) {}
};

/// Calls work(i, at_x, at_y, x, y) for the pixels of Area<m>, with their place in the area and in the frame.
template <int m, typename Work>
__device__ __forceinline__ void each_pixel(const Tile& tile, Work work) {
  for (int i = threadIdx.x; i < Area<m>::size; i += pooled_threads) {
    const int y = i / Area<m>::width, x = i - y * Area<m>::width;
    work(i, x, y, tile.x0 - m + x, tile.y0 - m + y);
  }
}

__device__ __forceinline__ void load_light(const Job& job, const Tile& tile, Shared& shared) {
  for (int i = threadIdx.x; i < 3 * cells_down * cells_across; i += pooled_threads) {
    const int c = i / (cells_down * cells_across), y = i / cells_across % cells_down, x = i % cells_across;
    const int cell_x = min(tile.cell_x + x, job.cells_x - 1), cell_y = min(tile.cell_y + y, job.cells_y - 1);
    if (c < job.channels)
      shared.light[c][y][x] = c == 0 ? pooled::smooth(job, cell_x, cell_y) : job.light[c][cell_y * job.cells_x + cell_x];
  }
}

__device__ __forceinline__ float gain_or_offset(const Tile& tile, const Shared& shared, int c, const pooled::Between& across,
                                                const pooled::Between& down) {
  const auto of_column = [&](int x) {
    const auto& cells = shared.light[c];
    return pooled::mixed(cells[down.first - tile.cell_y][x - tile.cell_x], cells[down.second - tile.cell_y][x - tile.cell_x],
                         down.weight);
  };
  return pooled::mixed(of_column(across.first), of_column(across.second), across.weight);
}

__device__ __forceinline__ Light light_at(const Job& job, const Tile& tile, const Shared& shared, int x, int y, bool offsets) {
  Light light;
  if (!job.compensates) return light;
  const pooled::Between across = pooled::between(x, job.cells_x), down = pooled::between(y, job.cells_y);
  light.gain = gain_or_offset(tile, shared, 0, across, down);
  for (int c = 1; c < job.channels && offsets; ++c) light.offset[c] = gain_or_offset(tile, shared, c, across, down);
  return light;
}

__device__ __forceinline__ Expected expected_at(const Job& job, const Shared& shared, int i) {
  Expected expected{};
  for (int c = 0; c < job.channels; ++c) expected.values[c] = shared.expected[c][i];
  return expected;
}
/// The place in Area<margin> of pixel (x, y) of Area<m>.
template <int m>
__device__ __forceinline__ int in_whole(int x, int y) {
  return (y + margin - m) * Whole::width + x + margin - m;
}

__device__ __forceinline__ void expect_all(const Job& job, const Tile& tile, Shared& shared) {
  each_pixel<margin>(tile, [&](int i, int, int, int x, int y) {
    Expected expected{};
    int luma = 0;
    if (job.contains(x, y)) {
      const std::size_t at = job.at(x, y);
      expected = pooled::expect(job, at, light_at(job, tile, shared, x, y, true));
      luma = job.frame[at];
    }
    for (int c = 0; c < job.channels; ++c) shared.expected[c][i] = expected.values[c];
    shared.evidence[i] = expected.evidence;
    shared.luma[i] = std::int16_t(luma);
  });
}

__device__ __forceinline__ void add_across(const Job& job, Shared& shared) {
  constexpr int width = Area<2>::width;
  for (int i = threadIdx.x; i < Whole::rows * width; i += pooled_threads) {
    const int y = i / width, x = i - y * width, first = y * Whole::width + x;
    int evidence = 0, luma = 0, expected = 0;
#pragma unroll
    for (int at = first; at < first + 5; ++at) {
      evidence += shared.evidence[at];
      if (!job.drops_shadows) continue;
      luma += shared.luma[at];
      expected += pooled::to_fixed(shared.expected[0][at]);
    }
    shared.evidence_sums.values[y][x] = evidence;
    shared.luma_sums.values[y][x] = luma;
    shared.expected_sums.values[y][x] = expected;
  }
}

__device__ __forceinline__ void compare_with_shadow(const Job& job, const Tile& tile, Shared& shared) {
  each_pixel<2>(tile, [&](int i, int at_x, int at_y, int x, int y) {
    shared.unlike[i] = 0;
    if (!job.contains(x, y)) return;
    shared.unlike[i] = pooled::unlike_shadow(job, job.at(x, y), expected_at(job, shared, in_whole<2>(at_x, at_y)),
                                             shared.luma_sums.around<2>(at_x, at_y), shared.expected_sums.around<2>(at_x, at_y),
                                             pooled::count_around(job, 2, x, y));
  });
}

__device__ __forceinline__ void find_changes(const Job& job, const Tile& tile, Shared& shared) {
  each_pixel<1>(tile, [&](int i, int at_x, int at_y, int x, int y) {
    const bool inside = job.contains(x, y);
    const bool above =
        inside && shared.evidence_sums.around<1>(at_x, at_y) > pooled::threshold * pooled::count_around(job, 2, x, y);
    bool changed = above;
    if (above && job.drops_shadows) {
      int unlike = 0;
#pragma unroll
      for (int dy = 0; dy < 3; ++dy)
#pragma unroll
        for (int dx = 0; dx < 3; ++dx) unlike += shared.unlike[(at_y + dy) * Area<2>::width + at_x + dx];
      changed = unlike > pooled::unlike * pooled::count_around(job, 1, x, y);
    }
    shared.above[i] = above;
    shared.changed[i] = changed;
  });
}

/// Whether a pixel of the tile or one beside it is set.
__device__ __forceinline__ bool any_around(const bool (&set)[Area<1>::size], int at_x, int at_y) {
  bool any = false;
#pragma unroll
  for (int dy = 0; dy < 3; ++dy)
#pragma unroll
    for (int dx = 0; dx < 3; ++dx) any |= set[(at_y + dy) * Area<1>::width + at_x + dx];
  return any;
}

__global__ void __launch_bounds__(pooled_threads)
    change(const __grid_constant__ Job job, const State* state, unsigned char* foreground, int pitch) {
  __shared__ Shared shared;
  const Tile tile;
  const std::uint64_t age = job.number - state->began;
  if (job.compensates) load_light(job, tile, shared);
  __syncthreads();
  expect_all(job, tile, shared);
  __syncthreads();
  add_across(job, shared);
  __syncthreads();
  if (job.drops_shadows) compare_with_shadow(job, tile, shared);
  __syncthreads();
  find_changes(job, tile, shared);
  __syncthreads();
  each_pixel<0>(tile, [&](int, int at_x, int at_y, int x, int y) {
    const unsigned bits = __ballot_sync(~0u, shared.changed[(at_y + 1) * Area<1>::width + at_x + 1]);
    if (threadIdx.x % 32 == 0 && y < job.height)
      *reinterpret_cast<unsigned*>(foreground + std::ptrdiff_t(y) * pitch + tile.x0 / 8) = bits;
    if (!job.contains(x, y)) return;
    const std::size_t at = job.at(x, y);
    job.left_out[at] = any_around(shared.above, at_x, at_y);  // shadows too
    pooled::learn(job, at, expected_at(job, shared, in_whole<0>(at_x, at_y)), light_at(job, tile, shared, x, y, false).gain,
                  any_around(shared.changed, at_x, at_y), age);
  });
}

}  // namespace

const void* pooled_change_kernel() { return reinterpret_cast<const void*>(change); }

dim3 pooled_tiles(const Job& job) {
  return dim3(unsigned((job.width + tile_width - 1) / tile_width), unsigned((job.height + tile_rows - 1) / tile_rows));
}

}  // namespace cudavision::diff
