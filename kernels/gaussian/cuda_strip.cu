// SPDX-License-Identifier: LGPL-2.1-or-later
// The Gaussian for windows that fit into registers: both passes in one kernel, on the integer matrix units.
//
// A warp computes a segment: 64 bytes wide, 16 rows a step. Example: 17 taps down (radius 8), so the ring has GY = 2 groups of 16 rows.
//
//   step   1. reads rows, across     ring (slot 0, slot 1)    2. down, 3. store: rows written
//    0     y −  8 … y +  7           group 0   –              none: the first GY − 1 steps only fill the ring
//    1     y +  8 … y + 23           group 0   group 1        y      … y + 15
//    2     y + 24 … y + 39           group 2   group 1        y + 16 … y + 31
//
//   lane 4g + t      reads                  rows g, g + 8 of the group: bytes 8t … 8t + 7 of each 32 bytes of the window
//                    holds in the ring      rows 2t, 2t + 1, 2t + 8, 2t + 9: samples `sample(g)` and `sample(g + 8)` of each 16
//                    has as results         rows g, g + 8: bytes 4t … 4t + 3 of each 16 bytes of the strip (then see cuda_store.cuh)
//
//   across: out[x][row] = Σ A[x][k] · in[k][row], 16 samples × 8 rows a product, from GX groups of 16 bytes
//   down:   out[y][x] = Σ B[y][k] · rows[k][x], 16 rows × 8 samples a product, from the GY groups of 16 rows in the ring
//
// cuda.cu lists where to change what.
//
// Interleaved channels need no unpacking. A row is a string of samples in which the taps of a channel lie `channels` samples apart, so
// the number of channels only changes the matrix A.
// No data crosses lanes between the passes: the fragments that the first product leaves in a lane are, once packed into bytes, the
// fragments that the second product needs there, because the order of its summation is free. Everything is exact.
#include <utility>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_bands.cuh"
#include "kernels/gaussian/cuda_read.cuh"
#include "kernels/gaussian/cuda_store.cuh"

namespace cudavision::gaussian {
namespace {

using cuda::kept;
using cuda::mma;

/// What the arithmetic reads of a SetJob, in registers.
struct Numbers {
  SampleRules rules;
  SetView view;  ///< only max_value and shift
};

/// The matrices and the ring of a warp, in registers. The window has up to GX groups of 16 bytes and GY groups of 16 rows.
template <typename T, int GX, int GY>
struct Strip {
  using A = Arithmetic<T>;
  static constexpr int chunks = GX / 2;                     ///< of 32 bytes, in the window of a block of 16 samples
  static constexpr int loads = strip_loads(sizeof(T), GX);  ///< words that a lane loads of a row
  static constexpr int tiles = 2 * A::blocks;               ///< of 8 samples, in a strip
  static constexpr int window = 16 * loads;                 ///< bytes of a row, for the whole strip
  static constexpr int shifts = 3 - int(sizeof(T));         ///< 8 bit: every second block begins in the middle of a chunk
  static constexpr int buffers = gaussian::buffers(sizeof(T), GX, GY);
  static_assert(GY % buffers == 0);

  uint32_t across[shifts][A::across][chunks][2][2], down[A::down][GY][2];
  uint32_t ring[GY][tiles * A::planes];  ///< group n of rows is in slot n % GY

  /// Takes the lane's fragments from the bands.
  __device__ __forceinline__ void load_matrices(const Bands<T>& bands, int lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < shifts * A::across * chunks * 2; ++i) {
        const int shift = i % shifts, part = i / shifts % 2, chunk = i / shifts / 2 % chunks, p = i / shifts / 2 / chunks;
        const int position = 32 * chunk + 4 * part + (lane % 4 * 8 + 16 * shift) % 32;
        across[shift][p][chunk][part][half] = bands.across_word(p, position, half, lane);
      }
#pragma unroll
      for (int p = 0; p < A::down; ++p)
#pragma unroll
        for (int d = 0; d < GY; ++d) down[p][d][half] = bands.down_word(p, d, half, lane);
    }
  }

  /// The pass across: a group of rows goes into slot `Newest` of the ring.
  template <int Newest>
  __device__ __forceinline__ void take(const Numbers& numbers, uint32_t (&words)[2][loads]) {
    if (sizeof(T) == 2 && numbers.rules.most != ~0u) {
#pragma unroll
      for (int i = 0; i < 2 * loads; ++i)
        words[i / loads][i % loads] = __vminu2(words[i / loads][i % loads] & numbers.rules.mask, numbers.rules.most);
    }
    // An odd block of bytes begins in the middle of a chunk. Nothing moves between lanes: lanes t = 2, 3 keep their words, lanes t = 0, 1
    // take those of the next chunk. So the bytes of a lane come in another order, and load_matrices() puts the columns of the matrix in
    // the same order.
    //   byte of the window   0   8   16  24 | 32  40  48  56        t = lane % 4
    //   even block, lane t   0   1   2   3  |
    //   odd block, lane t            2   3  | 0   1
    uint32_t shifted[2][loads];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j + 2 < loads; ++j) shifted[i][j] = threadIdx.x & 2 ? words[i][j] : words[i][j + 2];
#pragma unroll
    for (int b = 0; b < A::blocks; ++b) {
      const int shift = b % shifts, chunk = b / shifts;
      int sums[2][A::across][4] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t(&from)[loads] = shift ? shifted[i] : words[i];
#pragma unroll
        for (int p = 0; p < A::across; ++p)
#pragma unroll
          for (int d = 0; d < chunks; ++d)
            mma(sums[i][p], across[shift][p][d][0], across[shift][p][d][1], from[2 * (chunk + d)], from[2 * (chunk + d) + 1]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half)
        A::split(numbers.rules, sums[0], sums[1], half, &ring[Newest][(2 * b + half) * A::planes]);
    }
  }

  /// The pass down: result words `w` of rows g and g + 8, from a full ring.
  template <int Newest>
  __device__ __forceinline__ void columns(const Numbers& numbers, int w, uint32_t& upper, uint32_t& lower) {
    int sums[A::tiles][A::sums][4] = {};
#pragma unroll
    for (int tile = 0; tile < A::tiles; ++tile) {
      const int at = (w * A::tiles + tile) * A::planes;
#pragma unroll
      for (int byte = 0; byte < A::down; ++byte)
#pragma unroll
        for (int p = 0; p < A::planes; ++p) {
          // The groups stay in their slots. Instead, the groups of the matrix rotate.
          constexpr int turn = GY - 1 - Newest;
#pragma unroll
          for (int slot = 0; slot + 1 < GY; slot += 2)
            mma(sums[tile][p + byte], down[byte][(slot + turn) % GY], down[byte][(slot + 1 + turn) % GY], ring[slot][at + p],
                ring[slot + 1][at + p]);
          if (GY % 2) mma(sums[tile][p + byte], down[byte][(GY - 1 + turn) % GY], ring[GY - 1][at + p]);
        }
    }
    A::finish(numbers.rules, numbers.view, sums, upper, lower);
  }

  /// Computes a segment of `steps` steps. `words[0]` holds the first group of rows; `load` loads the next group.
  template <typename Stores, typename Load, int... Newest>
  __device__ __forceinline__ void march(const Numbers& numbers, Stores& store, int steps, uint32_t (&words)[buffers][2][loads],
                                        Load load, std::integer_sequence<int, Newest...>) {
#pragma unroll
    for (int d = 0; d < GY; ++d)
#pragma unroll
      for (int i = 0; i < tiles * A::planes; ++i) ring[d][i] = 0;
    int left = steps + GY - 1, full = 1 - GY;
    const auto turn = [&](auto newest) {
      constexpr int slot = decltype(newest)::value;
      --left;
      if (buffers > 1 && left) load(words[(slot + 1) % buffers]);
      take<slot>(numbers, words[slot % buffers]);
      if (buffers == 1 && left) load(words[0]);
      if (++full > 0) {
        uint32_t upper[4], lower[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) columns<slot>(numbers, w, upper[w], lower[w]);
        store.step(upper, lower);
      }
      return left > 0;
    };
    while ((turn(std::integral_constant<int, Newest>{}) && ...)) {
    }
  }
};

/// Loads the groups of rows of a segment, one after the other, and prefetches the groups after them into L2.
template <typename T, int Loads>
struct Reader {
  const SetJob& job;
  int x, y;        ///< of the lane's first word
  const int* map;  ///< of the lane's first word, for load_anywhere
  RowMap rows;
  const unsigned char* at;  ///< byte x of row 0
  int prefetch_y;           ///< each lane prefetches 32 bytes of the strip
  bool prefetches;
  const unsigned char* prefetch_at;

  __device__ __forceinline__ Reader(const SetJob& job, const Segment& segment, int radius, const int* window_map) : job(job) {
    const int lane = threadIdx.x % 32;
    x = segment.x - job.lead + lane % 4 * 8;
    y = segment.y - radius + lane / 4;
    map = window_map + lane % 4 * 8 / int(sizeof(T));
    rows = {kept(job.rows.above), kept(job.rows.below), kept(job.rows.sign), kept(job.rows.last), kept(job.rows.pitch)};
    at = reinterpret_cast<const unsigned char*>(kept(reinterpret_cast<long long>(job.view.src))) + x;
    const int prefetch_x = segment.x + lane % 2 * 32;
    prefetch_y = segment.y - radius + lane / 2 + step_rows;
    prefetches = job.one_fold && prefetch_x < job.row_bytes;
    prefetch_at = at - x + prefetch_x;
  }

  __device__ __forceinline__ void prefetch() {
    if (prefetches) asm volatile("prefetch.global.L2 [%0];" ::"l"(prefetch_at + rows(prefetch_y)));
    prefetch_y += step_rows;
  }
  __device__ __forceinline__ void inside(uint32_t (&words)[2][Loads]) {
    load_inside(rows, at, y, words);
    y += step_rows;
  }
  __device__ __forceinline__ void anywhere(uint32_t (&words)[2][Loads]) {
    load_anywhere<T>(job, map, y, x, words);
    y += step_rows;
  }
};

__device__ __forceinline__ Numbers kept_numbers(const SetJob& job) {
  Numbers numbers;
  numbers.rules.pack = kept(job.rules.pack);
  numbers.rules.out = kept(job.rules.out);
  numbers.rules.scale0 = kept(job.rules.scale0);
  numbers.rules.scale1 = kept(job.rules.scale1);
  numbers.rules.rounding = kept(job.rules.rounding);
  numbers.rules.mask = kept(job.rules.mask);
  numbers.rules.most = kept(job.rules.most);
  numbers.rules.final_shift = kept(job.rules.final_shift);
  numbers.view.max_value = kept(job.view.max_value);
  numbers.view.shift = kept(job.view.shift);
  return numbers;
}

template <typename T, int GX, int GY>
__global__ void __launch_bounds__(32 * tuning.strip_warps, min_blocks(sizeof(T), GY))
    blur_strip(const __grid_constant__ KernelParams params) {
  using S = Strip<T, GX, GY>;
  constexpr int prefetched_groups = tuning.prefetched_groups;
  __shared__ uint8_t band_storage[band_bytes(sizeof(T), GX, GY)];
  __shared__ int maps[tuning.strip_warps][S::window / sizeof(T)];
  const int set = find_set(params);
  const SetJob& job = params.jobs[set];
  const Segment segment = find_segment(job);
  const int lane = threadIdx.x % 32, radius = params.axes[set][1].radius;

  // The first rows are loaded before anything else, to wait for them as little as possible. A border value lies above and below the
  // frame too, where RowMap cannot give it.
  const bool inside =
      !segment.edge && (job.view.border != Border::constant ||
                        (segment.y >= radius && segment.y - radius + (segment.steps + GY - 1) * step_rows <= job.view.height));
  int* const map = maps[threadIdx.x / 32];  // of the warp's window
  Reader<T, S::loads> reader(job, segment, radius, map);
  uint32_t words[S::buffers][2][S::loads];
  if (segment.steps > 0) {
    if (inside) {
      reader.inside(words[0]);
      for (int i = 0; i < prefetched_groups; ++i) reader.prefetch();
    } else {
      map_window<T>(job.view, segment.x - job.lead, S::window, map);
      for (int i = 0; i < prefetched_groups; ++i) reader.prefetch();
      reader.anywhere(words[0]);
    }
  }

  const Bands<T> bands{band_storage, GX, GY};
  bands.fill(job, params.axes[set][0], params.axes[set][1]);
  if (segment.steps <= 0) return;
  S strip;
  strip.load_matrices(bands, lane);
  const Numbers numbers = kept_numbers(job);
  Store<T, stream_stores(sizeof(T), GX, GY)> store(job, segment.x, segment.y);
  const auto load_inside = [&](uint32_t(&next)[2][S::loads]) { reader.inside(next), reader.prefetch(); };
  const auto load_anywhere = [&](uint32_t(&next)[2][S::loads]) { reader.anywhere(next), reader.prefetch(); };
  if (inside)
    strip.march(numbers, store, segment.steps, words, load_inside, std::make_integer_sequence<int, GY>{});
  else
    strip.march(numbers, store, segment.steps, words, load_anywhere, std::make_integer_sequence<int, GY>{});
}

template <std::size_t... I>
Kernel byte_kernel(int shape, std::index_sequence<I...>) {
  constexpr Kernel kernels[] = {blur_strip<uint8_t, byte_shapes[I].gx, byte_shapes[I].gy>...};
  return kernels[shape];
}

template <std::size_t... I>
Kernel word_kernel(int shape, std::index_sequence<I...>) {
  constexpr Kernel kernels[] = {blur_strip<uint16_t, word_shapes[I].gx, word_shapes[I].gy>...};
  return kernels[shape];
}

}  // namespace

Kernel strip_kernel(int sample_bytes, int shape) {
  return sample_bytes == 1 ? byte_kernel(shape, std::make_index_sequence<byte_shapes.size()>())
                           : word_kernel(shape, std::make_index_sequence<word_shapes.size()>());
}

}  // namespace cudavision::gaussian
