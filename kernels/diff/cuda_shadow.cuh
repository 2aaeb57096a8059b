// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds pixels in the shadow of a background (see Shadow in arithmetic.hpp). A lane tests its changed pixels one by
// one.
//
//   |Y0 Y1 Y2 Y3 … |    pixel 2: samples Y2, U1, V1 of the frame, and of the background
//   |U0 V0 U1 V1 … |
#pragma once

#include "kernels/diff/cuda_shape.cuh"

namespace cudavision::diff {

template <typename T>
__device__ __forceinline__ int sample_in(const std::uint32_t* words, int index) {
  constexpr int per_word = 4 / int(sizeof(T));
  return T(words[index / per_word] >> index % per_word * 8 * int(sizeof(T)));
}

/// The compared samples of pixel i of a row of the strip: red, green and blue or luma, Cb and Cr, or luma alone.
template <class S>
__device__ __forceinline__ void pixel_samples(const KernelParams& p, const LaneWords<S>& strip, int row, int i,
                                              int (&samples)[3]) {
  using T = typename S::T;
  const std::uint32_t* const first = strip.first[row];
  if constexpr (S::packed_rgb) {
    for (int c = 0; c < p.shadow.channels; ++c) samples[c] = sample_in<T>(first, i * S::channels0 + p.rgb[c]);
  } else if constexpr (S::packed_422) {
    const int luma = p.luma_second ? 1 : 0, pair = i / 2 * 4;
    samples[0] = sample_in<T>(first, 2 * i + luma);
    samples[1] = sample_in<T>(first, pair + 1 - luma);
    samples[2] = sample_in<T>(first, pair + 3 - luma);
  } else {
    samples[0] = sample_in<T>(first, i);
    if constexpr (S::planes > 1) {
      const int at = (i >> S::shift_x) * S::channels1;
      samples[1] = sample_in<T>(strip.rest[0], at);
      samples[2] = S::planes == 2 ? sample_in<T>(strip.rest[0], at + 1) : sample_in<T>(strip.rest[S::planes - 2], at);
    }
  }
}

/// Clears the bits of pixels in shadow. Not inlined, because most pixels are unchanged.
template <class S>
__device__ __noinline__ unsigned clear_shadows(const KernelParams& p, const LaneWords<S>& v,
                                               const LaneWords<S>& background, int row, unsigned bits) {
  for (unsigned left = bits; left; left &= left - 1) {
    const int i = __ffs(int(left)) - 1;
    int samples[3] = {}, lit[3] = {};
    pixel_samples<S>(p, v, row, i, samples);
    pixel_samples<S>(p, background, row, i, lit);
    if (p.shadow(samples, lit)) bits &= ~(1u << i);
  }
  return bits;
}

}  // namespace cudavision::diff
