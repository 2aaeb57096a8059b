// SPDX-License-Identifier: LGPL-2.1-or-later
// The matrices. Both are banded: each row holds the weights among zeros, shifted by one sample from the row above.
//
//   3 taps a b a, one channel:   out[0]   a b a 0 0 0    in[−1]
//                                out[1] = 0 a b a 0 0  · in[0]
//                                out[2]   0 0 a b a 0    in[1]
//                                …                       …
//
// So one such row, the band, is enough: a fragment of any row is read from the band at a shifted position. With more channels the
// weights lie `channels` samples apart. The columns of the matrix across are bytes of a window; those of the matrix down are rows.
#pragma once

#include "kernels/gaussian/cuda_arithmetic.cuh"

namespace cudavision::gaussian {

/// The bands in shared memory: one for each product across, then one for each byte of a weight down.
template <typename T>
struct Bands {
  using A = Arithmetic<T>;
  static constexpr int first = 15 * sizeof(T);  ///< position of the matrix row of a block's first sample, see across_word()

  uint8_t* const bytes;
  const int gx, gy;

  __device__ uint8_t* across(int product) const { return bytes + product * (16 * gx + 32); }
  __device__ uint8_t* down(int byte) const { return bytes + A::across * (16 * gx + 32) + byte * (16 * gy + 16); }

  /// Writes the bands. All threads of the block call it.
  __device__ void fill(const SetJob& job, const AxisWeights& x, const AxisWeights& y) const {
    for (int i = threadIdx.x; i < band_bytes(sizeof(T), gx, gy); i += blockDim.x) bytes[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i <= 2 * x.radius; i += blockDim.x) {
      const unsigned weight = x.weights[abs(i - x.radius)];
      const int at = first + job.lead + (i - x.radius) * job.stride;
      if constexpr (sizeof(T) == 1) {
        across(0)[at] = weight;
      } else {  // low × low; low × high and high × low; high × high
        across(0)[at] = across(1)[at + 1] = weight & 0xff;
        across(1)[at] = across(2)[at + 1] = weight >> 8;
      }
    }
    for (int i = threadIdx.x; i <= 2 * y.radius; i += blockDim.x) {
      const unsigned weight = y.weights[abs(i - y.radius)];
      down(0)[15 + i] = weight & 0xff;
      if (A::down == 2) down(A::down - 1)[15 + i] = weight >> 8;
    }
    __syncthreads();
  }

  /// Word `half` of lane `lane` of a fragment of the matrix across, whose columns begin at byte `position` of the window.
  __device__ uint32_t across_word(int product, int position, int half, int lane) const {
    const uint8_t* from = across(product) + first + position - A::sample(lane / 4 + 8 * half) * int(sizeof(T));
    return from[0] | from[1] << 8 | from[2] << 16 | uint32_t(from[3]) << 24;
  }
  /// The same for the matrix down, whose columns are group `group` of rows.
  __device__ uint32_t down_word(int byte, int group, int half, int lane) const {
    const uint8_t* from = down(byte) + 15 + 16 * group + lane % 4 * 2 - (lane / 4 + 8 * half);
    return from[0] | from[1] << 8 | from[8] << 16 | uint32_t(from[9]) << 24;
  }
};

}  // namespace cudavision::gaussian
