// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of up to 7 × 7 weights on 8-bit samples: a warp goes down a strip, weights and sums stay in registers.
//
//   grid: the sets of the format one after the other; in a set, the first and the last column of tiles first
//
//        |<-- 128 or 256 results -->|
//        +--------------------------+ -          every step: load one row of samples, `ahead` rows before it is used;
//   warp |  row of samples          | |          multiply it by each of the K rows of weights (cuda_matrix.cuh);
//    0   |  K rows of sums in       | job.rows   add to K rows of sums; the oldest row is complete: scale, round, store
//        |  registers               | |
//        +--------------------------+ -
//   warp |                          |            a block is strip_warps such strips, one above the other
//    1   |                          |
//
// Where to change what:
//   another border         kernels/core/border.hpp (border_index); pixels that are not computed: Output in cuda_matrix.cuh
//   another sample type    cuda_matrix.cuh (to_halves, Scaling::apply, Pair); 16-bit samples run in cuda_small.cu and cuda_tile.cu
//   another block shape    cuda_tuning.hpp (strip_…); the place of a block: convolve_strip() below
//   which kernels run here cuda_schedule.cpp (make_schedule); another side: tuning.small_reach, choose() below, MatrixStripParams
#include "kernels/convolve/cuda_matrix.cuh"

namespace cudavision::convolve {
namespace {

/// A kernel's shape: C channels of a set, K × K weights, `width` results across of a warp (H times 64), `ahead` rows loaded ahead.
template <int C_, int K_, int width_, int ahead_>
struct StripShape {
  static constexpr int C = C_, K = K_, width = width_, H = width / 64, ahead = ahead_;
};

/// Shared memory of a warp: where rows come from, and the quads that are not in the frame.
template <typename Shape>
struct StripRows {
  static constexpr int C = Shape::C;
  static constexpr int rows =
      tuning.strip_most_rows + Shape::K - 1 + 2 * Shape::ahead;  ///< more than are used, because rows are loaded ahead
  std::int64_t offset[rows];                                     ///< bytes; −1: the border value
  std::uint32_t edges[3][rows][C];  ///< quads at −4, at the last multiple of 4 in the frame, and after it
};

/// The loop over the rows of a strip. Every row of samples adds to K rows of sums, then the oldest row of sums is complete.
template <typename Shape, Matrix kind, Way way>
__device__ __forceinline__ void run_strip(const MatrixStripParams& p, const MatrixJob& job, const StripRows<Shape>& strip, int x,
                                          int rows, Output<Shape::C, Shape::H>& output) {
  constexpr int C = Shape::C, K = Shape::K, H = Shape::H, M = H / 2;
  constexpr int sets = kind == Matrix::gradient ? 2 : 1, parts = kind == Matrix::single ? 1 : 2;
  constexpr bool general = way == Way::general;
  constexpr int ahead = general ? 1 : Shape::ahead;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, last = view.width & -4;
  const int quad_x = x - 4 + 8 * (lane / 4) + 4 * (lane % 4);
  int edge[H];
  bool inside[H], any_edge = false;
#pragma unroll
  for (int h = 0; h < H; ++h) {
    const int at = quad_x + 64 * h;
    inside[h] = at >= 0 && at < last;
    edge[h] = at < 0 ? 0 : at == last ? 1 : at == last + 4 ? 2 : -1;
    any_edge = any_edge || edge[h] >= 0;
    if (way != Way::inner) keep(edge[h]);
  }
  const bool sides = way != Way::inner && __any_sync(~0u, any_edge);
  const unsigned char* const column = view.src + std::int64_t(quad_x) * C;
  const auto load = [&](int i, std::uint32_t(&raw)[H][C]) {
    const std::int64_t offset = strip.offset[i];
    const unsigned char* from = column + offset;
    keep(from);
#pragma unroll
    for (int h = 0; h < H; ++h) {
      if ((way != Way::inner && !inside[h]) || (general && offset < 0)) continue;
      const unsigned char* const at = from + 64 * C * h;
      if (!general || view.src_aligned) {
        cuda::load_words<C, quad_alignment(C, 1)>(at, raw[h]);
      } else {
#pragma unroll
        for (int w = 0; w < C; ++w) raw[h][w] = at[4 * w] | at[4 * w + 1] << 8 | at[4 * w + 2] << 16 | at[4 * w + 3] << 24;
      }
    }
  };

  // keep() makes this a load from memory. Parameters indexed by lanes would be read from constant memory, one lane after the other.
  const uint2* fragments = &p.fragments[0][0][lane];
  keep(fragments);
  std::uint32_t weights[2][K][2];
#pragma unroll
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const uint2 fragment = fragments[(part * 7 + k) * 32];
      weights[part][k][0] = fragment.x;
      weights[part][k][1] = fragment.y;
    }
  const Scaling<C> scaling(p, job);
  int filtered = view.filtered;
  keep(filtered);

  float sums[sets][C][M][K][4] = {};  // [k]: of the row to which the next row of samples adds weights[k]
  std::uint32_t raw[ahead][H][C] = {};
#pragma unroll
  for (int a = 0; a < ahead; ++a) load(a, raw[a]);

#pragma unroll 1
  for (int base = 0; base < rows; base += ahead) {
#pragma unroll
    for (int a = 0; a < ahead; ++a) {
      const int i = base + a;
      std::uint32_t(&words)[H][C] = raw[a];
      if (general && strip.offset[i] < 0) {
#pragma unroll
        for (int h = 0; h < H; ++h)
#pragma unroll
          for (int w = 0; w < C; ++w) words[h][w] = job.border_words[w];
      }
      if (sides) {
#pragma unroll
        for (int h = 0; h < H; ++h)
          if (edge[h] >= 0) {
#pragma unroll
            for (int w = 0; w < C; ++w) words[h][w] = strip.edges[edge[h]][i][w];
          }
      }
      std::uint32_t samples[C][M][4];
#pragma unroll
      for (int h = 0; h < H; ++h) {
        const Quad<std::uint8_t, C> quad = cuda::deinterleave<std::uint8_t, C>(words[h]);
#pragma unroll
        for (int c = 0; c < C; ++c) {
          samples[c][h / 2][h % 2] = to_halves(quad.word[c][0], 0);
          samples[c][h / 2][h % 2 + 2] = to_halves(quad.word[c][0], 1);
        }
      }
      load(i + ahead, raw[a]);

      Pair<C> pairs[H];
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (C > 1 && !(filtered >> c & 1)) continue;
        float complete[sets][M][4];
        if constexpr (kind == Matrix::pair) {
#pragma unroll
          for (int k = 0; k < K; ++k)
#pragma unroll
            for (int m = 0; m < M; ++m) mma(sums[0][c][m][k], samples[c][m], weights[1][k], sums[0][c][m][k]);
        }
#pragma unroll
        for (int s = 0; s < sets; ++s)
#pragma unroll
          for (int k = K - 1; k >= 0; --k)
#pragma unroll
            for (int m = 0; m < M; ++m)
              mma(k == K - 1 ? complete[s][m] : sums[s][c][m][(k + 1) % K], samples[c][m], weights[s][k], sums[s][c][m][k]);
#pragma unroll
        for (int m = 0; m < M; ++m) {
#pragma unroll
          for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int s = 0; s < sets; ++s) sums[s][c][m][0][j] = 0;
            if constexpr (kind == Matrix::gradient) {
              const float u = complete[0][m][j], v = complete[1][m][j];
              // Exact after rounding: see tests/kernels/convolve_test.cpp, ConvolveGradient, and cuda_small.cu.
              asm("sqrt.approx.f32 %0, %1;" : "=f"(complete[0][m][j]) : "f"(fmaf(u, u, v * v)));
            }
          }
          scaling.apply(c, complete[0][m], pairs + 2 * m);
        }
      }
      output.template store<way>(pairs);
    }
  }
}

/// The strip of one warp: finds its place, prepares the shared memory, and chooses the code.
template <typename Shape, Matrix kind>
__device__ __forceinline__ void convolve_strip(const MatrixStripParams& p, const MatrixJob& job) {
  constexpr int C = Shape::C, K = Shape::K, width = Shape::width, warps = tuning.strip_warps;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Block → tile. The first and the last column take longest, so they come first.
  const int block = blockIdx.x - job.first_block, sides = min(job.tiles_x, 2), others = block - sides * job.tiles_y;
  int tile_x, tile_y;
  if (others < 0) {
    tile_y = block / sides;
    tile_x = block % sides ? job.tiles_x - 1 : 0;
  } else {
    tile_y = others / (job.tiles_x - sides);
    tile_x = others - tile_y * (job.tiles_x - sides) + 1;
  }
  const int x = (view.x0 & -4) + tile_x * width, y = view.y0 + (tile_y * warps + warp) * job.rows;
  const int count = min(job.rows, view.y1 - y), rows = count + K - 1;
  if (count <= 0) return;

  __shared__ StripRows<Shape> strips[warps];
  StripRows<Shape>& strip = strips[warp];
  bool border_row = false;
  for (int i = lane; i < rows + 2 * Shape::ahead; i += 32) {
    const int row = border_index(y - K / 2 + i, view.height, view.border);
    strip.offset[i] = row < 0 ? -1 : row * view.src_pitch;
    border_row = border_row || row < 0;
  }
  // All lanes fetch the quads that are not in the frame now; a single lane would wait long, sample by sample.
  const int last = view.width & -4;
  if (x == 0 || x + width >= last) {
    for (int i = lane; i < 3 * rows; i += 32) {
      const int e = i / rows, row = i - e * rows, at = e == 0 ? -4 : last + 4 * (e - 1);
      if (at < x - 4 || at > x + width) continue;
      std::uint32_t words[C];
      cuda::interleave<std::uint8_t, C>(
          cuda::load_quad<std::uint8_t, C>(view, at, border_index(y - K / 2 + row, view.height, view.border)), words);
#pragma unroll
      for (int w = 0; w < C; ++w) strip.edges[e][row][w] = words[w];
    }
  }
  __syncwarp();

  Output<C, Shape::H> output(job, x + 8 * (lane / 4) + 2 * (lane % 4), y, count, K - 1);
  const Way way = output.way();
  if (!view.src_aligned || __any_sync(~0u, border_row) || way == Way::general)
    run_strip<Shape, kind, Way::general>(p, job, strip, x, rows, output);
  else if (x == 0 || x + width >= last || way == Way::side)
    run_strip<Shape, kind, Way::side>(p, job, strip, x, rows, output);
  else
    run_strip<Shape, kind, Way::inner>(p, job, strip, x, rows, output);
}

template <int C0, int C1, int K, Matrix kind>
__global__ void __launch_bounds__(32 * tuning.strip_warps, strip_blocks(C1, K))
    convolve_strips(const __grid_constant__ MatrixStripParams p) {
  constexpr int ahead = strip_rows_ahead(C1);
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  if (C0 != C1 && set == 0)
    convolve_strip<StripShape<C0, K, strip_width(C0, C1), ahead>, kind>(p, p.jobs[0]);
  else
    convolve_strip<StripShape<C1, K, strip_width(C1, C1), ahead>, kind>(p, p.jobs[set]);
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
