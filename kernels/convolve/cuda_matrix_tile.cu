// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of any size on 8-bit samples: a block loads a tile into shared memory, as planes of bytes; windows are walked in steps of 16
// samples across, and down each step the rows slide through registers.
//
//        |<- 128 results + the window ->|
//        +------------------------------+ -
//   warp |  R rows of results           | R = matrix_tile_rows
//    0   |                              | -       for each step of 16 samples across:
//   warp |  R rows of results           |           for each row k of weights: load row k + R − 1 of the tile,
//    1   |                              |           multiply the R rows k … k + R − 1 by the weights of the row (cuda_matrix.cuh)
//    …   |  height − 1 more rows        |
//        +------------------------------+
//   shared memory: the tile, a plane for each channel | weights [part][parity][height][weight_row]
//
// The tile begins at the multiple of 4 at or before the first window: `skew` is the distance. If the planes of all channels do not fit
// into shared memory, they are loaded in turns. Channels run one after the other; their results are kept packed until all are stored
// together, by way of the memory of the tile.
//
// Where to change what:
//   another border         kernels/core/border.hpp (border_index); pixels that are not computed: replace_edges in cuda_units.cuh
//   another sample type    fill_planes below, cuda_matrix.cuh
//   another block shape    cuda_tuning.hpp (matrix_tile_…); shared memory: matrix_tile_bytes in cuda_schedule.hpp
#include "kernels/convolve/cuda_fill.cuh"
#include "kernels/convolve/cuda_matrix.cuh"
#include "kernels/convolve/cuda_units.cuh"
#include "kernels/cuda/async.cuh"

namespace cudavision::convolve {
namespace {

/// The planes of a tile in shared memory, row by row without gaps.
struct Planes {
  std::uint32_t* words;
  int plane_words;   ///< words from plane to plane
  int first, count;  ///< of the filtered channels

  /// Writes quad `item` of those channels that have a plane.
  template <int C>
  __device__ __forceinline__ void store(const SetView& view, int item, const Quad<std::uint8_t, C>& samples) const {
    int plane = -first;
#pragma unroll
    for (int c = 0; c < C; ++c) {
      if (C > 1 && !(view.filtered >> c & 1)) continue;
      if (C == 1 || unsigned(plane) < unsigned(count)) words[plane * plane_words + item] = samples.word[c][0];
      ++plane;
    }
  }
};

/// The block loads a tile of `rows` rows and `quads` quads, which begins at pixel (x, y) of the frame; x is a multiple of 4. Wait for the
/// copies and synchronize before use.
template <int C>
__device__ __forceinline__ void fill_planes(const SetView& view, int x, int y, int quads, int rows, const Planes& planes) {
  constexpr int batch = C == 1 ? 1 : C == 2 ? 6 : 4;  // quads of a thread that load at the same time
  const int items = rows * quads,
            inverse = (1 << 22) / quads + 1;  // item · inverse >> 22 = item / quads, exact for the largest tile
  const auto is_direct = [&](int column, int row) {
    return view.src_aligned && row >= 0 && column >= 0 && column + 4 <= view.width;
  };
  const auto at = [&](int item, int& row, int& quad) {
    row = unsigned(item) * unsigned(inverse) >> 22;
    quad = item - row * quads;
    return border_index(y + row, view.height, view.border);
  };
  for (int base = threadIdx.x; base < items; base += batch * blockDim.x) {
    std::uint32_t raw[batch][C];
    bool direct[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const int item = base + b * blockDim.x;
      int row, quad;
      const int source = at(item, row, quad);
      direct[b] = item < items && is_direct(x + 4 * quad, source);
      if (!direct[b]) continue;
      const unsigned char* const from = view.src + (source * view.src_pitch + std::ptrdiff_t(x + 4 * quad) * C);
      if constexpr (C == 1)
        cuda::copy_async<4>(planes.words + item, from);
      else
        cuda::load_words<C, quad_alignment(C, 1)>(from, raw[b]);
    }
    if constexpr (C > 1) {
#pragma unroll
      for (int b = 0; b < batch; ++b)
        if (direct[b]) planes.store<C>(view, base + b * blockDim.x, cuda::deinterleave<std::uint8_t, C>(raw[b]));
    }
  }
  cuda::commit();
  // Quads that are not in the frame.
  if (is_direct(x, border_index(y, view.height, view.border)) &&
      is_direct(x + 4 * (quads - 1), border_index(y + rows - 1, view.height, view.border)))
    return;
  for (int item = threadIdx.x; item < items; item += blockDim.x) {
    int row, quad;
    const int source = at(item, row, quad);
    if (!is_direct(x + 4 * quad, source)) planes.store<C>(view, item, cuda::load_quad<std::uint8_t, C>(view, x + 4 * quad, source));
  }
}

/// Writes the results of a warp, which lie in the lanes, by way of shared memory. packed[c][r]: the lane's pairs of row r.
template <int C>
__device__ __forceinline__ void write_results(const MatrixJob& job, const std::uint32_t (&packed)[4][tuning.matrix_tile_rows],
                                              unsigned char* stage, int x, int y) {
  constexpr int R = tuning.matrix_tile_rows, row_bytes = tile_width * C, across = row_bytes / 16;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int r = 0; r < R; ++r) {
    Pair<C> pairs[2];
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int j = 0; j < 4; ++j) pairs[j / 2].insert(j % 2, c, packed[c][r] >> 8 * j);
#pragma unroll
    for (int h = 0; h < 2; ++h) pairs[h].store(stage + r * row_bytes + (8 * g + 2 * t + 64 * h) * C);
  }
  __syncwarp();
  if (view.border >= Border::fill) {
    replace_edges<C>(edges_of(job), stage, R, x, y, [&](int r, int byte) {
      const bool exists = y + r < view.height && x * C + byte < job.row_bytes;
      return exists ? view.src[(y + r) * view.src_pitch + x * C + byte] : std::uint8_t(0);
    });
    __syncwarp();
  }
#pragma unroll 1
  for (int unit = lane; unit < R * across; unit += 32) {
    const int row = y + unit / across, byte = x * C + unit % across * 16;
    if (row >= view.y1 || byte >= view.x1 * C) continue;
    store_any<C>(job, row, byte, reinterpret_cast<const uint4*>(stage)[unit],
                 [&]() { return load_unit(job, view.src + (row * view.src_pitch + byte), byte); });
  }
}

template <int parts>
__global__ void __launch_bounds__(32 * tuning.matrix_tile_warps, 2)
    convolve_matrix_tile(const __grid_constant__ MatrixTileParams p) {
  constexpr int R = tuning.matrix_tile_rows;
  extern __shared__ uint4 shared_memory[];
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  const MatrixJob& job = p.jobs[set];
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, g = lane / 4, t = lane % 4;
  const Place place = tile_place(blockIdx.x - job.first_block, job.cut.tiles_x);
  const int x = (view.x0 & -16) + place.x * tile_width, y = view.y0 + place.y * warps * R;
  const int skew = matrix_skew(p.anchor_x), steps = matrix_steps(p.width, skew), pitch = matrix_tile_quads(steps);
  const int rows = warps * R + p.height - 1, weight_row = matrix_weight_row(steps);

  std::uint32_t* const tile = reinterpret_cast<std::uint32_t*>(shared_memory);
  std::uint32_t* const weights = tile + p.planes * rows * pitch;  // [part][parity][height][weight_row]
  const auto fill = [&](int plane) {
    with_channels(view.channels, [&](auto channels) {
      fill_planes<channels.value>(view, x - p.anchor_x - skew, y - p.anchor_y, pitch, rows,
                                  Planes{tile, rows * pitch, plane, p.planes});
    });
  };
  fill(0);
  // Each row of weights, with matrix_zeros zeros before it and zeros after it, is stored twice: as pairs that begin at even and at odd places.
  for (int row = warp; row < 2 * parts * p.height; row += warps) {
    const int half = row / p.height, k = row - half * p.height, first = half % 2 - matrix_zeros;
    const std::uint16_t* from = &p.weights[half / 2][k * p.width];
    keep(from);  // see Strip in cuda_matrix_strip.cu
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
  int plane = 0;
#pragma unroll 1
  for (int c = 0; c < view.channels; ++c) {
    if (!(view.filtered >> c & 1)) continue;
    const int turn = plane % p.planes;
    if (turn == 0 && plane > 0) {
      __syncthreads();
      fill(plane);
    }
    cuda::wait<0>();
    __syncthreads();
    ++plane;

    float sums[R][4] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const std::uint32_t* const samples = tile + (turn * rows + warp * R) * pitch + 2 * g + 4 * step + t;
      // Of the pair of weights for sample 4t of the window and result g.
      const int at = 16 * step + 4 * t - g - skew + matrix_zeros;
      const std::uint32_t* pairs = weights + (at & 1) * p.height * weight_row + at / 2;
      const int next_part = 2 * p.height * weight_row;
      std::uint32_t window[R][4];
      const auto load_row = [&](int i, std::uint32_t(&a)[4]) {
        const std::uint32_t left[1] = {samples[i * pitch]}, right[1] = {samples[i * pitch + 16]};  // segments g and g + 8
        a[0] = halves_of<1>(left, 0, 0), a[1] = halves_of<1>(right, 0, 0);
        a[2] = halves_of<1>(left, 0, 1), a[3] = halves_of<1>(right, 0, 1);
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

  __syncthreads();
  const int first = y + warp * R;
  unsigned char* const stage = reinterpret_cast<unsigned char*>(shared_memory) + warp * (R * tile_width * view.channels);
  with_channels(view.channels, [&](auto channels) { write_results<channels.value>(job, packed, stage, x, first); });
}

}  // namespace

const void* matrix_tile_kernel(Matrix kind) {
  return reinterpret_cast<const void*>(kind == Matrix::pair ? convolve_matrix_tile<2> : convolve_matrix_tile<1>);
}

}  // namespace cudavision::convolve
