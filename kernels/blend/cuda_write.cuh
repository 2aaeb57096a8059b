// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes the composed pixels of a thread: rounding, channel order, chroma.
#pragma once

#include "kernels/blend/cuda_compose.cuh"

namespace cudavision::blend {
namespace {

/// Rounds half to even; the sample is in the lowest bits, because floats around 1.5 · 2^23 differ by 1.
__device__ __forceinline__ uint32_t stored(float value) { return __float_as_uint(value + round_bias); }
template <typename T>
__device__ __forceinline__ void store(const Target& target, const ChannelView& channel, int x, int y, float value) {
  channel.word<T>(x, y) = T(sizeof(T) == 1 ? stored(value) : stored(value) << target.shift);
}

/// Where writing ends: the right and the lower edge of the output, or of a part that begins and ends between chroma
/// samples.
struct Limits {
  int right, bottom;
};

/// Writes pixels of four interleaved samples, each as one word.
template <typename Word, int Channels>
__device__ __forceinline__ void write_packed(const Target& target, const Limits& limits, const int (&x)[columns],
                                             const int (&y)[rows], const Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      Word word = 0;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const uint32_t sample = stored(c < Channels ? d[i][j][c] : target.max) & (sizeof(Word) == 4 ? 0xff : 0xffff);
        word |= Word(sample) << 2 * sizeof(Word) * target.packed.order[c];
      }
      if (x[j] < limits.right && y[i] < limits.bottom)
        reinterpret_cast<Word*>(target.packed.data + y[i] * target.channels[0].pitch)[x[j]] = word;
    }
}

/// Writes the mean of the pixels that share a chroma sample. It adds two numbers at a time: first down, then across.
/// Neighbouring lanes hold the other columns.
template <typename T>
__device__ __forceinline__ void write_chroma(const Target& target, const Limits& limits, const int (&x)[columns],
                                             const int (&y)[rows], const Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    if (i == 1 && target.shift_y) break;
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int c = 1; c < 3; ++c) {
        float mean = d[i][j][c];
        if (target.shift_y && y[1] < limits.bottom) mean = (mean + d[1][j][c]) * 0.5f;
        if (target.shift_x == 2) {
          float sum = x[j] < limits.right ? mean : 0;
          sum += __shfl_xor_sync(~0u, sum, 1);
          sum += __shfl_xor_sync(~0u, sum, 2);
          mean = sum / float(min(limits.right - (x[j] & ~3), 4));
        } else if (target.shift_x) {
          const float other = __shfl_xor_sync(~0u, mean, 1);
          if (x[j] + 1 < limits.right) mean = (mean + other) * 0.5f;
        }
        if (x[j] < limits.right && y[i] < limits.bottom && !(x[j] & ((1 << target.shift_x) - 1)))
          store<T>(target, target.channels[c], x[j], y[i], mean);
      }
  }
}

template <typename T, int Channels>
__device__ __forceinline__ void write_planes(const Target& target, const Limits& limits, const int (&x)[columns],
                                             const int (&y)[rows], const Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      if (x[j] >= limits.right || y[i] >= limits.bottom) continue;
      store<T>(target, target.channels[0], x[j], y[i], d[i][j][0]);
      if (Channels == 4) store<T>(target, target.channels[3], x[j], y[i], d[i][j][3]);
      if (Channels > 1 && target.padding.data) store<T>(target, target.padding, x[j], y[i], target.max);
    }
  if constexpr (Channels > 1) write_chroma<T>(target, limits, x, y, d);
}

template <int Channels>
__device__ __forceinline__ void write(const Target& target, const Limits& limits, const int (&x)[columns],
                                      const int (&y)[rows], const Samples& d) {
  const bool bytes = target.sample_bytes == 1;
  if (Channels > 1 && target.packed.data)
    bytes ? write_packed<uint32_t, Channels>(target, limits, x, y, d)
          : write_packed<unsigned long long, Channels>(target, limits, x, y, d);
  else
    bytes ? write_planes<uint8_t, Channels>(target, limits, x, y, d)
          : write_planes<uint16_t, Channels>(target, limits, x, y, d);
}

}  // namespace
}  // namespace cudavision::blend
