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

/// settles: whether it is needed.
template <int channels>
__device__ __forceinline__ Rival<channels, float> load_rival(const Job& job, std::size_t at, bool settles) {
  Rival<channels, float> rival{};
  if (!settles) return rival;
  for (int c = 0; c < channels; ++c) rival.value[c] = from_fixed(int(job.rival[c * job.pixels() + at]));
  rival.stays = job.stays[at], rival.own_stays = job.stays[job.pixels() + at];
  return rival;
}
template <int channels>
__device__ __forceinline__ void store(const Job& job, std::size_t at, const Rival<channels, float>& rival) {
  for (int c = 0; c < channels; ++c) job.rival[c * job.pixels() + at] = std::int16_t(to_fixed(rival.value[c]));
  job.stays[at] = std::int16_t(rival.stays), job.stays[job.pixels() + at] = std::int16_t(rival.own_stays);
}

/// As mean_of_samples(). Reads the samples of whole pixels of the analysis as words of four bytes if they are aligned.
/// The result is the same, because the number of samples is a power of two.
template <typename T, int scale>
__device__ __forceinline__ float mean_of_pixel(const Job& job, const ChannelView& channel, int x, int y) {
  if constexpr (sizeof(T) == 1 && scale >= 4) {
    // The bytes of the channel in a word. Pixels of three bytes have other bytes in each word.
    const int first = int(reinterpret_cast<std::uintptr_t>(channel.data) & 3);
    const unsigned bytes = (channel.step == 1 ? 0x01010101u : channel.step == 2 ? 0x00010001u : 1u) << 8 * first;
    const int across = scale >> channel.shift_x, down = scale >> channel.shift_y, row_bytes = across * channel.step;
    const bool aligned = first < channel.step && row_bytes % 4 == 0 && channel.pitch % 4 == 0;
    if (aligned && channel.step != 3 && (x + 1) * scale <= job.whole_width && (y + 1) * scale <= job.whole_height) {
      const unsigned char* row = channel.at(x * across, y * down) - first;
      unsigned sum = 0;
      for (int dy = 0; dy < down; ++dy, row += channel.pitch)
        for (int dx = 0; dx < row_bytes; dx += 4)
          sum = __dp4a(*reinterpret_cast<const unsigned*>(row + dx), bytes, sum);
      return mul(float(sum), float(1 << channel.shift_x << channel.shift_y) / float(scale * scale));
    }
  }
  return mean_of_samples<T, scale>(job, channel, x, y);
}

/// Sets the samples of the frame, and shows the mean if requested. In the sectors of `sectors` (one bit each, see
/// camera.hpp), the means restart with the previous frame.
template <typename T, int channels, int scale>
__device__ void prepare(const Job& job, int x, int y, std::uint64_t sectors) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  const bool anew = sectors != 0 && (sectors >> camera::sector_of(x, y, job.width, job.height) & 1) != 0;
  float value[3] = {}, mean[3] = {};
  for (int c = 0; c < 3; ++c)
    if (c < channels || job.rgb) value[c] = mul(mean_of_pixel<T, scale>(job, job.inputs[c], x, y), sample_step(job));
  to_background(job, value);
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * n + at;
    const int fixed = to_fixed(value[c]);
    if (anew) job.mean[i] = from_fixed(int(job.frame[i]));
    if (job.begin) job.next_mean[i] = from_fixed(fixed), job.next_variance[i] = first_variance(c);
    mean[c] = job.begin ? from_fixed(fixed) : job.mean[i];
    job.frame[i] = std::int16_t(fixed);
  }
  if (job.begin || anew) job.recent[at] = 0, job.stays[at] = 0, job.stays[n + at] = counted;
  if (job.shows_mean) show_mean<T>(job, x, y, mean);
}

}  // namespace cudavision::diff::adaptive
