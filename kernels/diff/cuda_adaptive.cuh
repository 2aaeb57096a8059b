// SPDX-License-Identifier: LGPL-2.1-or-later
// The pixels of Reference::adaptive on the device: one for each lane.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/diff/adaptive_learn.hpp"
#include "kernels/diff/cuda_adaptive.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff::adaptive {

/// Loads a pixel of the frame, and its background before the frame.
template <int channels>
__device__ __forceinline__ Pixel<channels, float> load(const AdaptiveArrays& of, int at) {
  Pixel<channels, float> pixel;
  for (int c = 0; c < channels; ++c) {
    int fixed = of.frame[c][at];
    cuda::opaque_register(fixed);  // converting 16 bits directly is four times slower
    pixel.value[c] = from_fixed(fixed), pixel.mean[c] = of.mean[c][at], pixel.variance[c] = of.variance[c][at];
  }
  return pixel;
}
/// Stores the new mean and variance.
template <int channels>
__device__ __forceinline__ void store(const AdaptiveArrays& of, int at, const Pixel<channels, float>& pixel) {
  for (int c = 0; c < channels; ++c) of.next_mean[c][at] = pixel.mean[c], of.next_variance[c][at] = pixel.variance[c];
}

template <int channels>
__device__ __forceinline__ void load_counts(const Job& job, std::size_t at, Rival<channels, float>& rival) {
  rival.stays = job.stays[at], rival.own_stays = job.stays[job.pixels() + at];
}
template <int channels>
__device__ __forceinline__ void load_values(const Job& job, std::size_t at, Rival<channels, float>& rival) {
  for (int c = 0; c < channels; ++c) rival.value[c] = from_fixed(int(job.rival[c * job.pixels() + at]));
}
template <int channels>
__device__ __forceinline__ void store(const Job& job, std::size_t at, const Rival<channels, float>& rival) {
  for (int c = 0; c < channels; ++c) job.rival[c * job.pixels() + at] = std::int16_t(to_fixed(rival.value[c]));
  job.stays[at] = std::int16_t(rival.stays), job.stays[job.pixels() + at] = std::int16_t(rival.own_stays);
}

/// Reads the samples of a channel in a pixel of the analysis, as words of 1, 2 or 4 bytes.
template <typename T, int scale>
struct WordBlock {
  const unsigned char* row;  ///< the first word
  std::ptrdiff_t pitch;
  int row_bytes, down;  ///< bytes of a row, and number of rows
  float share;          ///< 1 ÷ number of samples, a power of two
  unsigned own;         ///< byte i is 1 if sample i of a word belongs to the channel

  /// Returns whether the samples can be read in this way: words are aligned and have the same layout, and the pixel is
  /// inside the frame.
  __device__ __forceinline__ bool set(const Job& job, const ChannelView& channel, int x, int y) {
    constexpr int bytes = sizeof(T);
    const int across = max(scale >> channel.shift_x, 1), step = channel.step;
    down = max(scale >> channel.shift_y, 1), row_bytes = across * step, pitch = channel.pitch;
    share = __int_as_float((127 - 31 + __clz(across * down)) << 23);
    const int last = min(row_bytes, 4) - 1;  // the last byte of a word; words have 1, 2 or 4 bytes if pixels have
    const int first = int(reinterpret_cast<std::uintptr_t>(channel.data)) & last;
    row = channel.at(x * scale >> channel.shift_x, y * scale >> channel.shift_y) - first;
    own = (step == bytes ? 0x01010101u : step == 2 * bytes ? 0x00010001u : 1u) << 8 * (first / bytes);
    const bool alike = first < step && step <= 4 && step != 3 && ((row_bytes | int(channel.pitch)) & last) == 0;
    return alike && (x + 1) * scale <= job.whole_width && (y + 1) * scale <= job.whole_height;
  }
  /// The words at byte `at` of each row.
  __device__ __forceinline__ void load(int at, unsigned (&words)[scale]) const {
#pragma unroll
    for (int dy = 0; dy < scale; ++dy) {
      words[dy] = 0;
      if (dy >= down) continue;
      const unsigned char* const from = row + dy * pitch + at;
      if (row_bytes >= 4)
        words[dy] = *reinterpret_cast<const std::uint32_t*>(from);
      else if (row_bytes == 2)
        words[dy] = *reinterpret_cast<const std::uint16_t*>(from);
      else
        words[dy] = *from;
    }
  }
  __device__ __forceinline__ unsigned add(const Job& job, unsigned sum, const unsigned (&words)[scale]) const {
#pragma unroll
    for (int dy = 0; dy < scale; ++dy) {
      if constexpr (sizeof(T) == 1) {
        sum = __dp4a(words[dy], own, sum);
      } else {
        const unsigned samples = words[dy] >> job.shift & (0xffffu >> job.shift) * 0x10001u;
        sum = __dp2a_lo(__vminu2(samples, unsigned(job.max_value) * 0x10001u), own, sum);
      }
    }
    return sum;
  }
};

/// Sets the means of the samples of the first `count` channels in a pixel of the analysis, like mean_of_samples(). The
/// first words of all channels are loaded before any is used, so the lane waits for memory only once.
template <typename T, int scale>
__device__ __forceinline__ void load_means(const Job& job, int count, int x, int y, float (&mean)[3]) {
  WordBlock<T, scale> blocks[3];
  bool alike = true;
#pragma unroll
  for (int c = 0; c < 3; ++c)
    if (c < count) alike = blocks[c].set(job, job.inputs[c], x, y) && alike;
  if (!alike) {
#pragma unroll 1
    for (int c = 0; c < count; ++c) {
      const float found = mean_of_samples<T, scale>(job, job.inputs[c], x, y);
      mean[0] = c == 0 ? found : mean[0], mean[1] = c == 1 ? found : mean[1], mean[2] = found;
    }
    return;
  }
  unsigned words[3][scale];
#pragma unroll
  for (int c = 0; c < 3; ++c)
    if (c < count) blocks[c].load(0, words[c]);
  cuda::opaque_register(x);  // recomputes the blocks: keeping them would take a third of the registers
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    if (c >= count) continue;
    WordBlock<T, scale> block;
    block.set(job, job.inputs[c], x, y);
    unsigned sum = block.add(job, 0, words[c]);
#pragma unroll 1
    for (int at = 4; at < block.row_bytes; at += 4) {
      block.load(at, words[c]);
      sum = block.add(job, sum, words[c]);
    }
    mean[c] = mul(float(sum), block.share);  // exact like a division
  }
}

/// A pixel for the measurement of light.
template <int channels>
struct Sampled {
  float value[channels], mean[channels];  ///< of the frame, and of the background before it
  int recent;                             ///< see Job::recent
};

/// Sets the samples of the frame, and shows the mean if requested. If `state` requests it, the means restart with the
/// previous frame, or move to its light.
template <typename T, int channels, int scale>
__device__ __forceinline__ Sampled<channels> prepare(const Job& job, const State& state, int x, int y) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  Sampled<channels> sampled{};
  if (!job.begin) {
    sampled.recent = job.recent[at];
#pragma unroll
    for (int c = 0; c < channels; ++c) sampled.mean[c] = job.mean[c * n + at];
  }
  float value[3] = {};
  load_means<T, scale>(job, channels == 3 || job.rgb ? 3 : 1, x, y, value);
#pragma unroll
  for (float& one : value) one = mul(one, sample_step(job));
  to_background(job, value);
  bool anew = false;
  if (__builtin_expect(state.anew != 0, 0)) {
    const int sector = camera::sector_of(x, y, job.width, job.height);
    anew = !(state.kept >> sector & 1);
    if (!anew && !(state.held >> sector & 1)) doubt_background(job, at);
#pragma unroll
    for (int c = 0; c < channels; ++c)
      if (!anew) job.mean[c * n + at] = sampled.mean[c] = state.light_change.apply(c, sampled.mean[c]);
  }
  if (job.begin || anew) {
    job.recent[at] = 0, sampled.recent = 0;
    restart_counts(job, at);
  }
#pragma unroll
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * n + at;
    const int fixed = to_fixed(value[c]);
    sampled.value[c] = from_fixed(fixed);
    if (anew) job.mean[i] = sampled.mean[c] = from_fixed(int(job.frame[i]));
    if (job.begin) job.next_mean[i] = sampled.mean[c] = sampled.value[c], job.next_variance[i] = first_variance(c);
    job.frame[i] = std::int16_t(fixed);
  }
  if (job.shows_mean) {
    float mean[3] = {};
#pragma unroll
    for (int c = 0; c < channels; ++c) mean[c] = sampled.mean[c];
    show_mean<T>(job, x, y, mean);
  }
  return sampled;
}

}  // namespace cudavision::diff::adaptive
