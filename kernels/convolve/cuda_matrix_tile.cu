// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of any size on 8-bit samples: a block loads a tile of one channel into shared memory, in half precision; windows are
// walked in steps of 16 samples across, and down each step the rows slide through registers.
//
//        |<- 128 results + the window ->|
//        +------------------------------+ -
//   warp |  R rows of results           | R = matrix_tile_rows
//    0   |                              | -       for each step of 16 samples across:
//   warp |  R rows of results           |           for each row k of weights: load row k + R − 1 of the tile,
//    1   |                              |           multiply the R rows k … k + R − 1 by the weights of the row (cuda_matrix.cuh)
//    …   |  height − 1 more rows        |
//        +------------------------------+
//   shared memory: the tile | weights [part][parity][height][weight_row] | source row of each row
//
// Channels run one after the other; their results are kept packed until all are stored together.
//
// Where to change what:
//   another border         kernels/core/border.hpp (border_index); pixels that are not computed: Output in cuda_matrix.cuh
//   another sample type    HalfSink below, cuda_matrix.cuh; loading: cuda_fill.cuh
//   another block shape    cuda_tuning.hpp (matrix_tile_…); shared memory: matrix_tile_bytes in cuda_schedule.hpp
#include "kernels/convolve/cuda_fill.cuh"
#include "kernels/convolve/cuda_matrix.cuh"

namespace cudavision::convolve {
namespace {

/// Writes a tile in half precision: entry i of a row holds the samples 2i and 2i + 1, and the two samples 64 to their right. Two
/// entries are the four registers of a lane, in order.
struct HalfSink {
  std::uint32_t* tile;
  int pitch;  ///< words

  __device__ __forceinline__ void operator()(int row, int quad, const std::uint32_t (&words)[1]) const {
    const std::uint32_t first = to_halves(words[0], 0), second = to_halves(words[0], 1);
    std::uint32_t* const at = tile + row * pitch + 4 * quad;
    if (4 * quad < pitch) at[0] = first, at[2] = second;
    if (quad >= 16) at[-63] = first, at[-61] = second;
  }
};

template <int parts>
__global__ void __launch_bounds__(32 * tuning.matrix_tile_warps, 2)
    convolve_matrix_tile(const __grid_constant__ MatrixTileParams p) {
  constexpr int R = tuning.matrix_tile_rows;
  extern __shared__ uint4 shared_memory[];
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  const MatrixJob& job = p.jobs[set];
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, g = lane / 4, t = lane % 4;
  const Place place = tile_place(blockIdx.x - job.first_block, job.tiles_x);
  const int x = (view.x0 & -4) + place.x * tile_width, y = view.y0 + place.y * warps * R;
  const int steps = matrix_steps(p.width), pitch = matrix_pitch(p.width), rows = warps * R + p.height - 1;
  const int weight_row = matrix_weight_row(p.width);

  std::uint32_t* const tile = reinterpret_cast<std::uint32_t*>(shared_memory);
  std::uint32_t* const weights = tile + rows * pitch;  // [part][parity][height][weight_row]
  int* const row_index = reinterpret_cast<int*>(weights + 2 * parts * p.height * weight_row);
  for (int i = threadIdx.x; i < rows; i += blockDim.x) row_index[i] = border_index(y - p.anchor_y + i, view.height, view.border);
  // Each row of weights, with 8 zeros before it and zeros after it, is stored twice: as pairs that begin at even and at odd places.
  for (int row = warp; row < 2 * parts * p.height; row += warps) {
    const int half = row / p.height, k = row - half * p.height, first = half % 2 - 8;
    const std::uint16_t* from = &p.weights[half / 2][k * p.width];
    keep(from);  // see run_strip in cuda_matrix_strip.cu
    for (int i = lane; i < weight_row; i += 32) {
      std::uint32_t pair = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int at = first + 2 * i + j;
        if (at >= 0 && at < p.width) pair |= std::uint32_t(from[at]) << 16 * j;
      }
      weights[row * weight_row + i] = pair;
    }
  }

  std::uint32_t packed[4][R] = {};  // indexed by channel at run time, so in local memory; read once
#pragma unroll 1
  for (int c = 0; c < view.channels; ++c) {
    if (!(view.filtered >> c & 1)) continue;
    __syncthreads();
    with_channels(view.channels, [&](auto channels) {
      fill_tile<std::uint8_t, channels.value>(view, c, x - p.anchor_x, row_index, matrix_tile_quads(p.width), rows,
                                              HalfSink{tile, pitch});
    });
    __syncthreads();

    float sums[R][4] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t* const samples = tile + warp * R * pitch + 8 * g + 16 * step + 4 * t;
      const int at = 16 * step + 4 * t - g + 8;  // of the pair of weights for sample 4t of the window and result g
      const std::uint32_t* pairs = weights + (at & 1) * p.height * weight_row + at / 2;
      const int next_part = 2 * p.height * weight_row;
      std::uint32_t window[R][4];
      const auto load_row = [&](int i, std::uint32_t(&a)[4]) {
        const uint4 v = *reinterpret_cast<const uint4*>(samples + i * pitch);
        a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
      };
#pragma unroll
      for (int r = 0; r < R - 1; ++r) load_row(r, window[r]);
#pragma unroll 1
      for (int base = 0; base < p.height; base += R) {
#pragma unroll
        for (int u = 0; u < R; ++u) {
          const int k = base + u;
          if (k >= p.height) break;
          load_row(k + R - 1, window[(u + R - 1) % R]);
#pragma unroll
          for (int part = 0; part < parts; ++part) {
            const std::uint32_t b[2] = {pairs[part * next_part], pairs[part * next_part + 1]};
#pragma unroll
            for (int r = 0; r < R; ++r) mma(sums[r], window[(u + r) % R], b, sums[r]);
          }
          pairs += weight_row;
        }
      }
    }
    const Scaling<1> scaling(p, job, c);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      Pair<1> pairs[2];
      scaling.apply(0, sums[r], pairs);
      packed[c][r] = __byte_perm(pairs[0].word[0], pairs[1].word[0], 0x5410);
    }
  }

  const int first = y + warp * R, count = min(R, view.y1 - first);
  if (count <= 0) return;
  with_channels(view.channels, [&](auto channels) {
    constexpr int C = channels.value;
    Output<C, 2> output(job, x + 8 * g + 2 * t, first, count, 0);
    const auto store = [&](auto way) {
#pragma unroll 1
      for (int r = 0; r < count; ++r) {
        Pair<C> pairs[2];
#pragma unroll
        for (int c = 0; c < C; ++c)
#pragma unroll
          for (int j = 0; j < 4; ++j) pairs[j / 2].insert(j % 2, c, packed[c][r] >> 8 * j);
        output.template store<way.value>(pairs);
      }
    };
    if (output.way() == Way::general)
      store(std::integral_constant<Way, Way::general>{});
    else
      store(std::integral_constant<Way, Way::side>{});
  });
}

}  // namespace

const void* matrix_tile_kernel(Matrix kind) {
  return reinterpret_cast<const void*>(kind == Matrix::pair ? convolve_matrix_tile<2> : convolve_matrix_tile<1>);
}

}  // namespace cudavision::convolve
