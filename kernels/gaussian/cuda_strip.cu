// SPDX-License-Identifier: LGPL-2.1-or-later
// The Gaussian for windows that fit into registers: both passes in one kernel, on the integer matrix units.
//
// A block computes a segment: its warps have strips of 64 bytes side by side and move down together, 16 rows a step. Example: 17 taps
// down (radius 8), so the ring has GY = 2 groups of 16 rows.
//
//   step   1. rows in the tile, across   ring (slot 0, slot 1)    2. rows copied    3. down, store: rows written
//    0     y −  8 … y +  7               group 0   –              group 2           none: the first GY − 1 steps only fill the ring
//    1     y +  8 … y + 23               group 0   group 1        group 3           y      … y + 15
//    2     y + 24 … y + 39               group 2   group 1        group 4           y + 16 … y + 31
//
//   tile   (shared memory, cuda_tile.cuh)  groups of rows: the next ones, which are still being copied, and those of the window
//   ring   (registers)                     row sums
//
//   lane 4g + t      reads from the tile    rows g, g + 8 of the group: bytes 8t … 8t + 7 of each 32 bytes of the window
//                    holds in the ring      rows 2t, 2t + 1, 2t + 8, 2t + 9: samples `sample(g)` and `sample(g + 8)` of each 16
//                    has as results         rows g, g + 8: bytes 4t … 4t + 3 of each 16 bytes of the strip (then see cuda_store.cuh)
//
//   across: out[x][row] = Σ A[x][k] · in[k][row], 16 samples × 8 rows a product, from GX groups of 16 samples
//   down:   out[y][x] = Σ B[y][k] · rows[k][x], 16 rows × 8 samples a product, from the GY groups of 16 rows in the ring
//
// cuda.cu lists where to change what.
//
// Interleaved channels need no unpacking. A row is a string of samples in which the taps of a channel lie `channels` samples apart, so
// the number of channels only changes the matrix A. In packed 4:2:2 the rows of A differ: luma has another radius and distance than
// chroma (see Kind).
// No data crosses lanes between the passes: the fragments that the first product leaves in a lane are, once packed into bytes, the
// fragments that the second product needs there, because the order of its summation is free. Everything is exact.
#include <utility>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/overlap.hpp"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_bands.cuh"
#include "kernels/gaussian/cuda_store.cuh"
#include "kernels/gaussian/cuda_tile.cuh"

namespace cudavision::gaussian {
namespace {

using cuda::kept;
using cuda::mma;

/// What the arithmetic reads of a SetJob, in registers.
struct Numbers {
  SampleRules rules;
  uint32_t pack;  ///< of the lane's kind of samples
};

/// The matrices and the ring of a warp, in registers. The window has up to GX groups of 16 samples and GY groups of 16 rows.
template <typename T, int GX, int GY>
struct Strip {
  using A = Arithmetic<T>;
  static constexpr int blocks = strip_blocks(sizeof(T));
  static constexpr int tiles = 2 * blocks;           ///< of 8 samples, in a strip
  static constexpr int shifts = 3 - int(sizeof(T));  ///< 8 bit: a lane has 8 neighbouring bytes of each 32, so odd blocks load anew
  static_assert(sizeof(T) == 2 || GX % 2 == 0);
  static constexpr int ahead = groups_ahead(GY);
  static constexpr StripLayout layout{sizeof(T), GX, GY};
  static constexpr int pitch = layout.pitch;

  uint32_t across[A::bytes][GX][2];
  uint32_t down[A::bytes][GY][GY][2];    ///< for each slot of the ring that can hold the newest group: the groups by slot
  uint32_t ring[GY][tiles * A::planes];  ///< group n of rows is in slot n % GY
  int start[4];                          ///< what sum A::rounded of a result begins with

  /// Takes the lane's fragments from the bands. The order of the columns is the order in which take() has the samples. Operands of a
  /// product lie in neighbouring registers: words in several orders take a register for each, or they would be moved at each use.
  __device__ __forceinline__ void load_matrices(const Bands<T>& bands, int lane) {
    const int t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int byte = 0; byte < A::bytes; ++byte) {
#pragma unroll
        for (int i = 0; i < GX; ++i)
          across[byte][i][half] =
              bands.across_word(byte, sizeof(T) == 1 ? i / 2 * 32 + t * 8 + i % 2 * 4 : i * 16 + t * 4, 2, half, lane);
#pragma unroll
        for (int i = 0; i < GY * GY; ++i) {
          down[byte][i / GY][i % GY][half] = bands.down_word(byte, (i % GY + GY - 1 - i / GY) % GY, half, lane);
        }
      }
  }

  /// The pass across: a group of rows goes into slot `Newest` of the ring. `at`: the lane's first byte of row g.
  template <int Newest>
  __device__ __forceinline__ void take(const Numbers& numbers, const unsigned char* at) {
    constexpr int apart = 2 / int(sizeof(T)), words = GX + apart;
#pragma unroll
    for (int s = 0; s < shifts; ++s) {
      uint32_t data[2][A::bytes][words];  // rows g and g + 8, bytes of a sample, groups of 16 samples
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int d = 0; d < words; d += apart) {
          const uint2 pair = *reinterpret_cast<const uint2*>(at + 8 * pitch * i + 16 * s + 32 * (d / apart));
          if constexpr (sizeof(T) == 1) {
            data[i][0][d] = pair.x, data[i][0][d + 1] = pair.y;
          } else {
            const uint32_t x = A::clamped(numbers.rules, pair.x), y = A::clamped(numbers.rules, pair.y);
            data[i][0][d] = __byte_perm(x, y, 0x6420), data[i][1][d] = __byte_perm(x, y, 0x7531);
          }
        }
#pragma unroll
      for (int c = 0; c < 2; ++c) {  // block s + shifts · c
        int sums[2][A::across][4] = {};
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int n = 0; n < A::bytes * A::bytes; ++n) {
            const int of_weight = n / A::bytes, of_sample = n % A::bytes;
            const auto& matrix = across[of_weight];
            const auto& from = data[i][of_sample];
#pragma unroll
            for (int d = 0; d + 1 < GX; d += 2)
              mma(sums[i][of_weight + of_sample], matrix[d], matrix[d + 1], from[c * apart + d], from[c * apart + d + 1]);
            if (GX % 2) mma(sums[i][of_weight + of_sample], matrix[GX - 1], from[c * apart + GX - 1]);
          }
#pragma unroll
        for (int half = 0; half < 2; ++half)
          A::split(numbers.rules, numbers.pack, sums[0], sums[1], half, &ring[Newest][(2 * (s + shifts * c) + half) * A::planes]);
      }
    }
  }

  /// The pass down: result words `w` of rows g and g + 8, from a full ring.
  template <int Newest>
  __device__ __forceinline__ void columns(const Numbers& numbers, int w, uint32_t& upper, uint32_t& lower) {
    int sums[A::tiles][A::sums][4] = {};
#pragma unroll
    for (int tile = 0; tile < A::tiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[tile][A::rounded][i] = start[i];
      const int at = (w * A::tiles + tile) * A::planes;
#pragma unroll
      for (int byte = 0; byte < A::bytes; ++byte)
#pragma unroll
        for (int p = 0; p < A::planes; ++p) {
          // The groups stay in their slots. Instead, the groups of the matrix rotate.
#pragma unroll
          for (int slot = 0; slot + 1 < GY; slot += 2)
            mma(sums[tile][p + byte], down[byte][Newest][slot], down[byte][Newest][slot + 1], ring[slot][at + p],
                ring[slot + 1][at + p]);
          if (GY % 2) mma(sums[tile][p + byte], down[byte][Newest][GY - 1], ring[GY - 1][at + p]);
        }
    }
    A::finish(numbers.rules, sums, upper, lower);
  }
};

__device__ __forceinline__ Numbers kept_numbers(const SetJob& job) {
  Numbers numbers;
  numbers.pack = job.kinds[threadIdx.x / 4 & 1].pack;
  numbers.rules.out = kept(job.rules.out);
  numbers.rules.scale0 = kept(job.rules.scale0);
  numbers.rules.scale1 = kept(job.rules.scale1);
  numbers.rules.rounding = kept(job.rules.rounding);
  numbers.rules.mask = kept(job.rules.mask);
  numbers.rules.most = kept(job.rules.most);
  numbers.rules.final_scale = kept(job.rules.final_scale);
  return numbers;
}

/// Calls turn(std::integral_constant<int, n>{}) with n = 0 … Period − 1, over and over, until it returns false.
template <typename Turn, int... N>
__device__ __forceinline__ void repeat(Turn turn, std::integer_sequence<int, N...>) {
  while ((turn(std::integral_constant<int, N>{}) && ...)) {
  }
}

template <typename T, int GX, int GY>
__global__ void __launch_bounds__(32 * tuning.strip_warps, min_blocks(sizeof(T), GY))
    blur_strip(const __grid_constant__ KernelParams params) {
  using S = Strip<T, GX, GY>;
  using Out = Store<T, tuning.stream_stores>;
  constexpr StripLayout layout = S::layout;
  constexpr int slots = layout.slots;
  extern __shared__ uint4 shared[];
  unsigned char* const memory = reinterpret_cast<unsigned char*>(shared);
  const int set = find_set(params);
  const SetJob& job = params.jobs[set];
  Segment block(job.schedule, blockIdx.x, 0, 1);
  block.place(job.origin, job.view.y0, job.view.y1, strip_bytes * tuning.strip_warps);
  if (block.steps <= 0) return;
  const int lane = threadIdx.x % 32, radius = params.axes[set][1].radius;
  const int groups = block.steps + GY - 1;

  const int limit = min(block.y + block.steps * step_rows, job.view.y1) + radius;
  const Tile<T, layout.pitch> rows(job, block.x, strip_bytes * tuning.strip_warps, block.y - radius, limit, memory,
                                   reinterpret_cast<int*>(memory + layout.map));
  cuda::let_next_start();
  cuda::wait_for_previous();
#pragma unroll
  for (int i = 0; i < S::ahead; ++i) {
    if (i < groups) rows.template copy<false>(i, i);
    cuda::commit();
  }
  const bool sides = rows.has_sides();
  if (sides) rows.make_map();
  const Bands<T> bands{memory + layout.bands, GX, GY};
  bands.fill(params, set);
  S strip;
  strip.load_matrices(bands, lane);
#pragma unroll
  for (int d = 0; d < GY; ++d)
#pragma unroll
    for (int i = 0; i < S::tiles * S::A::planes; ++i) strip.ring[d][i] = 0;
  const Numbers numbers = kept_numbers(job);
#pragma unroll
  for (int& start : strip.start) start = bands.rounding();
  const int x = block.x + int(threadIdx.x) / 32 * strip_bytes;
  Out store(job, x, block.y, memory + layout.out + threadIdx.x / 32 * Out::size);
  const bool active = x < job.x1;

  const int column = x - rows.begin;
  const unsigned char* const lane_rows = memory + lane / 4 * S::pitch + column - job.lead + lane % 4 * 8;
  int group = 0, slot = 0, next_slot = S::ahead % slots;
  const auto source = [&](int i) {
    const int offset = radius + lane / 4 + 8 * i, back = GY - 1 - offset / step_rows;
    const int from = slot >= back ? slot - back : slot - back + slots;
    return *reinterpret_cast<const uint4*>(memory + (from * step_rows + offset % step_rows) * S::pitch + column +
                                           store.first_byte());
  };
  // `plain`: no warp meets what few blocks need, so that the loop of most blocks is short.
  const auto march = [&](auto plain) {
    constexpr bool is_plain = decltype(plain)::value;
    const auto turn = [&](auto newest) {
      constexpr int at = decltype(newest)::value;
      cuda::wait<S::ahead - 1>();
      __syncthreads();
      if (!is_plain && sides) {
        rows.fill(group, slot);
        __syncthreads();
      }
      if (is_plain || active) strip.template take<at>(numbers, lane_rows + slot * (step_rows * S::pitch));
      if (group + S::ahead < groups) rows.template copy<is_plain>(group + S::ahead, next_slot);
      cuda::commit();
      __syncwarp();  // lanes that had no row to copy, or one outside the frame, come together for the products
      next_slot = next_slot + 1 < slots ? next_slot + 1 : 0;
      if ((is_plain || active) && group >= GY - 1) {
        uint32_t upper[4], lower[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) strip.template columns<at>(numbers, w, upper[w], lower[w]);
        store.template step<is_plain>(upper, lower, source);
      }
      slot = slot + 1 < slots ? slot + 1 : 0;
      return ++group < groups;
    };
    repeat(turn, std::make_integer_sequence<int, GY>{});
  };
  const bool stores_whole = store.whole && job.stores_16;
  if (__syncthreads_and(stores_whole) && rows.plain(radius))
    march(std::true_type{});
  else
    march(std::false_type{});
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
