// SPDX-License-Identifier: LGPL-2.1-or-later
// Writing a strip: 16 rows × 64 bytes a step.
//
//   A lane 4g + t comes with the words at bytes 4t, 16 + 4t, 32 + 4t, 48 + 4t of rows g and g + 8. Neighbouring lanes swap words:
//
//        bytes   0   4   8  12 | 16  20  24  28 | 32 …            bytes   0       8      16      24 | 32 …
//   lane 4g + t: 0   1   2   3 |  0   1   2   3 |  0 …    →              0       2       1       3  |  0 …
//
//   Then a lane has whole pairs of words, and four lanes fill whole sectors of 32 bytes.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_job.cuh"

namespace cudavision::gaussian {

/// Writes those of the 8 bytes at byte x of row y that lie in the rectangle and belong to the set. x is a multiple of 8.
template <typename T>
static __device__ __noinline__ void store_edge(const SetJob& job, int y, int x, uint2 value) {
  const SetView& view = job.view;
  if (y >= view.y1) return;
  const unsigned char* const from = view.src + y * view.src_pitch + x;
  unsigned char* const to = view.dst + y * view.dst_pitch + x;
  constexpr int per_word = 4 / sizeof(T);
#pragma unroll
  for (int i = 0; i < 2 * per_word; ++i) {
    const int byte = x + i * int(sizeof(T));
    if (byte < job.x0 || byte >= job.x1) continue;
    const int channel = byte / int(sizeof(T)) % view.channels;
    if (!(view.own >> channel & 1)) continue;
    const T computed = T((i < per_word ? value.x : value.y) >> (i % per_word * 8 * int(sizeof(T))));
    reinterpret_cast<T*>(to)[i] = view.filtered >> channel & 1 ? computed : reinterpret_cast<const T*>(from)[i];
  }
}

/// Writes the segment of a warp from top to bottom.
template <typename T, bool Streams>
struct Store {
  const SetJob& job;
  int x, y;  ///< of the lane's first 8 bytes
  unsigned char* to;
  const unsigned char* from;
  long long to_8, from_8;  ///< bytes from a row to the eighth row below it
  bool whole;              ///< all bytes of the strip are written, in aligned words
  bool keeps;              ///< `whole`, and some bytes are copied from the source
  bool shares;             ///< only the bytes of the set are written: it shares its plane with another set
  int end;                 ///< the first row that is not written

  __device__ Store(const SetJob& job, int strip_x, int strip_y) : job(job) {
    const int lane = threadIdx.x % 32;
    x = strip_x + 16 * (lane & 1) + (lane & 2) * 4;
    y = strip_y + lane / 4;
    to = job.view.dst + y * job.view.dst_pitch + x;
    from = job.view.src + y * job.view.src_pitch + x;
    const bool covered = strip_x >= job.x0 && strip_x + strip_bytes <= job.x1;
    whole = job.stores_8 && covered;
    keeps = whole && (job.copied_bits[0] | job.copied_bits[1]);
    shares = job.owned_bytes != 0xff && covered;
    end = cuda::kept(job.view.y1);
    to_8 = cuda::kept(8 * (long long)(job.view.dst_pitch));
    from_8 = cuda::kept(8 * (long long)(job.view.src_pitch));
  }

  /// Writes rows g and g + 8 of a step: lane 4g + t has their words at bytes 16i + 4t.
  __device__ __forceinline__ void step(const uint32_t (&upper)[4], const uint32_t (&lower)[4]) {
    uint2 pairs[2][2];  // [row g, row g + 8][bytes x, x + 32]
    swap(upper, lower, pairs);
    if (keeps) copy_kept(pairs);
    if (whole) {
      write_whole(pairs);
    } else if (sizeof(T) == 1 && shares) {
      write_shared(pairs);
    } else {
#pragma unroll 1
      for (int i = 0; i < 2; ++i) {
        store_edge<T>(job, y + 8 * i, x, i ? pairs[1][0] : pairs[0][0]);
        store_edge<T>(job, y + 8 * i, x + 32, i ? pairs[1][1] : pairs[0][1]);
      }
    }
    to += 2 * to_8;
    from += 2 * from_8;
    y += step_rows;
  }

 private:
  /// Neighbouring lanes swap words, see above.
  __device__ __forceinline__ static void swap(const uint32_t (&upper)[4], const uint32_t (&lower)[4], uint2 (&pairs)[2][2]) {
    const bool odd = threadIdx.x & 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t first = i < 2 ? upper[2 * i] : lower[2 * i - 4], second = i < 2 ? upper[2 * i + 1] : lower[2 * i - 3];
      const uint32_t received = __shfl_xor_sync(~0u, odd ? first : second, 1);
      pairs[i / 2][i % 2] = odd ? make_uint2(received, second) : make_uint2(first, received);
    }
  }

  __device__ __forceinline__ void copy_kept(uint2 (&pairs)[2][2]) const {
    __syncwarp();  // so that this remains a branch: few formats take it
    uint2 source[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (y + i / 2 * 8 < end) source[i / 2][i % 2] = __ldg(reinterpret_cast<const uint2*>(from + i / 2 * from_8 + i % 2 * 32));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i / 2][i % 2].x = (pairs[i / 2][i % 2].x & ~job.copied_bits[0]) | (source[i / 2][i % 2].x & job.copied_bits[0]);
      pairs[i / 2][i % 2].y = (pairs[i / 2][i % 2].y & ~job.copied_bits[1]) | (source[i / 2][i % 2].y & job.copied_bits[1]);
    }
  }

  __device__ __forceinline__ void write_whole(const uint2 (&pairs)[2][2]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (y + i / 2 * 8 >= end) continue;
      uint2* const at = reinterpret_cast<uint2*>(to + i / 2 * to_8 + i % 2 * 32);
      if constexpr (Streams)
        __stcs(at, pairs[i / 2][i % 2]);
      else
        *at = pairs[i / 2][i % 2];
    }
  }

  __device__ __forceinline__ void write_shared(const uint2 (&pairs)[2][2]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const uint2 value = pairs[i / 2][i % 2];
        if (y + i / 2 * 8 < end && job.owned_bytes >> k & 1)
          to[i / 2 * to_8 + i % 2 * 32 + k] = (k < 4 ? value.x : value.y) >> k % 4 * 8;
      }
  }
};

}  // namespace cudavision::gaussian
