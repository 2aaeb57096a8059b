// SPDX-License-Identifier: LGPL-2.1-or-later
// Reading rows of the source, with borders.
//
//   load_inside     the window lies in the row, aligned: rows outside the frame are found by RowMap, without a division
//   load_anywhere   any window of an edge strip: a map of the window's samples, made once, replaces border_index for columns
//   load_row        any window, for the kernel for large windows
//   edge_word       one word, sample by sample
//
// cuda.cu lists where to change what.
#pragma once

#include "kernels/gaussian/cuda_job.cuh"

namespace cudavision::gaussian {

__device__ __forceinline__ uint32_t load_word(const unsigned char* at) { return __ldg(reinterpret_cast<const uint32_t*>(at)); }

/// The word at byte x of row `row`, sample by sample. The row is mapped: inside the frame, or −1 for border values.
template <typename T>
static __device__ __noinline__ uint32_t edge_word(const SetView& view, int row, int x) {
  constexpr int per_word = 4 / sizeof(T);
  const T* const samples = reinterpret_cast<const T*>(view.src + row * view.src_pitch);
  const int channels = view.channels;
  uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < per_word; ++i) {
    const int sample = x / int(sizeof(T)) + i;
    int column = sample >= 0 ? sample / channels : -((channels - 1 - sample) / channels);
    const int channel = sample - column * channels;
    column = row < 0 ? -1 : border_index(column, view.width, view.border);
    const uint32_t value = column < 0 ? uint32_t(view.border_value[channel]) << view.shift : samples[column * channels + channel];
    word |= value << (i * 8 * int(sizeof(T)));
  }
  return word;
}

/// A lane's word j of a window: lane 4g + t has 8 bytes of each 32, from byte 8t on.
constexpr int word_at(int j) { return j / 2 * 32 + j % 2 * 4; }

/// A lane's words of rows y and y + 8. They lie inside the row, aligned to 8 bytes.
template <int N>
__device__ __forceinline__ void load_inside(const RowMap& rows, const unsigned char* at, int y, uint32_t (&words)[2][N]) {
  const unsigned char* const from[2] = {at + rows(y), at + rows(y + 8)};
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < N; j += 2) {
      const uint2 pair = __ldg(reinterpret_cast<const uint2*>(from[i] + word_at(j)));
      words[i][j] = pair.x, words[i][j + 1] = pair.y;
    }
}

/// border_index as a call: the loops seldom need it, and it would take registers there.
static __device__ __noinline__ int far_index(int i, int n, Border border) { return border_index(i, n, border); }

/// Fills `map` with the places of the samples of a strip's window, `bytes` bytes from byte `begin` on: the byte of the row, or the
/// complement of the border value. All lanes of the warp call it.
template <typename T>
__device__ void map_window(const SetView& view, int begin, int bytes, int* map) {
  for (int i = threadIdx.x % 32; i < bytes / int(sizeof(T)); i += 32) {
    const int sample = begin / int(sizeof(T)) + i, channels = view.channels;
    const int column = sample >= 0 ? sample / channels : -((channels - 1 - sample) / channels);
    const int channel = sample - column * channels, mapped = border_index(column, view.width, view.border);
    map[i] = mapped < 0 ? ~(view.border_value[channel] << view.shift) : (mapped * channels + channel) * int(sizeof(T));
  }
  __syncwarp();
}

/// The same words, anywhere. `map` points to the entry of the sample at byte x.
template <typename T, int N>
__device__ __forceinline__ void load_anywhere(const SetJob& job, const int* map, int y, int x, uint32_t (&words)[2][N]) {
  constexpr int per_word = 4 / sizeof(T);
  const SetView& view = job.view;
  int row[2] = {y, y + 8};
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (unsigned(row[i]) >= unsigned(view.height)) row[i] = far_index(row[i], view.height, view.border);
  const unsigned char* const at[2] = {view.src + row[0] * view.src_pitch, view.src + row[1] * view.src_pitch};
  // First the words that can be loaded as such, all at once.
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int byte = x + word_at(j);
      words[i][j] = 0;
      if (job.aligned_4 && row[i] >= 0 && byte >= 0 && byte + 4 <= job.row_bytes) words[i][j] = load_word(at[i] + byte);
    }
    // Then the others, sample by sample. Words that no tap reaches stay 0.
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int byte = x + word_at(j);
    const bool outside = byte < 0 || byte + 4 > job.row_bytes || !job.aligned_4;
    if (!outside && row[0] >= 0 && row[1] >= 0) continue;
    if (byte <= -job.reach - 4 || byte >= job.row_bytes + job.reach) continue;
    if (outside) {
      uint32_t sample[2][per_word];
#pragma unroll
      for (int k = 0; k < per_word; ++k) {
        const int from = map[word_at(j) / int(sizeof(T)) + k];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          sample[i][k] = from < 0 ? ~from : row[i] < 0 ? 0 : __ldg(reinterpret_cast<const T*>(at[i] + from));
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        words[i][j] = 0;
#pragma unroll
        for (int k = 0; k < per_word; ++k) words[i][j] |= sample[i][k] << (k * 8 * int(sizeof(T)));
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (row[i] < 0) words[i][j] = edge_word<T>(view, row[i], byte);
  }
}

/// The words at bytes x, x + 16, x + 32 … of row y. `inside`: no word leaves the row, and all are aligned to 4 bytes.
template <typename T, int N>
__device__ __forceinline__ void load_row(const SetJob& job, bool inside, int y, int x, uint32_t (&words)[N]) {
  const SetView& view = job.view;
  const int row = far_index(y, view.height, view.border);
  const unsigned char* const at = view.src + row * view.src_pitch + x;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int byte = x + 16 * j;
    words[j] = 0;
    if (row >= 0 && (inside || (job.aligned_4 && byte >= 0 && byte + 4 <= job.row_bytes)))
      words[j] = load_word(at + 16 * j);
    else if (byte > -job.reach - 4 && byte < job.row_bytes + job.reach)
      words[j] = edge_word<T>(view, row, byte);
  }
}

}  // namespace cudavision::gaussian
