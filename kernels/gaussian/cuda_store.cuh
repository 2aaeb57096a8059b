// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes a strip: 16 rows × 64 bytes in each step.
//
//   Lane 4g + t computes the words at bytes 4t, 16 + 4t, 32 + 4t, 48 + 4t of rows g and g + 8. The words are exchanged
//   through shared memory, 1 KB for each warp. Then lane 4r + c has the 16 bytes at byte 16c of rows r and r + 8, and
//   four lanes write 64 adjacent bytes.
//
//   shared memory   | 16 bytes | 16 bytes | 16 bytes | 16 bytes |   row r holds its bytes 16c … at c ^ (r / 2 % 4),
//                   | row 0, 64 bytes …                         |   so that neither access uses a bank twice
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_job.cuh"

namespace cudavision::gaussian {

/// Of the 16 bytes at byte x of row y, writes the bytes that lie in the rectangle. x is a multiple of 16.
template <typename T>
static __device__ __noinline__ void store_edge(const SetJob& job, int y, int x, uint4 value) {
  const SetView& view = job.view;
  if (y >= view.y1) return;
  const unsigned char* const from = view.src + y * view.src_pitch + x;
  unsigned char* const to = view.dst + y * view.dst_pitch + x;
  constexpr int per_word = 4 / sizeof(T);
  const uint32_t words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
  for (int i = 0; i < 4 * per_word; ++i) {
    const int byte = x + i * int(sizeof(T));
    if (byte < job.kinds[i & 1].x0 || byte >= job.kinds[i & 1].x1) continue;
    const int channel = byte / int(sizeof(T)) % view.channels;
    const T computed = T(words[i / per_word] >> (i % per_word * 8 * int(sizeof(T))));
    reinterpret_cast<T*>(to)[i] = view.filtered >> channel & 1 ? computed : reinterpret_cast<const T*>(from)[i];
  }
}

/// Writes the segment of a warp from top to bottom.
template <typename T, bool Streams>
struct Store {
  static constexpr int size = step_rows * strip_bytes;  ///< bytes of shared memory for each warp

  const SetJob& job;
  unsigned char* const memory;
  int x, y;  ///< byte and row of the lane's first 16 bytes
  unsigned char* to;
  long long to_8;  ///< bytes from a row to the row eight rows below
  bool whole;      ///< whether all bytes of the strip are written, in aligned words
  bool keeps;      ///< whether `whole` is true and some bytes are copied from the source
  int end;         ///< the first row that is not written

  __device__ Store(const SetJob& job, int strip_x, int strip_y, unsigned char* memory) : job(job), memory(memory) {
    x = strip_x + first_byte();
    y = strip_y + threadIdx.x % 32 / 4;
    to = job.view.dst + y * job.view.dst_pitch + x;
    whole = job.stores_8 && strip_x >= max(job.kinds[0].x0, job.kinds[1].x0) &&
            strip_x + strip_bytes <= min(job.kinds[0].x1, job.kinds[1].x1);
    keeps = whole && (job.copied_bits[0] | job.copied_bits[1]);
    end = cuda::warp_uniform(job.view.y1);
    to_8 = cuda::warp_uniform(8 * (long long)(job.view.dst_pitch));
  }

  /// The first of the lane's 16 bytes in a strip.
  __device__ static int first_byte() { return threadIdx.x % 4 * 16; }

  /// Exchanges results through shared memory. Lane 4g + t passes the words at bytes 16i + 4t of rows g and g + 8 of a
  /// step, and receives its 16 bytes of two rows.
  __device__ __forceinline__ void gather(const uint32_t (&upper)[4], const uint32_t (&lower)[4],
                                         uint4 (&values)[2]) const {
    const int lane = threadIdx.x % 32, row = lane % 8, swizzled = (lane / 8 ^ row / 2) * 16;
    cuda::store_tiles(memory + row * strip_bytes + swizzled, upper);
    cuda::store_tiles(memory + (row + 8) * strip_bytes + swizzled, lower);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i)
      values[i] =
          *reinterpret_cast<const uint4*>(memory + (lane / 4 + 8 * i) * strip_bytes + (lane % 4 ^ lane / 8) * 16);
    __syncwarp();
  }

  /// Replaces the bytes of copied channels with the source. source(i): the source's 16 bytes at byte x of row y + 8i.
  template <typename Source>
  __device__ __forceinline__ void restore_copied(uint4 (&values)[2], Source source) const {
    if (!keeps) return;
    const uint32_t even = job.copied_bits[0], odd = job.copied_bits[1];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 from = source(i);
      values[i].x = (values[i].x & ~even) | (from.x & even);
      values[i].y = (values[i].y & ~odd) | (from.y & odd);
      values[i].z = (values[i].z & ~even) | (from.z & even);
      values[i].w = (values[i].w & ~odd) | (from.w & odd);
    }
  }

  /// Writes the lane's 16 bytes of rows g and g + 8 of a step, and advances to the next step. Plain: `whole` is true,
  /// and rows are aligned to 16 bytes.
  template <bool Plain>
  __device__ __forceinline__ void store_rows(const uint4 (&values)[2]) {
    if (Plain || (whole && job.stores_16)) {
      if (y < end) write(reinterpret_cast<uint4*>(to), values[0]);
      if (y + 8 < end) write(reinterpret_cast<uint4*>(to + to_8), values[1]);
    } else {
      store_rarely(to, y, values[0]);
      store_rarely(to + to_8, y + 8, values[1]);
    }
    to += 2 * to_8;
    y += step_rows;
  }

 private:
  template <typename V>
  __device__ __forceinline__ static void write(V* at, const V& value) {
    if constexpr (Streams)
      __stcs(at, value);
    else
      *at = value;
  }

  __device__ __forceinline__ void store_rarely(unsigned char* at, int row, const uint4& value) const {
    if (!whole) return store_edge<T>(job, row, x, value);
    if (row >= end) return;
    write(reinterpret_cast<uint2*>(at), make_uint2(value.x, value.y));
    write(reinterpret_cast<uint2*>(at) + 1, make_uint2(value.z, value.w));
  }
};

}  // namespace cudavision::gaussian
