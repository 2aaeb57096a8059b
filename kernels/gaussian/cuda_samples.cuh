// SPDX-License-Identifier: LGPL-2.1-or-later
// The computation of a warp on a strip whose elements are samples: bytes or 16-bit words; see cuda_strip.cu for the
// steps.
//
//  lane 4g + t   reads from the tile   rows g, g + 8 of the group: bytes 8t … 8t + 7 of each 32 bytes of the window
//                holds in the ring     rows 2t, 2t + 1, 2t + 8, 2t + 9: samples `sample(g)`, `sample(g + 8)` of each 16
//                has as results        rows g, g + 8: bytes 4t … 4t + 3 of each 16 bytes of the strip;
//                                      cuda_store.cuh stores them
//
// Interleaved channels need no unpacking. A row is a sequence of samples in which the taps of a channel are `channels`
// samples apart, so the number of channels changes only the matrix A. In packed 4:2:2 the rows of A differ, because
// luma and chroma have different radii and distances (see SampleParity).
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_bands.cuh"
#include "kernels/gaussian/cuda_store.cuh"

namespace cudavision::gaussian {

using cuda::mma;

/// The fields of a SetJob that the arithmetic reads, in registers.
struct Numbers {
  SampleRules rules;
  uint32_t pack;  ///< __byte_perm selector for the kind of the lane's samples

  __device__ __forceinline__ Numbers(const SetJob& job, int lane) {
    pack = job.kinds[lane / 4 & 1].pack;
    rules.out = cuda::warp_uniform(job.rules.out);
    rules.low = cuda::warp_uniform(job.rules.low);
    rules.high = cuda::warp_uniform(job.rules.high);
    rules.rounding = cuda::warp_uniform(job.rules.rounding);
    rules.mask = cuda::warp_uniform(job.rules.mask);
    rules.most = cuda::warp_uniform(job.rules.most);
  }
};

/// The matrices and the ring of a warp, in registers. The window has up to GX groups of 16 samples and GY groups of 16
/// rows.
template <typename Element, int GX, int GY>
struct Samples {
  using T = Element;
  using A = Arithmetic<T>;
  static constexpr int blocks = strip_blocks(sizeof(T));
  static constexpr int tiles = 2 * blocks;  ///< tiles of 8 samples in a strip
  /// 8 bit: a lane has 8 adjacent bytes of each 32, so odd blocks load new words.
  static constexpr int shifts = 3 - int(sizeof(T));
  static_assert(sizeof(T) == 2 || GX % 2 == 0);
  static constexpr int groups_across = GX, groups_down = GY, element_bytes = sizeof(T),
                       blocks_resident = min_blocks(sizeof(T), GY);
  static constexpr StripLayout layout{sizeof(T), GX, GY};
  static constexpr int pitch = layout.pitch;

  uint32_t across[A::bytes][GX][2];
  uint32_t ring[GY][tiles * A::planes];  ///< group n of rows is in slot n % GY
  const uint2* down;  ///< the lane's words of the matrix down, [byte of a weight][group] 32 apart, in shared memory
  int start[4];       ///< initial values of sum A::rounded of a result
  Numbers numbers;

  /// Loads the lane's fragments from the bands. The columns are in the same order as the samples in sum_across().
  /// `fragments`: the warp's shared memory for the matrix down.
  __device__ __forceinline__ Samples(const SetJob& job, const Bands<T>& bands, uint2* fragments, int lane)
      : ring{}, down(fragments + lane), numbers(job, lane) {
    const int t = lane % 4;
#pragma unroll
    for (int& value : start) value = bands.rounding();
#pragma unroll
    for (int byte = 0; byte < A::bytes; ++byte) {
#pragma unroll
      for (int i = 0; i < GX; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          across[byte][i][half] =
              bands.across_word(byte, sizeof(T) == 1 ? i / 2 * 32 + t * 8 + i % 2 * 4 : i * 16 + t * 4, 2, half, lane);
#pragma unroll
      for (int i = 0; i < GY; ++i) fragments[(byte * GY + i) * 32 + lane] = bands.down_fragment(byte, i, lane);
    }
  }

  /// The lane's first byte in a row of the window.
  __device__ static int first_byte(int lane) { return lane % 4 * 8; }

  /// The pass across: stores a group of rows in slot `Newest` of the ring. `at`: the lane's first byte of row g.
  template <int Newest>
  __device__ __forceinline__ void sum_across(const unsigned char* at) {
    constexpr int apart = 2 / int(sizeof(T)), words = GX + apart;
#pragma unroll
    for (int s = 0; s < shifts; ++s) {
      // Rows g and g + 8, bytes of a sample, groups of 16 samples.
      uint32_t stored[2 * 2 * (words / apart)], data[2][A::bytes][words];
#pragma unroll
      for (int i = 0; i < 2 * (words / apart); ++i) {
        const int row = i / (words / apart), d = i % (words / apart);
        const uint2 pair = *reinterpret_cast<const uint2*>(at + 8 * pitch * row + 16 * s + 32 * d);
        stored[2 * i] = pair.x, stored[2 * i + 1] = pair.y;
      }
      if constexpr (sizeof(T) == 2) A::clamp(numbers.rules, stored);
#pragma unroll
      for (int i = 0; i < 2 * words; ++i) {
        const int row = i / words, d = i % words;
        if constexpr (sizeof(T) == 1) {
          data[row][0][d] = stored[i];
        } else {
          data[row][0][d] = __byte_perm(stored[2 * i], stored[2 * i + 1], 0x6420);
          data[row][1][d] = __byte_perm(stored[2 * i], stored[2 * i + 1], 0x7531);
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
              mma(sums[i][of_weight + of_sample], matrix[d], matrix[d + 1], from[c * apart + d],
                  from[c * apart + d + 1]);
            if (GX % 2) mma(sums[i][of_weight + of_sample], matrix[GX - 1], from[c * apart + GX - 1]);
          }
#pragma unroll
        for (int half = 0; half < 2; ++half)
          A::split(numbers.rules, numbers.pack, sums[0], sums[1], half,
                   &ring[Newest][(2 * (s + shifts * c) + half) * A::planes]);
      }
    }
  }

  /// The pass down: result words `w` of rows g and g + 8, from a full ring. `matrix`: the groups of the matrix, by
  /// slot.
  __device__ __forceinline__ void sum_down(const uint32_t (&matrix)[A::bytes][GY][2], int w, uint32_t& upper,
                                           uint32_t& lower) const {
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
#pragma unroll
          for (int slot = 0; slot + 1 < GY; slot += 2)
            mma(sums[tile][p + byte], matrix[byte][slot], matrix[byte][slot + 1], ring[slot][at + p],
                ring[slot + 1][at + p]);
          if (GY % 2) mma(sums[tile][p + byte], matrix[byte][GY - 1], ring[GY - 1][at + p]);
        }
    }
    A::finish(numbers.rules, sums, upper, lower);
  }

  /// The lane's 16 bytes of rows g and g + 8, from a full ring. source(i): see Store::restore_copied().
  template <int Newest, typename Out, typename Source>
  __device__ __forceinline__ void results(const Out& out, Source source, uint4 (&values)[2]) const {
    uint32_t matrix[A::bytes][GY][2], upper[4], lower[4];
#pragma unroll
    for (int byte = 0; byte < A::bytes; ++byte) load_down<GY, Newest>(down + byte * GY * 32, matrix[byte]);
#pragma unroll
    for (int w = 0; w < 4; ++w) sum_down(matrix, w, upper[w], lower[w]);
    out.gather(upper, lower, values);
    out.restore_copied(values, source);
  }
};

}  // namespace cudavision::gaussian
