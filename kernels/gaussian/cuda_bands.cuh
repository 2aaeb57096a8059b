// SPDX-License-Identifier: LGPL-2.1-or-later
// The matrices. Both are banded: each row holds the weights between zeros, shifted by one sample from the row above.
//
//   3 taps a b a, one channel:   out[0]   a b a 0 0 0    in[−1]
//                                out[1] = 0 a b a 0 0  · in[0]
//                                out[2]   0 0 a b a 0    in[1]
//                                …                       …
//
// So the kernel stores only one such row, the band. It reads a fragment of any row from the band at a shifted position.
// With several channels, the weights are `channels` samples apart. The columns of the matrix across are samples of a
// window. The columns of the matrix down are rows.
#pragma once

#include "kernels/gaussian/cuda_job.cuh"

namespace cudavision::gaussian {

/// The bands in shared memory: one for each byte of a weight across and each SampleParity, then one for each byte of a
/// weight down.
template <typename T>
struct Bands {
  static constexpr int weight_bytes = sizeof(T), kinds = band_kinds(sizeof(T));
  static constexpr int first = 15;  ///< position of the matrix row of a block's first sample; see across_word()

  volatile uint8_t* const bytes;  ///< volatile, so that the compiler loads each word into its own register
  const int window_groups_x, window_groups_y;

  __device__ volatile uint8_t* across(int byte, int kind) const {
    return bytes + (byte * kinds + kind) * (16 * window_groups_x + 32);
  }
  __device__ volatile uint8_t* down(int byte) const {
    return bytes + weight_bytes * kinds * (16 * window_groups_x + 32) + byte * (16 * window_groups_y + 16);
  }

  /// Writes the bands: each warp writes one band. All threads of the block must call this. `unit`: bytes per element
  /// across.
  __device__ void fill(const KernelParams& params, int set, int unit) const {
    const SetJob& job = params.jobs[set];
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll 1
    for (int band = threadIdx.x / 32; band < weight_bytes * (kinds + 1); band += warps) {
      const bool vertical = band >= weight_bytes * kinds;
      const int byte = vertical ? band - weight_bytes * kinds : band / kinds, kind = vertical ? 0 : band % kinds;
      volatile uint8_t* const to = vertical ? down(byte) : across(byte, kind);
      for (int i = lane; i < (vertical ? 16 * window_groups_y + 16 : 16 * window_groups_x + 32) / 4; i += 32)
        reinterpret_cast<volatile uint32_t*>(to)[i] = 0;
      __syncwarp();
      const AxisWeights& from = vertical ? params.axes[set][1] : params.axes[job.kinds[kind].set][0];
      const int apart = vertical ? 1 : job.kinds[kind].stride / unit;
      const int middle = first + (vertical ? from.radius : job.lead / unit);
      for (int i = lane; i <= 2 * from.radius; i += 32)
        to[middle + (i - from.radius) * apart] = from.weights[abs(i - from.radius)] >> 8 * byte & 0xff;
    }
    if (threadIdx.x == 0) *rounding_at() = job.rules.rounding;
    __syncthreads();
  }

  /// Word `half` of lane `lane` of a fragment of the matrix across. Its columns are sample `position`, the next sample,
  /// and the two samples that are `apart` samples later. All samples of a lane are of one kind: even in lanes with even
  /// g = lane / 4.
  __device__ uint32_t across_word(int byte, int position, int apart, int half, int lane) const {
    return word(across(byte, lane / 4 % kinds) + first + position - Arithmetic<T>::sample(lane / 4 + 8 * half), apart);
  }
  /// Word `half` of lane `lane` of a fragment of the matrix down. Its columns are the rows of group `group`.
  __device__ uint32_t down_word(int byte, int group, int half, int lane) const {
    return word(down(byte) + first + 16 * group + lane % 4 * 2 - (lane / 4 + 8 * half), 8);
  }
  __device__ uint2 down_fragment(int byte, int group, int lane) const {
    return make_uint2(down_word(byte, group, 0, lane), down_word(byte, group, 1, lane));
  }
  /// The initial value of one of the sums: rules.rounding.
  __device__ uint32_t rounding() const { return *rounding_at(); }

 private:
  __device__ volatile uint32_t* rounding_at() const {
    return reinterpret_cast<volatile uint32_t*>(bytes + band_bytes(sizeof(T), window_groups_x, window_groups_y) - 4);
  }
  __device__ static uint32_t word(const volatile uint8_t* from, int apart) {
    return from[0] | from[1] << 8 | from[apart] << 16 | uint32_t(from[apart + 1]) << 24;
  }
};

/// Loads the groups of the matrix down in the order of the slots of a ring whose newest group is in slot Newest. The
/// groups of rows stay in their slots; the groups of the matrix rotate instead. `from`: the lane's words of group 0;
/// the words of the next group follow at a distance of 32.
template <int GY, int Newest>
__device__ __forceinline__ void load_down(const uint2* from, uint32_t (&groups)[GY][2]) {
#pragma unroll
  for (int slot = 0; slot < GY; ++slot) {
    const uint2 words = from[(slot + GY - 1 - Newest) % GY * 32];
    groups[slot][0] = words.x, groups[slot][1] = words.y;
  }
}

}  // namespace cudavision::gaussian
