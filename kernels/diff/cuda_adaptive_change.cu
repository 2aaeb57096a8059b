// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive, second kernel: finds the changed pixels under the measured light, decides why
// many of them changed, and learns (see adaptive.hpp).
//
//   grid: tiles of 32 × 16 pixels; a warp has one row of the tile.
//   Each step goes over the tile and a margin, in shared memory:
//
//     | 4 |<- 32 ->| 4 |   the light of each row in the columns of cells
//     |   |  tile  |   |   margin 4: expected values, evidence               lanes go over all pixels, row by row
//     |   |        |   |   then      sums of the evidence of 5 pixels across
//     |   |        |   |   margin 1: level, above                            (sums down 5 rows)
//     |   |        |   |   margin 2: unlike a shadow                         only beside pixels above
//     |   |        |   |   margin 1: changed
//     |   |        |   |   the tile: a warp stores the bits of 32 pixels as one word, and learns
//
//   Neighbours read the means of the same pixels, so new means are written to other memory (Job::next_mean).
//   The last block to finish decides whether the light or the camera changed. In most frames nothing must be examined.
//
// Where to change what:
//   the arithmetic            adaptive_light.hpp, adaptive_expect.hpp and adaptive_learn.hpp, for both backends
//   light, moved or scene     camera.hpp, for both backends
//   another number of threads cuda_tuning.hpp (adaptive_threads)
#include "kernels/cuda/warp.cuh"
#include "kernels/diff/adaptive_relight.hpp"
#include "kernels/diff/cuda_adaptive.cuh"
#include "kernels/diff/cuda_adaptive.hpp"
#include "kernels/diff/cuda_camera.cuh"
#include "kernels/diff/cuda_light.cuh"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

using adaptive::Between, adaptive::Job;
using Light = adaptive::Light<float>;
template <int channels>
using Expected = adaptive::Expected<channels, float>;

constexpr int tile_width = 32, tile_rows = 16, margin = 4;
/// The tile and a margin of `m` pixels.
template <int m>
struct Area {
  static constexpr int width = tile_width + 2 * m, rows = tile_rows + 2 * m, size = width * rows;
};
using Whole = Area<margin>;
/// Numbers of cells whose light affects pixels of the tile and its margin.
constexpr int cells_across = (Whole::width - 1) / adaptive::cell + 2;
constexpr int cells_down = (Whole::rows - 1) / adaptive::cell + 2;

struct Shared {
  float cells[3][cells_down][cells_across];   // light of the cells
  float light[3][Whole::rows][cells_across];  // between two rows of cells
  float expected[3][Whole::size];
  std::uint32_t luma[Whole::size];  // coarse luma of the frame; bits 16 and above: the expected luma
  std::uint16_t evidence[Whole::size];
  std::uint32_t evidence_sums[Whole::rows][tile_width + 2];  // sums of 5 pixels across; margin 1
  std::uint16_t unlike[Area<2>::size];
  std::uint8_t level[Area<1>::size];  // an adaptive::Level
  bool above[Area<1>::size], changed[Area<1>::size];
  adaptive::Rates rates;
  unsigned changed_pixels, difference;  // sums of the tile
  bool last;                            // whether the block is the last one to finish
};

/// The tile of a block with `threads` threads.
template <int threads>
struct Tile {
  int x0, y0, cell_x, cell_y;  // the first pixel, and the first column and row of cells that are used

  __device__ Tile()
      : x0(blockIdx.x * tile_width),
        y0(blockIdx.y * tile_rows),
        cell_x(max(0, (x0 - margin - adaptive::cell / 2) / adaptive::cell)),
        cell_y(max(0, (y0 - margin - adaptive::cell / 2) / adaptive::cell)) {}
};

/// Calls work(i, at_x, at_y, x, y, n) for the pixels of Area<m>, with their position in the area and in the frame. n:
/// number of previous pixels of the lane. times: unrolling factor of the loop.
template <int m, int times = 16, int threads, typename Work>
__device__ __forceinline__ void each_pixel(const Tile<threads>& tile, Work work) {
#pragma unroll times
  for (int n = 0; n < (Area<m>::size + threads - 1) / threads; ++n) {
    const int i = int(threadIdx.x) + n * threads;
    if (i >= Area<m>::size) break;
    const int y = i / Area<m>::width, x = i - y * Area<m>::width;
    work(i, x, y, tile.x0 - m + x, tile.y0 - m + y, n);
  }
}
/// The index in Area<to> of pixel (x, y) of Area<from>.
template <int from, int to>
__device__ __forceinline__ int index_in_area(int x, int y) {
  return (y + to - from) * Area<to>::width + x + to - from;
}

/// The index of a pixel in the arrays of a channel. It fits in 32 bits.
__device__ __forceinline__ int index_of(const Job& job, int x, int y) { return y * job.pitch + x; }

/// Computes the light of the cells, and of each row between two rows of cells.
template <int threads>
__device__ __forceinline__ void mix_light(const Job& job, const Tile<threads>& tile, Shared& shared) {
  constexpr int cells = cells_down * cells_across, lights = Whole::rows * cells_across;
  for (int i = int(threadIdx.x); i < job.channels * cells; i += threads) {
    const int c = i / cells, row = i / cells_across % cells_down, column = i % cells_across;
    shared.cells[c][row][column] =
        adaptive::smooth(job, c, min(tile.cell_x + column, job.cells_x - 1), min(tile.cell_y + row, job.cells_y - 1));
  }
  __syncthreads();
  for (int i = int(threadIdx.x); i < job.channels * lights; i += threads) {
    const int c = i / lights, row = i / cells_across % Whole::rows, column = i % cells_across;
    const Between down = adaptive::between(max(0, min(tile.y0 - margin + row, job.height - 1)), job.cells_y);
    const auto of = [&](int cell_y) { return shared.cells[c][cell_y - tile.cell_y][column]; };
    shared.light[c][row][column] = adaptive::mixed(of(down.first), of(down.second), down.weight);
  }
}

/// The light at a pixel of a row of Area<margin>.
template <int channels, int threads>
__device__ __forceinline__ Light light_at(const Job& job, const Tile<threads>& tile, const Shared& shared, int x,
                                          int row) {
  Light light;
  if (!job.compensates) return light;
  const Between across = adaptive::between(x, job.cells_x);
  const auto of = [&](int c) {
    const auto& cells = shared.light[c][row];
    return adaptive::mixed(cells[across.first - tile.cell_x], cells[across.second - tile.cell_x], across.weight);
  };
  light.gain = of(0);
  for (int c = 1; c < channels; ++c) light.offset[c] = of(c);
  return light;
}

/// The pixels of a lane in Area<margin>.
template <int channels, int threads>
using OwnPixels = adaptive::Pixel<channels, float>[(Whole::size + threads - 1) / threads];
template <int channels, int threads>
__device__ __forceinline__ void load_all(const AdaptiveChange& p, const Tile<threads>& tile,
                                         OwnPixels<channels, threads>& own) {
  each_pixel<margin>(tile, [&](int, int, int, int x, int y, int n) {
    if (p.job.contains(x, y)) own[n] = adaptive::load<channels>(p.arrays, index_of(p.job, x, y));
  });
}

/// own: the pixels, if they are `loaded`.
template <int channels, bool loaded, int threads>
__device__ __forceinline__ void expect_all(const AdaptiveChange& p, const Tile<threads>& tile, Shared& shared,
                                           const OwnPixels<channels, threads>& own) {
  const Job& job = p.job;
  each_pixel<margin>(tile, [&](int i, int, int row, int x, int y, int n) {
    Expected<channels> expected{};
    int luma = 0, evidence = 0;
    if (job.contains(x, y)) {
      const auto pixel = loaded ? own[n] : adaptive::load<channels>(p.arrays, index_of(job, x, y));
      expected = adaptive::expect(pixel, light_at<channels>(job, tile, shared, x, row));
      evidence = adaptive::evidence_of(pixel, expected);
      // Recovers the sample exactly as an integer: reading it from memory would make the lane wait.
      const int fixed = to_int(mul(pixel.value[0], 1 / adaptive::fixed_step));
      luma = adaptive::coarse_luma_of(fixed) | adaptive::coarse_luma(expected.value[0]) << 16;
    }
    for (int c = 0; c < channels; ++c) shared.expected[c][i] = expected.value[c];
    shared.evidence[i] = std::uint16_t(evidence);
    shared.luma[i] = std::uint32_t(luma);
  });
}
template <int channels>
__device__ __forceinline__ Expected<channels> expected_at(const Shared& shared, int i) {
  Expected<channels> expected;
  for (int c = 0; c < channels; ++c) expected.value[c] = shared.expected[c][i];
  return expected;
}

template <int threads>
__device__ __forceinline__ void add_evidence_across(const Tile<threads>&, Shared& shared) {
  constexpr int width = tile_width + 2;
  for (int i = int(threadIdx.x); i < Whole::rows * width; i += threads) {
    const int y = i / width, x = i - y * width;
    unsigned sum = 0;
#pragma unroll
    for (int dx = 0; dx < 5; ++dx) sum += shared.evidence[y * Whole::width + x + 1 + dx];
    shared.evidence_sums[y][x] = sum;
  }
}

/// Sets level and above; returns whether any pixel of this lane is above the threshold.
template <int threads>
__device__ __forceinline__ bool find_above(const Job& job, const Tile<threads>& tile, Shared& shared) {
  const adaptive::Rates& rates = shared.rates;
  bool any = false;
  each_pixel<1>(tile, [&](int i, int at_x, int at_y, int x, int y, int) {
    int sum = 0;
#pragma unroll
    for (int dy = 0; dy < 5; ++dy) sum += int(shared.evidence_sums[at_y + 1 + dy][at_x]);
    const int level =
        job.contains(x, y) ? adaptive::level_of(rates, sum, adaptive::count_around(job, 2, x, y)) : adaptive::noise;
    const bool above = level >= adaptive::above;
    shared.level[i] = std::uint8_t(level);
    shared.above[i] = shared.changed[i] = above;
    any |= above;
  });
  return any;
}

/// Whether the pixel of Area<m> at (x, y), or a neighbour of it, is set. Pixels outside Area<1> are not set.
template <int m>
__device__ __forceinline__ bool any_around(const bool (&set)[Area<1>::size], int x, int y) {
  bool any = false;
#pragma unroll
  for (int ny = y - m; ny <= y - m + 2; ++ny)
#pragma unroll
    for (int nx = x - m; nx <= x - m + 2; ++nx)
      if (m == 0 || (nx >= 0 && ny >= 0 && nx < Area<1>::width && ny < Area<1>::rows))
        any |= set[ny * Area<1>::width + nx];
  return any;
}

template <int channels, int threads>
__device__ __forceinline__ void compare_with_shadow(const AdaptiveChange& p, const Tile<threads>& tile,
                                                    Shared& shared) {
  const Job& job = p.job;
  each_pixel<2>(tile, [&](int i, int at_x, int at_y, int x, int y, int) {
    shared.unlike[i] = 0;
    if (!job.contains(x, y) || !any_around<2>(shared.above, at_x, at_y)) return;
    int frame = 0, luma = 0;
    const std::uint32_t* const first = &shared.luma[at_y * Whole::width + at_x];
#pragma unroll
    for (int dy = 0; dy < 5; ++dy) {
      unsigned sums = 0;
#pragma unroll
      for (int dx = 0; dx < 5; ++dx) sums += first[dy * Whole::width + dx];
      frame += int(sums & 0xffff), luma += int(sums >> 16);
    }
    shared.unlike[i] =
        std::uint16_t(adaptive::unlike_shadow(job, adaptive::load<channels>(p.arrays, index_of(job, x, y)),
                                              expected_at<channels>(shared, index_in_area<2, margin>(at_x, at_y)),
                                              frame, luma, adaptive::count_around(job, 2, x, y)));
  });
}

template <int threads>
__device__ __forceinline__ void clear_shadows(const Job& job, const Tile<threads>& tile, Shared& shared) {
  each_pixel<1>(tile, [&](int i, int at_x, int at_y, int x, int y, int) {
    if (!shared.above[i]) return;
    int unlike = 0;
#pragma unroll
    for (int dy = 0; dy < 3; ++dy)
#pragma unroll
      for (int dx = 0; dx < 3; ++dx) unlike += shared.unlike[(at_y + dy) * Area<2>::width + at_x + dx];
    shared.changed[i] = unlike > adaptive::unlike * adaptive::count_around(job, 1, x, y);
  });
}

/// Learns at pixel (at_x, at_y) of the tile while the background settles. Not inlined, so that a settled background
/// does not need its registers.
template <int channels, int threads>
__device__ __noinline__ void learn_settling(const AdaptiveChange& p, const Tile<threads>& tile, const Shared& shared,
                                            int at_x, int at_y, adaptive::Seen<float> seen) {
  const Job& job = p.job;
  const int x = tile.x0 + at_x, y = tile.y0 + at_y, at = index_of(job, x, y);
  auto pixel = adaptive::load<channels>(p.arrays, at);
  const bool turn = adaptive::has_turn(job, y);
  adaptive::Rival<channels, float> rival;
  adaptive::Shown<channels, float> shown;
  adaptive::load_counts(job, std::size_t(at), rival);
  adaptive::learn<true>(pixel, rival, expected_at<channels>(shared, index_in_area<0, margin>(at_x, at_y)),
                        light_at<1>(job, tile, shared, x, at_y + margin).gain, seen, shared.rates, turn, shown);
  if (!adaptive::rests_settled(rival, shown, seen)) {
    adaptive::load_values(job, std::size_t(at), rival);
    adaptive::settle_after(pixel, rival, shown, seen, shared.rates, turn);
    adaptive::store(job, std::size_t(at), rival);
  }
  adaptive::store(p.arrays, at, pixel);
}

/// Stores the changed pixels, and learns. Adds to the counts of the tile. any: whether a pixel in or next to the tile
/// is above the threshold.
template <int channels, int threads>
__device__ __forceinline__ void finish(const AdaptiveChange& p, const Tile<threads>& tile, Shared& shared, bool any) {
  const Job& job = p.job;
  const adaptive::Rates& rates = shared.rates;
  unsigned changed_pixels = 0, difference = 0;
  each_pixel<0, 1>(tile, [&](int, int at_x, int at_y, int x, int y, int) {  // a warp is in one row
    if (y >= job.height) return;
    const int word = tile.x0 / 32;
    const unsigned unmasked =
        p.unmasked ? reinterpret_cast<const std::uint32_t*>(p.unmasked + y * p.bits_pitch)[word] : ~0u;
    const unsigned bits = any ? __ballot_sync(~0u, shared.changed[index_in_area<0, 1>(at_x, at_y)]) & unmasked : 0;
    if (at_x == 0) {
      reinterpret_cast<std::uint32_t*>(p.changed + y * p.bits_pitch)[word] = bits;
      changed_pixels += __popc(bits);
    }
    if (x >= job.width || job.begin) return;
    const int at = index_of(job, x, y);
    auto pixel = adaptive::load<channels>(p.arrays, at);
    if (unmasked >> at_x & 1) difference += unsigned(adaptive::largest_difference(pixel));
    const Learning learning = job.learning.at(x, y);
    const adaptive::Seen<float> seen{shared.level[index_in_area<0, 1>(at_x, at_y)],
                                     job.recent[at],
                                     any && any_around<0>(shared.above, at_x, at_y),
                                     any && any_around<0>(shared.changed, at_x, at_y),
                                     applies(Learning::hold, learning),
                                     applies(Learning::take, learning),
                                     applies(Learning::steady, learning)};
    job.recent[at] = std::uint8_t(adaptive::recent_after(seen));
    const int in_whole = index_in_area<0, margin>(at_x, at_y);
    job.expected[at] = std::uint8_t(adaptive::expected_byte(int(shared.luma[in_whole] >> 16)));
    const bool turn = adaptive::has_turn(job, y);
    if (!adaptive::rests(seen, rates, turn)) {
      if (rates.settles) return learn_settling<channels>(p, tile, shared, at_x, at_y, seen);
      const float gain = light_at<1>(job, tile, shared, x, at_y + margin).gain;
      adaptive::Rival<channels, float> none;
      adaptive::Shown<channels, float> shown;
      adaptive::learn<false>(pixel, none, expected_at<channels>(shared, in_whole), gain, seen, rates, turn, shown);
    }
    adaptive::store(p.arrays, at, pixel);
  });
  difference = cuda::warp_sum(difference);
  if (threadIdx.x % 32 == 0) {
    if (changed_pixels) atomicAdd(&shared.changed_pixels, changed_pixels);
    if (difference) atomicAdd(&shared.difference, difference);
  }
}

/// Decides why many pixels changed, and reports it to the host. All threads of the last block call it.
__device__ __noinline__ void decide(const AdaptiveChange& p) {
  __shared__ camera::Scratch scratch;
  State& state = *p.state;
  const Job& job = p.job;
  const StructureJob pictures{job.frame, job.expected, job.pitch, job.width, job.height};
  const auto changed = [&](int x, int y) { return (p.changed[y * p.bits_pitch + x / 8] >> x % 8 & 1) != 0; };
  const auto held = [&](int x, int y) { return applies(Learning::hold, job.learning.at(x, y)); };
  if (threadIdx.x == 0) scratch.profiles = job.profiles;
  BlockTeam team;
  const camera::Decision found =
      job.begin ? camera::Decision{}
                : camera::decide(team, state.watch, state.began, p.rule, state.above, pictures, scratch, changed, held);
  __shared__ adaptive::RelightSums sums;
  if (found.begins && found.kept) adaptive::measure(team, job, found.kept, sums, state.light_change);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (job.begin) state.watch = {};
  state.light = found.cause != Cause::none;
  state.anew = found.begins, state.kept = found.kept, state.held = found.held;
  if (found.begins) state.began = job.number;
  *p.verdict = {!job.begin, found.cause, found.x, found.y, state.difference};
  state.above = 0, state.difference = 0;
}

constexpr int threads_of(bool small_blocks) { return tuning.adaptive_threads / (small_blocks ? 2 : 1); }

template <int channels, bool small_blocks>
__global__ void __launch_bounds__(threads_of(small_blocks),
                                  small_blocks ? tuning.small_adaptive_blocks : tuning.adaptive_blocks)
    change(const __grid_constant__ AdaptiveChange p) {
  __shared__ Shared shared;
  const Job& job = p.job;
  constexpr int threads = threads_of(small_blocks);
  const Tile<threads> tile;
  State& state = *p.state;
  if (threadIdx.x == 0) shared.changed_pixels = shared.difference = 0;
  bool any = false;
  if (!job.begin) {
    OwnPixels<channels, threads> own;
    if (!small_blocks) load_all<channels>(p, tile, own);  // before the light, so that lanes wait for memory only once
    // Done by a warp that has no cell to smooth.
    if (threadIdx.x == threads - 1) shared.rates = adaptive::rates_of(job, job.number - state.began);
    if (job.compensates) mix_light(job, tile, shared);
    __syncthreads();
    expect_all<channels, !small_blocks>(p, tile, shared, own);
    __syncthreads();
    add_evidence_across(tile, shared);
    __syncthreads();
    any = __syncthreads_or(find_above(job, tile, shared));
    if (any && job.drops_shadows) {
      compare_with_shadow<channels>(p, tile, shared);
      __syncthreads();
      clear_shadows(job, tile, shared);
    }
  }
  __syncthreads();
  finish<channels>(p, tile, shared, any);
  __syncthreads();
  if (threadIdx.x == 0) {
    if (shared.difference) atomicAdd(&state.difference, (unsigned long long)(shared.difference));
    shared.last = is_last_block(state, shared.changed_pixels);
  }
  __syncthreads();
  if (shared.last) decide(p);
}

template <int channels>
const void* choose(bool small_blocks) {
  return small_blocks ? reinterpret_cast<const void*>(change<channels, true>)
                      : reinterpret_cast<const void*>(change<channels, false>);
}

}  // namespace

AdaptiveKernel adaptive_change_kernel(int channels, int width, int height, int multiprocessors) {
  const dim3 grid(unsigned(divide_up(width, tile_width)), unsigned(divide_up(height, tile_rows)));
  const bool small_blocks = int(grid.x * grid.y) > tuning.adaptive_blocks * multiprocessors;
  return {channels == 1 ? choose<1>(small_blocks) : choose<3>(small_blocks), grid, threads_of(small_blocks)};
}

}  // namespace cudavision::diff
