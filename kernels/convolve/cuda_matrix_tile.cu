// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of any size on 8-bit samples: a block goes down a column of tiles. While it multiplies one tile, the next one is copied to
// shared memory. Windows are walked in steps of 16 samples across, and down each step the rows slide through registers.
//
//        |<- 128 results + the window ->|
//        +------------------------------+ -
//   warp |  R rows of results           | R = matrix_tile_rows
//    0   |                              | -       for each step of 16 samples across:
//   warp |  R rows of results           |           for each row k of weights: load row k + R − 1 of the tile,
//    1   |                              |           multiply the R rows k … k + R − 1 by the weights of the row (cuda_matrix.cuh)
//    …   |  height − 1 more rows        |
//        +------------------------------+
//   shared memory: weights [part][parity][height][weight_row] | one or two tiles, as rows of the frame: cuda_tile_rows.cuh
//
// The windows begin at a multiple of 4 samples at or before the first one: `skew` is the distance. The last step may have 8 samples.
// A warp multiplies up to N channels of a set of C at once; if more are filtered, it goes over the tile again.
//
// Where to change what:
//   another border         kernels/core/border.hpp (border_index); pixels that are not computed: store_any
//   another sample type    Picker, cuda_matrix.cuh
//   another block shape    cuda_tuning.hpp (matrix_tile_…); shared memory: matrix_tile_bytes in cuda_schedule.hpp
#include <climits>

#include "kernels/convolve/cuda_fill.cuh"
#include "kernels/convolve/cuda_matrix.cuh"
#include "kernels/convolve/cuda_tile_rows.cuh"
#include "kernels/cuda/overlap.hpp"
#include "kernels/cuda/warp.cuh"

namespace cudavision::convolve {
namespace {

/// Reads the samples of N of the C channels of a set from shared memory, as halves.
template <int C, int N>
struct Picker {
  int channel[N];
  std::uint32_t both, last;  ///< which bytes of two pixels: of the channels 0 and 1, and of channel N − 1

  /// The N lowest channels of `rest`, of which there is at least one.
  __device__ __forceinline__ explicit Picker(int rest) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      channel[n] = C == N ? n : __ffs(rest) - 1;
      if (C != N && (rest & (rest - 1))) rest &= rest - 1;
    }
    const int a = channel[0], b = channel[N > 1], z = channel[N - 1];
    both = a | b << 4 | (4 + a) << 8 | (4 + b) << 12;
    last = C == 2 ? 0x4040 | z | (z + 2) << 8 : z | (4 + z) << 8;
  }
  /// Bit c: channel c is among them.
  __device__ __forceinline__ int mask() const {
    int mask = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) mask |= 1 << channel[n];
    return mask;
  }

  /// The pixels 2·pair and 2·pair + 1 of those in `words`; to halves[n][at].
  __device__ __forceinline__ void pick(const std::uint32_t (&words)[C], int pair, std::uint32_t (&halves)[N][4], int at) const {
    if constexpr (C == 4) {
      const std::uint32_t first = words[2 * pair], second = words[2 * pair + 1], low = 0x00ff00ffu;
      const std::uint32_t two = __byte_perm(first, second, both);
      halves[0][at] = two & low;
      if (N > 1) halves[N > 1][at] = __byte_perm(two, 0, 0x4341);
      if (N > 2) halves[N - 1][at] = __byte_perm(first, second, last) & low;
    } else if constexpr (C == 2 && N == 1) {
      halves[0][at] = __byte_perm(words[pair], 0, last);
    } else {
#pragma unroll
      for (int n = 0; n < N; ++n) halves[n][at] = halves_of<C>(words, n, pair);
    }
  }
};

/// Loads Bytes bytes; the address is aligned to the largest power of two that divides Bytes.
template <int Bytes, int W>
__device__ __forceinline__ void load_shared(const unsigned char* from, std::uint32_t (&words)[W]) {
  if constexpr (Bytes == 16) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else if constexpr (Bytes == 8) {
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    words[0] = v.x, words[1] = v.y;
  } else if constexpr (Bytes % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Bytes / 4; ++i) words[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
  } else {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(from);
    words[0] = halves[0];
    if constexpr (Bytes == 6) words[0] |= std::uint32_t(halves[1]) << 16, words[1] = halves[2];
  }
}

/// The weights of a block in shared memory: each row, with matrix_zeros zeros before it and zeros after it, is stored twice: as pairs that
/// begin at even and at odd places.
struct Weights {
  const std::uint32_t* words;
  int height, row;  ///< row: words of a row

  __device__ __forceinline__ int part() const { return 2 * height * row; }
  /// Of the first row: the pair for sample `at` of the window.
  __device__ __forceinline__ const std::uint32_t* pair(int at) const { return words + (at & 1) * height * row + at / 2; }

  template <int parts>
  __device__ __forceinline__ static void make(const MatrixTileParams& p, std::uint32_t* words, int row_words) {
    const int items = 2 * parts * p.height * row_words;
    for (int item = threadIdx.x; item < items; item += blockDim.x) {
      const int row = item / row_words, i = item - row * row_words;
      const int half = row / p.height, k = row - half * p.height, first = half % 2 - matrix_zeros;
      const std::uint16_t* from = &p.weights[half / 2][k * p.width];
      keep(from);  // see Strip in cuda_matrix_strip.cu
      std::uint32_t pair = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int at = first + 2 * i + j;
        if (at >= 0 && at < p.width) pair |= std::uint32_t(from[at]) << 16 * j;
      }
      words[item] = pair;
    }
  }
};

/// Adds a step of 16 samples, or of 8 (`half`), to R rows of sums. `from`: the lane's first sample of the step in the first row. `pairs`:
/// the lane's first weights.
template <int C, int N, int parts, bool half, int R>
__device__ __forceinline__ void add_step(const Picker<C, N>& picker, const unsigned char* from, int pitch, const Weights& weights,
                                         const std::uint32_t* pairs, float (&sums)[N][R][4]) {
  constexpr int bytes = (half ? 2 : 4) * C;
  std::uint32_t window[R][N][4];
  const auto load_row = [&](std::uint32_t(&a)[N][4]) {
    std::uint32_t left[C] = {}, right[C] = {};  // segments g and g + 8
    load_shared<bytes>(from, left);
    load_shared<bytes>(from + 64 * C, right);
    picker.pick(left, 0, a, 0);
    picker.pick(right, 0, a, 1);
    if constexpr (!half) {
      picker.pick(left, 1, a, 2);
      picker.pick(right, 1, a, 3);
    }
    from += pitch;
  };
#pragma unroll
  for (int r = 0; r < R - 1; ++r) load_row(window[r]);
#pragma unroll 1
  for (int base = 0; base < weights.height; base += R) {
#pragma unroll
    for (int u = 0; u < R; ++u) {
      if (base + u >= weights.height) break;
      load_row(window[(u + R - 1) % R]);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const std::uint32_t b[2] = {pairs[part * weights.part()], half ? 0 : pairs[part * weights.part() + 1]};
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int n = 0; n < N; ++n) {
            const std::uint32_t(&a)[4] = window[(u + r) % R][n];
            if constexpr (half)
              mma(sums[n][r], a[0], a[1], b[0], sums[n][r]);
            else
              mma(sums[n][r], a, b, sums[n][r]);
          }
      }
      pairs += weights.row;
    }
  }
}

/// Writes those bytes of two pixels that lie in the region, belong to `mask` and are not copied. `source`: the source's pixels.
template <int C>
__device__ __noinline__ void store_any(const MatrixJob& job, int mask, int x, int y, uint2 results, const unsigned char* source) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
#pragma unroll 1
  for (int j = 0; j < 2; ++j) {
    const int column = x + j;
    if (column < view.x0 || column >= view.x1) continue;
    const bool computed = column >= whole.x && column < whole.x + whole.width && y >= whole.y && y < whole.y + whole.height;
#pragma unroll 1
    for (int c = 0; c < C; ++c) {
      if (!(mask >> c & 1)) continue;
      const int byte = j * C + c;
      std::uint32_t value = (byte < 4 ? results.x : results.y) >> byte % 4 * 8;
      if (!computed) value = view.border == Border::fill ? view.border_value[c] : source[byte];
      if (!(view.filtered >> c & 1)) value = source[byte];
      view.dst[y * view.dst_pitch + column * C + c] = std::uint8_t(value);
    }
  }
}

/// Scales and writes the sums of a warp. (x, y): its first result; `source`: that pixel in the tile. first: also writes channels that are
/// copied.
template <int C, int N, int R>
__device__ __forceinline__ void store(const MatrixParams& p, const MatrixJob& job, const Picker<C, N>& picker, bool first,
                                      const float (&sums)[N][R][4], int x, int y, const unsigned char* source, int pitch) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
  const int lane = threadIdx.x % 32, pixel = lane / 4 * 8 + lane % 4 * 2;
  int mask = view.own & picker.mask();
  if (first) mask |= view.own & ~view.filtered;
  const bool words = mask == (1 << C) - 1 && (C == 4 ? job.stores_16 : job.stores_4);
  const int x0 = max(view.x0, whole.x), x1 = min(view.x1, whole.x + whole.width);
  // These stay in registers: parameters of one of several sets take long to load.
  const int y0 = cuda::kept(words ? max(view.y0, whole.y) : INT_MAX), y1 = cuda::kept(min(view.y1, whole.y + whole.height));
  const int end = cuda::kept(view.y1), absolute = cuda::kept(int(job.absolute));
  const float scale = cuda::kept(job.scale);
  const std::ptrdiff_t dst_pitch = cuda::kept(view.dst_pitch);
  float before[N], after[N];
#pragma unroll
  for (int n = 0; n < N; ++n) {
    before[n] = cuda::kept(job.before[picker.channel[n]]);
    after[n] = cuda::kept(job.after[picker.channel[n]]);
  }
  x += pixel;
  source += pixel * C;
  unsigned char* to = view.dst + (y * view.dst_pitch + x * C);
  const bool inside[2] = {x >= x0 && x + 2 <= x1, x + 64 >= x0 && x + 66 <= x1};
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (y + r >= end) break;
    const bool computed = y + r >= y0 && y + r < y1;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Pair<C> pair;
      if constexpr (C == 2 || C == 4) load_shared<2 * C>(source + 64 * C * h, pair.word);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int n = 0; n < N; ++n) {
          float value = fmaf(sums[n][r][2 * h + j], scale, before[n]);
          if (absolute) value = fabsf(value) + after[n];
          const std::uint32_t sample = to_sample<std::uint8_t>(value, 255);
          if constexpr (C == 2 || C == 4) {
            const int byte = j * C % 4 + picker.channel[n];
            std::uint32_t& word = pair.word[j * C / 4];
            word = __byte_perm(word, sample, (0x3210 & ~(0xf << 4 * byte)) | 4 << 4 * byte);
          } else {
            pair.insert(j, n, sample);
          }
        }
      if (computed && inside[h])
        pair.store(to + 64 * C * h);
      else
        store_any<C>(job, mask, x + 64 * h, y + r, make_uint2(pair.word[0], pair.word[C > 2]), source + 64 * C * h);
    }
    source += pitch;
    to += dst_pitch;
  }
}

/// A block goes down its tiles. C channels of a set, N at once.
template <int C, int N, int parts>
__device__ __forceinline__ void convolve_tiles(const MatrixTileParams& p, const MatrixJob& job, unsigned char* memory) {
  constexpr int R = matrix_tile_rows(C);
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, g = lane / 4, t = lane % 4;
  const Place place = tile_place(blockIdx.x - job.first_block, job.cut.tiles_x);
  const int x = (view.x0 & -16) + place.x * tile_width;
  int y = view.y0 + place.y * warps * job.cut.rows;
  const int y1 = min(y + warps * job.cut.rows, view.y1);

  const int skew = matrix_skew(p.anchor_x), halves = matrix_half_steps(p.width, skew), row_words = matrix_weight_row(halves);
  const TileRows tile(job, x - p.anchor_x - skew, halves, warps * R + p.height - 1, view.x1 + p.width);
  std::uint32_t* const words = reinterpret_cast<std::uint32_t*>(memory);
  unsigned char* const tiles = memory + matrix_weight_bytes(p.height, halves, parts);
  cuda::let_next_start();
  cuda::wait_for_previous();
  tile.copy(tiles, y - p.anchor_y);
  cuda::commit();
  Weights::make<parts>(p, words, row_words);
  const Weights weights{words, p.height, row_words};

  for (int buffer = 0; y < y1; y += warps * R) {
    cuda::wait<0>();
    __syncthreads();
    unsigned char* const rows = tiles + buffer * tile.bytes();
    if (tile.has_sides()) {
      tile.fill_sides(rows, y - p.anchor_y);
      __syncthreads();
    }
    if (p.buffers == 2) {
      buffer ^= 1;
      if (y + warps * R < y1) tile.copy(tiles + buffer * tile.bytes(), y + warps * R - p.anchor_y);
      cuda::commit();
    }
    const int own_y = y + warp * R;
    if (own_y < view.y1) {
      const unsigned char* const from = rows + warp * R * tile.pitch + tile.lead + (8 * g * C);
      for (int rest = view.filtered; rest;) {
        const Picker<C, N> picker(rest);
        float sums[N][R][4] = {};
#pragma unroll 1
        for (int step = 0; step < halves / 2; ++step)
          add_step<C, N, parts, false>(picker, from + (16 * step + 4 * t) * C, tile.pitch, weights,
                                       weights.pair(16 * step + 4 * t - g - skew + matrix_zeros), sums);
        if (halves % 2)
          add_step<C, N, parts, true>(picker, from + (8 * halves - 8 + 2 * t) * C, tile.pitch, weights,
                                      weights.pair(8 * halves - 8 + 2 * t - g - skew + matrix_zeros), sums);
        store<C, N>(p, job, picker, rest == view.filtered, sums, x, own_y,
                    rows + (warp * R + p.anchor_y) * tile.pitch + tile.lead + (skew + p.anchor_x) * C, tile.pitch);
        rest &= ~picker.mask();
      }
    }
    if (p.buffers == 1 && y + warps * R < y1) {
      __syncthreads();
      tile.copy(tiles, y + warps * R - p.anchor_y);
      cuda::commit();
    }
  }
}

template <int parts>
__global__ void __launch_bounds__(32 * tuning.matrix_tile_warps, 2)
    convolve_matrix_tile(const __grid_constant__ MatrixTileParams p) {
  extern __shared__ uint4 shared_memory[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared_memory);
  const int set = (blockIdx.x >= p.jobs[1].first_block) + (blockIdx.x >= p.jobs[2].first_block);
  const MatrixJob& job = p.jobs[set];
  const int filtered = __popc(job.view.filtered);
  switch (job.view.channels) {
    case 1:
      return convolve_tiles<1, 1, parts>(p, job, memory);
    case 2:
      return filtered == 1 ? convolve_tiles<2, 1, parts>(p, job, memory) : convolve_tiles<2, 2, parts>(p, job, memory);
    case 3:
      return convolve_tiles<3, 3, parts>(p, job, memory);
    default:
      return filtered == 3 ? convolve_tiles<4, 3, parts>(p, job, memory) : convolve_tiles<4, 2, parts>(p, job, memory);
  }
}

}  // namespace

const void* matrix_tile_kernel(Matrix kind) {
  return reinterpret_cast<const void*>(kind == Matrix::pair ? convolve_matrix_tile<2> : convolve_matrix_tile<1>);
}

}  // namespace cudavision::convolve
