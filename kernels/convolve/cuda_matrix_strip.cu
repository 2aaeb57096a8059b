// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of up to 7 × 7 weights on 8-bit samples: a block goes down a strip, weights and sums stay in registers.
//
//   grid: the sets of the format one after the other; in a set, the first and the last column of blocks first. These fill in samples
//   outside the frame, so they have fewer rows (strip_place in cuda_schedule.hpp)
//
//        |<-- 128 pixels -->|
//        +------------------+--------- … -+ -          a block: strip_warps warps side by side. Every step, for a group of rows:
//        | warp 0           | warp 1      | |            1. wait for the rows, which are copied to shared memory ahead (cuda_rows.cuh)
//        | K − 1 rows of    |             | job.rows   2. each row: multiply it by each of the K rows of weights (cuda_matrix.cuh);
//        | sums, registers  |             | |               add to K rows of sums; the oldest row is complete: scale, round
//        |                  |             | |            3. write the complete rows (cuda_units.cuh)
//        +------------------+--------- … -+ -
//
//   shared memory: ring of groups of source rows | complete rows of each warp | map of the sides      (StripLayout)
//
// Where to change what:
//   another border         kernels/core/border.hpp (border_index); pixels that are not computed: Units::write in cuda_units.cuh
//   another sample type    cuda_matrix.cuh (halves_of, Scaling::apply, Pair); 16-bit samples run in cuda_small.cu and cuda_tile.cu
//   another block shape    cuda_tuning.hpp (strip_…), StripLayout and strip_place in cuda_schedule.hpp
//   which kernels run here cuda_schedule.cpp (make_schedule); another side: tuning.small_reach, choose() below, MatrixStripParams
#include "kernels/convolve/cuda_matrix.cuh"
#include "kernels/convolve/cuda_rows.cuh"
#include "kernels/convolve/cuda_units.cuh"
#include "kernels/cuda/overlap.hpp"

namespace cudavision::convolve {
namespace {

/// The weights and sums of a warp, in registers: C channels of a set, K × K weights.
template <int C, int K, Matrix kind>
struct Strip {
  static constexpr int sets = kind == Matrix::gradient ? 2 : 1, parts = kind == Matrix::single ? 1 : 2;

  std::uint32_t weights[parts][K][2];
  float sums[sets][C][K][4];  ///< [k]: of the row to which the next row of samples adds weights[k]; 0 is not used
  Scaling<C> scaling;
  int filtered;

  __device__ __forceinline__ Strip(const MatrixStripParams& p, const MatrixJob& job) : sums{}, scaling(p, job) {
    // keep() makes this a load from memory. Parameters indexed by lanes would be read from constant memory, one lane after the other.
    const uint2* fragments = &p.fragments[0][0][threadIdx.x % 32];
    keep(fragments);
#pragma unroll
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const uint2 fragment = fragments[(part * 7 + k) * 32];
        weights[part][k][0] = fragment.x;
        weights[part][k][1] = fragment.y;
      }
    filtered = job.view.filtered;
    keep(filtered);
  }

  /// Loads a row of samples. `from`: the lane's four pixels of segment g; those of segment g + 8 are 64 pixels behind.
  __device__ __forceinline__ static void load(const unsigned char* from, std::uint32_t (&words)[2][C]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) load_shared<C>(from + 64 * C * h, words[h]);
  }

  /// Adds a row of samples, and writes the row of results that it completes. `to`: the lane's first pair of results.
  __device__ __forceinline__ void step(const std::uint32_t (&words)[2][C], unsigned char* to) {
    Pair<C> pairs[2];
#pragma unroll
    for (int c = 0; c < C; ++c) {
      if (C > 1 && !(filtered >> c & 1)) continue;
      const std::uint32_t samples[4] = {halves_of<C>(words[0], c, 0), halves_of<C>(words[1], c, 0), halves_of<C>(words[0], c, 1),
                                        halves_of<C>(words[1], c, 1)};
      float complete[sets][4];
#pragma unroll
      for (int s = 0; s < sets; ++s)
#pragma unroll
        for (int k = K - 1; k >= 0; --k) {
          float none[4] = {};
          float(&to_sums)[4] = k == K - 1 ? complete[s] : sums[s][c][(k + 1) % K];
          float(&old)[4] = k == 0 ? none : sums[s][c][k];
          if constexpr (kind == Matrix::pair) {
            float small[4];
            mma(small, samples, weights[1][k], old);
            mma(to_sums, samples, weights[0][k], small);
          } else {
            mma(to_sums, samples, weights[s][k], old);
          }
        }
      if constexpr (kind == Matrix::gradient) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float u = complete[0][j], v = complete[1][j];
          // Exact after rounding: see tests/kernels/convolve_test.cpp, ConvolveGradient, and cuda_small.cu.
          asm("sqrt.approx.f32 %0, %1;" : "=f"(complete[0][j]) : "f"(fmaf(u, u, v * v)));
        }
      }
      scaling.apply(c, complete[0], pairs);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) pairs[h].store(to + 64 * C * h);
  }

 private:
  template <int N>
  __device__ __forceinline__ static void load_shared(const unsigned char* from, std::uint32_t (&words)[N]) {
    if constexpr (N == 4) {
      const uint4 v = *reinterpret_cast<const uint4*>(from);
      words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
    } else if constexpr (N == 2) {
      const uint2 v = *reinterpret_cast<const uint2*>(from);
      words[0] = v.x, words[1] = v.y;
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) words[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
    }
  }
};

/// The strip of a block: finds its place, and goes down.
template <int C, int K, Matrix kind>
__device__ __forceinline__ void convolve_strip(const MatrixStripParams& p, const MatrixJob& job, unsigned char* memory) {
  using Layout = StripLayout<C>;
  constexpr int slots = Layout::slots, rows = Layout::group;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const StripPlace place = strip_place(blockIdx.x - job.first_block, job.cut);
  const int x = (view.x0 & -16) + place.x * strip_width, y = view.y0 + place.y;
  const int count = min(place.rows, view.y1 - y), groups = (count + K - 1 + rows - 1) / rows;
  const int own_x = x + 128 * warp;

  const RowRing<Layout> ring(job, x * C, y - K / 2, y - K / 2 + count + K - 1, memory);
  unsigned char* const stage = memory + Layout::stage + warp * (rows * 128 * C);
  const Units<Layout, C, K> units(job, memory + strip_lead + warp * (128 * C), stage, own_x, y, count);
  const unsigned char* const from = memory + strip_lead + (128 * warp + 8 * g + 4 * t - 4) * C;
  unsigned char* const to = stage + (8 * g + 2 * t) * C;
  const bool active = own_x < view.x1, has_sides = ring.has_sides();

  cuda::let_next_start();
  cuda::wait_for_previous();
#pragma unroll
  for (int i = 0; i < Layout::ahead; ++i) {
    if (i < groups) ring.copy(i, i);
    cuda::commit();
  }
  if (has_sides) ring.make_map();
  Strip<C, K, kind> strip(p, job);
  int slot = 0, before = 0, next = Layout::ahead % slots;
#pragma unroll 1
  for (int group = 0; group < groups; ++group) {
    cuda::wait<Layout::ahead - 1>();
    __syncthreads();
    if (has_sides) {
      ring.fill(group, slot);
      __syncthreads();
    }
    if (group + Layout::ahead < groups) ring.copy(group + Layout::ahead, next);
    cuda::commit();
    __syncwarp();
    if (active) {
      const unsigned char* const at = from + slot * (rows * Layout::pitch);
      if constexpr (C <= 2) {
        // The next row is loaded before a row is stored: the compiler keeps their order. More channels need the registers.
        std::uint32_t words[2][2][C];
        strip.load(at, words[0]);
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          if (r + 1 < rows) strip.load(at + (r + 1) * Layout::pitch, words[(r + 1) % 2]);
          strip.step(words[r % 2], to + r * (128 * C));
        }
      } else {
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          std::uint32_t words[2][C];
          strip.load(at + r * Layout::pitch, words);
          strip.step(words, to + r * (128 * C));
        }
      }
      __syncwarp();
      units.write(group, slot, before);
      __syncwarp();
    }
    before = slot;
    slot = slot + 1 < slots ? slot + 1 : 0;
    next = next + 1 < slots ? next + 1 : 0;
  }
}

template <int C0, int C1, int K, Matrix kind>
__global__ void __launch_bounds__(32 * tuning.strip_warps, strip_blocks(C1, K))
    convolve_strips(const __grid_constant__ MatrixStripParams p) {
  extern __shared__ uint4 shared_memory[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared_memory);
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  if (C0 != C1 && set == 0)
    convolve_strip<C0, K, kind>(p, p.jobs[0], memory);
  else
    convolve_strip<C1, K, kind>(p, p.jobs[set], memory);
}

template <int C0, int C1>
const void* choose(int side, Matrix kind) {
  const auto kernel = [](auto function) { return reinterpret_cast<const void*>(function); };
  if (kind == Matrix::gradient)  // 3 × 3; a side of 5 if the anchor is not in the middle
    return side == 3 ? kernel(convolve_strips<C0, C1, 3, Matrix::gradient>) : kernel(convolve_strips<C0, C1, 5, Matrix::gradient>);
  const bool pair = kind == Matrix::pair;
  if (side == 3)
    return pair ? kernel(convolve_strips<C0, C1, 3, Matrix::pair>) : kernel(convolve_strips<C0, C1, 3, Matrix::single>);
  if (side == 5)
    return pair ? kernel(convolve_strips<C0, C1, 5, Matrix::pair>) : kernel(convolve_strips<C0, C1, 5, Matrix::single>);
  return pair ? kernel(convolve_strips<C0, C1, 7, Matrix::pair>) : kernel(convolve_strips<C0, C1, 7, Matrix::single>);
}

}  // namespace

const void* matrix_strip_kernel(const FormatInfo& format, int side, Matrix kind) {
  const void* function = nullptr;
  cuda::with_layout(format, [&](auto sample, auto first, auto rest) {
    if constexpr (sizeof(sample) == 1) function = choose<decltype(first)::value, decltype(rest)::value>(side, kind);
  });
  return function;
}

}  // namespace cudavision::convolve
