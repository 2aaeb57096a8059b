// SPDX-License-Identifier: LGPL-2.1-or-later
// The pixels of Reference::adaptive on the device: each lane has one.
#pragma once

#include "kernels/diff/adaptive_learn.hpp"

namespace cudavision::diff::adaptive {

/// A pixel of the frame, and its background before the frame.
template <int channels>
__device__ __forceinline__ Pixel<channels, float> load(const Job& job, std::size_t at) {
  Pixel<channels, float> pixel;
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * job.pixels() + at;
    pixel.value[c] = from_fixed(int(job.frame[i])), pixel.mean[c] = job.mean[i], pixel.variance[c] = job.variance[i];
  }
  return pixel;
}
/// Stores the new mean and variance.
template <int channels>
__device__ __forceinline__ void store(const Job& job, std::size_t at, const Pixel<channels, float>& pixel) {
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * job.pixels() + at;
    job.next_mean[i] = pixel.mean[c], job.next_variance[i] = pixel.variance[c];
  }
}

/// Sets the samples of the frame, and shows the mean if requested. In the sectors of `sectors` (one bit each, see
/// camera.hpp), the means restart with the previous frame.
template <typename T, int channels, int scale>
__device__ void prepare(const Job& job, int x, int y, std::uint64_t sectors) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  const bool anew = sectors != 0 && (sectors >> camera::sector_of(x, y, job.width, job.height) & 1) != 0;
  float value[3] = {}, mean[3] = {};
  for (int c = 0; c < 3; ++c)
    if (c < channels || job.rgb) value[c] = mul(mean_of_samples<T, scale>(job, job.inputs[c], x, y), sample_step(job));
  to_background(job, value);
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * n + at;
    const int fixed = to_fixed(value[c]);
    if (anew) job.mean[i] = from_fixed(int(job.frame[i]));
    if (job.begin) job.next_mean[i] = from_fixed(fixed), job.next_variance[i] = first_variance(c);
    mean[c] = job.begin ? from_fixed(fixed) : job.mean[i];
    job.frame[i] = std::int16_t(fixed);
  }
  if (job.begin || anew) job.recent[at] = 0;
  if (job.shows_mean) show_mean<T>(job, x, y, mean);
}

}  // namespace cudavision::diff::adaptive
