// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels larger than 7 × 7 weights on 8-bit samples (Family::matrix_tile): a block moves down a column of tiles. While
// it multiplies one tile, the next one is copied to shared memory, if two fit. Windows are processed in steps of 16
// samples across; in each step, the rows slide through registers from top to bottom.
//
//        |<- 128 results + the window ->|
//        +------------------------------+ -
//   warp |  R rows of results           | R = matrix_tile_rows
//    0   |                              | -   for each step of 16 samples across (the last one may have 8):
//   warp |  R rows of results           |       for each row k of weights: load row k + R − 1 of the tile,
//    1   |                              |       multiply the R rows k … k + R − 1 by the weights of the row
//    …   |  height − 1 more rows        |       (cuda_matrix.cuh)
//        +------------------------------+
//   shared memory: weights [part][parity][height][weight_row] | one or two tiles: bytes as in the frame
//                                                               (cuda_tile_rows.cuh)
//
// The first step begins at the multiple of 4 samples at or before the first window; `skew` is the distance. A warp
// multiplies up to N of the C channels of a set at once; if more are filtered, it processes the tile again.
//
// Where to change what:
//   another border         "Walks" in CONTRIBUTING.md; one whose pixels are not computed: store_any()
//   another sample type    Picker, cuda_matrix.cuh
//   another block shape    cuda_tuning.hpp (matrix_tile_…); shared memory: matrix_tile_bytes in cuda_schedule.cpp
#include <climits>

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
  std::uint32_t both, last;  ///< selectors for bytes of two pixels: for the channels 0 and 1, and for channel N − 1

  /// Selects the N lowest channels of `rest`, which has at least one channel.
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
  /// Bit c: channel c is one of the selected channels.
  __device__ __forceinline__ int mask() const {
    int mask = 0;
#pragma unroll
    for (int n = 0; n < N; ++n) mask |= 1 << channel[n];
    return mask;
  }

  /// Writes the pixels 2·pair and 2·pair + 1 of `words` to halves[n][at].
  __device__ __forceinline__ void pick(const std::uint32_t (&words)[C], int pair, std::uint32_t (&halves)[N][4],
                                       int at) const {
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

/// The weights of a block in shared memory. Each row has matrix_zeros zeros before it, and zeros after it. Each row is
/// stored twice: as pairs that begin at even weights and at odd weights.
struct Weights {
  const std::uint32_t* words;
  int height, row, parity;  ///< row: words of a row; parity: words from the even pairs to the odd pairs

  __device__ __forceinline__ int part() const { return 2 * parity; }
  /// The pair of weights of the first row for sample `at` of the window.
  __device__ __forceinline__ const std::uint32_t* pair(int at) const { return words + (at & 1) * parity + at / 2; }

  template <int parts>
  __device__ __forceinline__ static Weights make(const MatrixTileParams& p, std::uint32_t* words, int halves) {
    const int row_words = matrix_weight_row(halves), parity = matrix_weight_words(p.height, halves);
    for (int item = threadIdx.x; item < p.height * row_words; item += blockDim.x) {
      const int k = item / row_words, first = 2 * (item - k * row_words) - matrix_zeros;
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const std::uint16_t* from = &p.weights[part][k * p.width];
        opaque_register(from);  // see StripSums in cuda_matrix_strip.cu
        std::uint32_t w[3];
#pragma unroll
        for (int j = 0; j < 3; ++j) w[j] = unsigned(first + j) < unsigned(p.width) ? from[first + j] : 0;
        words[2 * part * parity + item] = w[0] | w[1] << 16;
        words[(2 * part + 1) * parity + item] = w[1] | w[2] << 16;
      }
    }
    return {words, p.height, row_words, parity};
  }
};

/// Adds a step of 16 samples (`half`: 8 samples) to R rows of sums.
template <int C, int N, int parts, bool half, int R>
struct Step {
  static constexpr int bytes = (half ? 2 : 4) * C;

  const Picker<C, N>& picker;
  float (&sums)[N][R][4];
  const unsigned char* from;  ///< the lane's first sample of the step in the next row
  int pitch;
  const std::uint32_t* pairs;  ///< the lane's first weights of the next row
  int weight_row, next_part;
  std::uint32_t window[R][N][4];

  __device__ __forceinline__ void load_row(std::uint32_t (&a)[N][4]) {
    std::uint32_t left[C] = {}, right[C] = {};  // samples of the segments g and g + 8
    load_shared<bytes>(from, left);
    load_shared<bytes>(from + 64 * C, right);
    picker.pick(left, 0, a, 0);
    picker.pick(right, 0, a, 1);
    if constexpr (!half) {
      picker.pick(left, 1, a, 2);
      picker.pick(right, 1, a, 3);
    }
    from += pitch;
  }

  /// Adds `count` rows of weights. window[first % R] is the first row of samples.
  template <int count, int first>
  __device__ __forceinline__ void add_rows() {
#pragma unroll
    for (int u = first; u < first + count; ++u) {
      load_row(window[(u + R - 1) % R]);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const std::uint32_t b[2] = {pairs[part * next_part], half ? 0 : pairs[part * next_part + 1]};
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
      pairs += weight_row;
    }
  }

  /// Adds the last `height` rows of weights, which are fewer than 2 · count.
  template <int count, int first = 0>
  __device__ __forceinline__ void add_last(int height) {
    if constexpr (count > 0 && count % R == 0) {  // the window is the same with and without these rows
      if (height & count) add_rows<count, first>();
      add_last<count / 2, first>(height);
    } else if constexpr (count > 0) {
      if (height & count) {
        add_rows<count, first>();
        add_last<count / 2, first + count>(height);
      } else {
        add_last<count / 2, first>(height);
      }
    }
  }

  /// Products of a warp wait for each other only where the code branches. So most rows are added 8 at a time.
  __device__ __forceinline__ void add(int height) {
#pragma unroll
    for (int r = 0; r < R - 1; ++r) load_row(window[r]);
#pragma unroll 1
    for (; height >= 8; height -= 8) add_rows<8, 0>();
    add_last<4>(height);
  }
};

/// Writes the bytes of two pixels that lie in the region, belong to `mask` and are not copied. `source`: the source's
/// pixels.
template <int C>
__device__ __noinline__ void store_any(const MatrixJob& job, int mask, int x, int y, uint2 results,
                                       const unsigned char* source) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
#pragma unroll 1
  for (int j = 0; j < 2; ++j) {
    const int column = x + j;
    if (column < view.x0 || column >= view.x1) continue;
    const bool computed =
        column >= whole.x && column < whole.x + whole.width && y >= whole.y && y < whole.y + whole.height;
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

/// Scales and writes the sums of a warp. (x, y): its first result; `source`: that pixel in the tile. `first`: whether
/// to also write copied channels.
template <int C, int N, int R>
__device__ __forceinline__ void store(const MatrixJob& job, const Picker<C, N>& picker, bool first,
                                      const float (&sums)[N][R][4], int x, int y, const unsigned char* source,
                                      int pitch) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
  const int lane = threadIdx.x % 32, pixel = lane / 4 * 8 + lane % 4 * 2;
  int mask = view.own & picker.mask();
  if (first) mask |= view.own & ~view.filtered;
  const bool words = mask == (1 << C) - 1 && (C == 4 ? job.stores_16 : job.stores_4);
  const int x0 = max(view.x0, whole.x), x1 = min(view.x1, whole.x + whole.width);
  // These stay in registers, because parameters of one of several sets are slow to load.
  const int y0 = cuda::warp_uniform(words ? max(view.y0, whole.y) : INT_MAX),
            y1 = cuda::warp_uniform(min(view.y1, whole.y + whole.height));
  const int end = cuda::warp_uniform(view.y1), absolute = cuda::warp_uniform(int(job.absolute));
  const float scale = cuda::warp_uniform(job.scale);
  const std::ptrdiff_t dst_pitch = cuda::warp_uniform(view.dst_pitch);
  float before[N], after[N];
#pragma unroll
  for (int n = 0; n < N; ++n) {
    before[n] = cuda::warp_uniform(job.before[picker.channel[n]]);
    after[n] = cuda::warp_uniform(job.after[picker.channel[n]]);
  }
  x += pixel;
  source += pixel * C;
  unsigned char* to = view.dst + (y * view.dst_pitch + x * C);
  const bool inside[2] = {x >= x0 && x + 2 <= x1, x + 64 >= x0 && x + 66 <= x1};
  Pair<C> pairs[R][2];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Pair<C>& pair = pairs[r][h];
      if constexpr (C == 2 || C == 4) load_shared<2 * C>(source + r * pitch + 64 * C * h, pair.word);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int n = 0; n < N; ++n) {
          float value = fmaf(sums[n][r][2 * h + j], scale, before[n]);
          value = absolute ? fabsf(value) + after[n] : value;
          const std::uint32_t sample = to_sample<std::uint8_t>(value, 255);
          if constexpr (C == 2 || C == 4) {
            const int byte = j * C % 4 + picker.channel[n];
            std::uint32_t& word = pair.word[j * C / 4];
            word = __byte_perm(word, sample, (0x3210 & ~(0xf << 4 * byte)) | 4 << 4 * byte);
          } else {
            pair.insert(j, n, sample);
          }
        }
    }
  if (__all_sync(~0u, inside[0] && inside[1] && y >= y0 && y + R <= y1)) {
#pragma unroll
    for (int r = 0; r < R; ++r, to += dst_pitch)
#pragma unroll
      for (int h = 0; h < 2; ++h) pairs[r][h].store(to + 64 * C * h);
    return;
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (y + r >= end) break;
    const bool computed = y + r >= y0 && y + r < y1;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const Pair<C>& pair = pairs[r][h];
      if (computed && inside[h])
        pair.store(to + 64 * C * h);
      else
        store_any<C>(job, mask, x + 64 * h, y + r, make_uint2(pair.word[0], pair.word[C > 2]),
                     source + r * pitch + 64 * C * h);
    }
    to += dst_pitch;
  }
}

/// A block moves down its tiles. It computes C channels of a set, N at a time.
template <int C, int N, int parts>
__device__ __forceinline__ void convolve_tiles(const MatrixTileParams& p, const MatrixJob& job, unsigned char* memory) {
  constexpr int R = matrix_tile_rows(C);
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, g = lane / 4, t = lane % 4;
  const Place place = tile_place(blockIdx.x - job.first_block, job.cut.tiles_x);
  const int x = (view.x0 & -16) + place.x * tile_width;
  int y = view.y0 + place.y * warps * job.cut.rows;
  const int y1 = min(y + warps * job.cut.rows, view.y1);

  const int skew = matrix_skew(p.anchor_x), halves = matrix_half_steps(p.width, skew);
  const TileRows<C> tile(job, x - p.anchor_x - skew, halves, warps * R + p.height - 1, view.x1 + p.width);
  unsigned char* const tiles = memory + matrix_weight_bytes(p.height, halves, parts);
  cuda::let_next_start();
  cuda::wait_for_previous();
  tile.copy(tiles, y - p.anchor_y);
  cuda::commit();
  const Weights weights = Weights::make<parts>(p, reinterpret_cast<std::uint32_t*>(memory), halves);

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
          Step<C, N, parts, false, R>{picker,
                                      sums,
                                      from + (16 * step + 4 * t) * C,
                                      tile.pitch,
                                      weights.pair(16 * step + 4 * t - g - skew + matrix_zeros),
                                      weights.row,
                                      weights.part()}
              .add(p.height);
        if (halves % 2)
          Step<C, N, parts, true, R>{picker,
                                     sums,
                                     from + (8 * halves - 8 + 2 * t) * C,
                                     tile.pitch,
                                     weights.pair(8 * halves - 8 + 2 * t - g - skew + matrix_zeros),
                                     weights.row,
                                     weights.part()}
              .add(p.height);
        store<C, N>(job, picker, rest == view.filtered, sums, x, own_y,
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
