// SPDX-License-Identifier: LGPL-2.1-or-later
// Reading rows of the source, with borders.
//
//   source_byte     the byte of the row that stands for any sample, inside the row or not
//   load_row        words of a row, for the kernel for large windows
//   edge_word       one word, sample by sample
//
// cuda.cu lists where to change what.
#pragma once

#include "kernels/gaussian/cuda_job.cuh"

namespace cudavision::gaussian {

__device__ __forceinline__ uint32_t load_word(const unsigned char* at) {
  return __ldg(reinterpret_cast<const uint32_t*>(at));
}

/// The byte of the row that stands for a sample, or the complement of its border value.
__device__ __forceinline__ int source_byte(const SetJob& job, int sample, int sample_bytes) {
  const SampleParity& kind = job.kinds[sample & 1];
  const int mapped = cuda::source_sample(sample, kind.stride / sample_bytes, kind.width, job.view.border);
  return mapped < 0 ? ~int(cuda::border_sample(job.view, sample)) : mapped * sample_bytes;
}

/// The word at byte x of row `row`, sample by sample. The row is mapped: inside the frame, or −1 for border values.
/// `map`: the places of the word's samples.
template <typename T>
static __device__ __noinline__ uint32_t edge_word(const SetJob& job, int row, int x, const int* map) {
  const unsigned char* const from = job.view.src + row * job.view.src_pitch;
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4 / int(sizeof(T)); ++i) {
    const int byte = row < 0 ? ~int(cuda::border_sample(job.view, x / int(sizeof(T)) + i)) : map[i];
    const uint32_t value = byte < 0 ? ~byte : *reinterpret_cast<const T*>(from + byte);
    word |= value << (i * 8 * int(sizeof(T)));
  }
  return word;
}

/// border_index(), not inlined: the loop seldom needs it, and inlining would cost registers there.
static __device__ __noinline__ int far_index(int i, int n, Border border) { return border_index(i, n, border); }

/// The words at bytes x, x + 16, x + 32 … of row y. `inside`: no word leaves the row, and all are aligned to 4 bytes;
/// otherwise `map` has the places of the samples from byte x on.
template <typename T, int N>
__device__ __forceinline__ void load_row(const SetJob& job, bool inside, int y, int x, const int* map,
                                         uint32_t (&words)[N]) {
  const SetView& view = job.view;
  const int row = far_index(y, view.height, view.border);
  const unsigned char* const at = view.src + row * view.src_pitch + x;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int byte = x + 16 * j;
    words[j] = 0;
    if (row >= 0 && (inside || (job.unit >= 4 && byte >= 0 && byte + 4 <= job.row_bytes)))
      words[j] = load_word(at + 16 * j);
    else if (byte > -job.reach - 4 && byte < job.row_end + job.reach)
      words[j] = edge_word<T>(job, row, byte, map + 16 / sizeof(T) * j);
  }
}

}  // namespace cudavision::gaussian
