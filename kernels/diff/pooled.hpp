// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled: a mean and a variance for each pixel and channel, in Y'CbCr. What a pixel is expected to be
// follows from the mean under the light of the present frame; how far it is from that, measured in its own noise, is pooled over
// its neighbours. Steps of a frame, each for all pixels before the next:
//
//   prepare       samples of the frame, in 8-bit steps                       [begin: they become the means]
//   light         median of frame ÷ mean in cells of 16 × 16 pixels, without those of strong evidence in the last frame: the gain;
//                 then the median difference of chroma under this gain: the offsets
//   filled        cells of too few such pixels get the mean of their neighbours, round by round
//   smooth        the gain of a cell becomes the median of 3 × 3 cells, and so do its offsets where the gain changes much
//   expect        mean under the light (bilinear between cells); evidence = distance² ÷ variance, limited
//   level         mean evidence of 5 × 5 pixels: noise, raised, above the threshold, or strong
//   unlike_shadow how badly a local shadow (5 × 5 pixels) explains the pixel
//   change        above, and no shadow
//   learn         means and variances approach the frame, slowly where it changed; variances grow fast where evidence is raised
//                 though nothing changed, and where it was above the threshold in a single frame (pooled_learn.hpp)
//
// The arithmetic is the same for both backends: float32 with every result rounded; sums of pixels are sums of integers, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/core/luma.hpp"
#include "kernels/core/sample.hpp"
#include "kernels/diff/mog2.hpp"
#include "kernels/diff/rounded.hpp"

namespace cudavision::diff::pooled {

inline constexpr int cell = 16, bins = 512;
inline constexpr float empty = -1000;  ///< of a cell without enough pixels

/// The work on one frame. Arrays of pixels are row-major, one for each channel where there are three.
struct Job {
  mog2::Channel inputs[3];  ///< luma, Cb, Cr; red, green, blue; or luma. src: of the frame, reference: of the analysis
  int whole_width = 0, whole_height = 0, log2_scale = 0;  ///< of the frame, and how much larger it is than the analysis
  int width = 0, height = 0, cells_x = 0, cells_y = 0;    ///< of the analysis
  int channels = 3;                                       ///< of the background: 1 (luma) or 3 (luma, Cb, Cr)
  bool rgb = false;                                       ///< whether inputs are red, green and blue
  float black = 0;                                        ///< of luma, in 8-bit steps
  int shift = 0, extra_bits = 0, max_value = 255;         ///< of the format; extra_bits: depth − 8
  bool begin = false;                                     ///< there are no means yet
  bool compensates = true;                                ///< whether light is compensated
  bool drops_shadows = false;
  bool shows_mean = false;  ///< whether the mean is shown as samples of the reference
  float shadow_threshold = 0.5f, rate = 0.01f;
  std::uint64_t number = 0;                              ///< of the frame
  std::int16_t* frame = nullptr;                         ///< of each channel, see Fixed
  float *mean = nullptr, *variance = nullptr;            ///< of each channel, before the frame
  float *next_mean = nullptr, *next_variance = nullptr;  ///< after it
  float *light[3] = {}, *spare[3] = {};                  ///< of the cells: gain, and offset of Cb and Cr
  std::uint8_t* recent = nullptr;                        ///< what was seen at the pixel, see Recent

  CUDAVISION_HOST_DEVICE std::size_t pixels() const { return std::size_t(width) * height; }
  CUDAVISION_HOST_DEVICE std::size_t at(int x, int y) const { return std::size_t(y) * width + x; }
  CUDAVISION_HOST_DEVICE bool contains(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }
};

/// Bits of Job::recent. The first two: whether the pixel or one beside it was above the threshold.
enum Recent : std::uint8_t { above_last = 1, above_before = 2, strong_last = 4 };

constexpr int cells_along(int pixels) { return (pixels + cell - 1) / cell; }
/// Bytes of the arrays.
inline std::size_t state_bytes(int width, int height) {
  const std::size_t pixels = std::size_t(width) * height, cells = std::size_t(cells_along(width)) * cells_along(height);
  return sizeof(float) * (12 * pixels + 6 * cells) + (3 * sizeof(std::int16_t) + 1) * pixels;
}
/// Places the arrays in the state. Means and variances have two places, which frames use in turn.
inline void set_state(Job& job, void* state) {
  float* next = static_cast<float*>(state);
  const auto take = [&](std::size_t count) { return next += count, next - count; };
  const std::size_t n = job.pixels(), cells = std::size_t(job.cells_x) * job.cells_y;
  float* const models[2] = {take(6 * n), take(6 * n)};
  job.mean = models[job.number % 2], job.variance = job.mean + 3 * n;
  job.next_mean = models[1 - job.number % 2], job.next_variance = job.next_mean + 3 * n;
  for (float*& light : job.light) light = take(cells);
  for (float*& spare : job.spare) spare = take(cells);
  job.frame = static_cast<std::int16_t*>(static_cast<void*>(next));
  job.recent = reinterpret_cast<std::uint8_t*>(job.frame + 3 * n);
}

/// Fixed point with 7 fractional bits and 16 in all: exact sums.
inline constexpr float fixed_step = 1.0f / 128;
CUDAVISION_HOST_DEVICE inline int to_fixed(float value) {
  return int(add(mul(most(-128, least(value, 255.99f)), 128), 16384.5f)) - 16384;
}
CUDAVISION_HOST_DEVICE inline float from_fixed(int value) { return mul(float(value), fixed_step); }
/// The sample of a channel of the frame, in 8-bit steps about black or neutral.
CUDAVISION_HOST_DEVICE inline float value_of(const Job& job, int c, std::size_t at) {
  return from_fixed(job.frame[c * job.pixels() + at]);
}

/// Shows a mean as samples of the reference.
template <typename T>
CUDAVISION_HOST_DEVICE void show_mean(const Job& job, int x, int y, const float (&mean)[3]) {
  float value[3] = {mean[0], mean[1], mean[2]};
  const int inputs = job.rgb ? 3 : job.channels;
  if (job.rgb) {
    const float luma = value[0], red = add(luma, over(value[2], 0.713f)), blue = add(luma, over(value[1], 0.564f));
    value[1] = over(sub(sub(luma, mul(0.299f, red)), mul(0.114f, blue)), 0.587f);
    value[0] = red, value[2] = blue;
  }
  for (int c = 0; c < inputs; ++c) {
    const mog2::Channel& channel = job.inputs[c];
    if ((x & ((1 << channel.shift_x) - 1)) || (y & ((1 << channel.shift_y) - 1))) continue;
    const float zero = job.rgb ? 0 : c == 0 ? job.black : 128;
    const float shown = add(mul(add(value[c], zero), float(1 << job.extra_bits)), 0.5f);
    const int sample = shown < 0 ? 0 : shown > float(job.max_value) ? job.max_value : int(shown);
    T* row = reinterpret_cast<T*>(channel.reference + (y >> channel.shift_y) * channel.reference_pitch);
    row[std::ptrdiff_t(x >> channel.shift_x) * channel.step] = T(sample << job.shift);
  }
}

/// The mean of `across` × `down` samples from (x, y) of a channel on.
template <typename T, int across, int down>
CUDAVISION_HOST_DEVICE float mean_of_block(const Job& job, const mog2::Channel& channel, int x, int y) {
  int sum = 0;
  const unsigned char* row = channel.src + y * channel.src_pitch + std::ptrdiff_t(x) * channel.step * std::ptrdiff_t(sizeof(T));
  for (int dy = 0; dy < down; ++dy, row += channel.src_pitch)
    for (int dx = 0; dx < across; ++dx)
      sum += sample_of(reinterpret_cast<const T*>(row)[dx * channel.step], job.shift, job.max_value);
  return mul(float(sum), 1.0f / float(across * down));  // a power of two: as a division
}

/// The mean of the samples of a channel that lie in a pixel of the analysis, or the sample that covers it. `scale`: of the analysis.
template <typename T, int scale>
CUDAVISION_HOST_DEVICE float mean_of_samples(const Job& job, const mog2::Channel& channel, int x, int y) {
  constexpr int half = scale > 1 ? scale / 2 : 1;
  const int shift_x = channel.shift_x, shift_y = channel.shift_y, left = x * scale >> shift_x, top = y * scale >> shift_y;
  const bool whole = (x + 1) * scale <= job.whole_width && (y + 1) * scale <= job.whole_height;
  if (whole && shift_x == 0 && shift_y == 0) return mean_of_block<T, scale, scale>(job, channel, left, top);
  if (whole && shift_x == 1 && shift_y == 1) return mean_of_block<T, half, half>(job, channel, left, top);
  if (whole && shift_x == 1 && shift_y == 0) return mean_of_block<T, half, scale>(job, channel, left, top);
  const auto end = [](int at, int begin, int shift, int size) {
    const int last = (size - 1) >> shift, wanted = (((at + 1) * scale) >> shift) - 1;
    return wanted < begin ? begin : wanted > last ? last : wanted;
  };
  const int right = end(x, left, shift_x, job.whole_width), bottom = end(y, top, shift_y, job.whole_height);
  int sum = 0;
  for (int row = top; row <= bottom; ++row) {
    const T* from = reinterpret_cast<const T*>(channel.src + row * channel.src_pitch);
    for (int at = left; at <= right; ++at) sum += sample_of(from[std::ptrdiff_t(at) * channel.step], job.shift, job.max_value);
  }
  return over(float(sum), float((right - left + 1) * (bottom - top + 1)));
}

/// Sets the samples of the frame, and shows the mean if asked. If `anew`, the means begin with the frame before: light was switched in it.
template <typename T, int channels, int scale>
CUDAVISION_HOST_DEVICE void prepare(const Job& job, int x, int y, bool anew) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  const float step = 1.0f / float(1 << job.extra_bits);
  float value[3] = {}, mean[3] = {};
  for (int c = 0; c < 3; ++c)
    if (c < channels || job.rgb) value[c] = mul(mean_of_samples<T, scale>(job, job.inputs[c], x, y), step);
  if (job.rgb) {
    const float luma = add(add(mul(0.299f, value[0]), mul(0.587f, value[1])), mul(0.114f, value[2]));
    const float red = value[0], blue = value[2];
    value[0] = luma, value[1] = mul(0.564f, sub(blue, luma)), value[2] = mul(0.713f, sub(red, luma));
  } else {
    value[0] = most(0, sub(value[0], job.black));
    for (int c = 1; c < 3; ++c) value[c] = sub(value[c], 128);
  }
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * n + at;
    const int fixed = to_fixed(value[c]);
    if (anew) job.mean[i] = from_fixed(job.frame[i]);
    if (job.begin) job.next_mean[i] = from_fixed(fixed), job.next_variance[i] = c == 0 ? 9 : 4;
    mean[c] = job.begin ? from_fixed(fixed) : job.mean[i];
    job.frame[i] = std::int16_t(fixed);
  }
  if (job.begin || anew) job.recent[at] = 0;
  if (job.shows_mean) show_mean<T>(job, x, y, mean);
}

/// The median of `total` values in bins, of which `before` are in lower bins and `here` in this one; interpolated in the bin.
CUDAVISION_HOST_DEVICE inline float median_in(int bin, unsigned before, unsigned here, unsigned total) {
  return add(float(bin), over(sub(mul(0.5f, float(total)), float(before)), float(here)));
}
/// The median of a histogram of `total` values.
CUDAVISION_HOST_DEVICE inline float median_of(const unsigned* histogram, unsigned total) {
  unsigned before = 0;
  for (int i = 0; i < bins; before += histogram[i++])
    if (2 * (before + histogram[i]) >= total) return median_in(i, before, histogram[i], total);
  return 0;
}
CUDAVISION_HOST_DEVICE inline int clamped_bin(float value) {
  return value < 0 ? 0 : value < float(bins - 1) ? int(value) : bins - 1;
}

/// Whether the light is measured at a pixel.
CUDAVISION_HOST_DEVICE inline bool shows_light(const Job& job, std::size_t at) { return (job.recent[at] & strong_last) == 0; }
/// The bin of frame ÷ mean, in steps of 1/128.
CUDAVISION_HOST_DEVICE inline int gain_bin(const Job& job, std::size_t at) {
  return clamped_bin(over(mul(128, add(value_of(job, 0, at), 4)), add(job.mean[at], 4)));
}
CUDAVISION_HOST_DEVICE inline float gain_of(float median) { return over(median, 128); }
/// The bin of the offset of chroma under the gain, in steps of 1/4 from −64.
CUDAVISION_HOST_DEVICE inline int offset_bin(const Job& job, int c, std::size_t at, float gain) {
  return clamped_bin(add(mul(4, sub(value_of(job, c, at), mul(gain, job.mean[c * job.pixels() + at]))), 256));
}
CUDAVISION_HOST_DEVICE inline float offset_of(float median) { return sub(mul(median, 0.25f), 64); }
/// If no cell has a gain, that of the frame is measured at each fourth pixel of each fourth row.
inline constexpr int sparse = 4;
/// Whether `total` of `pixels` pixels are enough for a median.
CUDAVISION_HOST_DEVICE inline bool enough_in_cell(unsigned total, unsigned pixels) { return total > 0 && 2 * total >= pixels; }
CUDAVISION_HOST_DEVICE inline bool enough_in_frame(unsigned total, unsigned pixels) { return 8 * total > pixels; }

/// The light of cell (x, y), of which `of(x, y)` gives what was measured; if it is empty, the mean of its neighbours that are not.
template <typename Of>
CUDAVISION_HOST_DEVICE float filled(const Job& job, int x, int y, Of of) {
  const float here = of(x, y);
  if (here != empty) return here;
  float sum = 0;
  int count = 0;
  for (int ny = y - 1; ny <= y + 1; ++ny) {
    for (int nx = x - 1; nx <= x + 1; ++nx) {
      if (nx < 0 || ny < 0 || nx >= job.cells_x || ny >= job.cells_y) continue;
      const float other = of(nx, ny);
      if (other != empty) sum = add(sum, other), ++count;
    }
  }
  return count ? over(sum, float(count)) : empty;
}
/// The median light of 3 × 3 cells; the border is repeated.
CUDAVISION_HOST_DEVICE inline float median_around(const Job& job, int channel, int x, int y) {
  const auto light = [&](int nx, int ny) {
    nx = nx < 0 ? 0 : nx >= job.cells_x ? job.cells_x - 1 : nx;
    ny = ny < 0 ? 0 : ny >= job.cells_y ? job.cells_y - 1 : ny;
    return job.light[channel][ny * job.cells_x + nx];
  };
  // The largest of the least, the median of the middle, and the least of the largest of three rows; of these the median.
  float low = 0, middle[3] = {}, high = 0;
  for (int row = 0; row < 3; ++row) {
    const float a = light(x - 1, y - 1 + row), b = light(x, y - 1 + row), c = light(x + 1, y - 1 + row);
    const float first = least(least(a, b), c), last = most(most(a, b), c);
    middle[row] = most(least(a, b), least(most(a, b), c));
    low = row == 0 ? first : most(low, first);
    high = row == 0 ? last : least(high, last);
  }
  const auto median = [](float a, float b, float c) { return most(least(a, b), least(most(a, b), c)); };
  return median(low, median(middle[0], middle[1], middle[2]), high);
}

/// The light of a cell without that of small objects: the gain is the median of 3 × 3 cells. Where the gain of the cell itself is far from
/// that, the offsets of chroma were measured under the gain of an object, and are medians, too.
CUDAVISION_HOST_DEVICE inline float smooth(const Job& job, int channel, int x, int y) {
  constexpr float far = 0.1f;
  const float gain = median_around(job, 0, x, y);
  if (channel == 0) return gain;
  const int at = y * job.cells_x + x;
  const float away = sub(job.light[0][at], gain), limit = mul(far, gain);
  return away > limit || away < -limit ? median_around(job, channel, x, y) : job.light[channel][at];
}

/// The place of a coordinate between the middles of two cells.
struct Between {
  int first, second;
  float weight;  ///< of the second
};
CUDAVISION_HOST_DEVICE inline Between between(int at, int cells) {
  const float place = most(0, sub(mul(add(float(at), 0.5f), 1.0f / cell), 0.5f));
  const int first = int(place);
  return {first, first + 1 < cells ? first + 1 : first, sub(place, float(first))};
}
CUDAVISION_HOST_DEVICE inline float mixed(float a, float b, float weight) { return add(a, mul(weight, sub(b, a))); }

/// The light at a pixel.
struct Light {
  float gain = 1, offset[3] = {};  ///< offsets of channels 1 and 2
};

inline constexpr float least_variance = 6, bright = 203;
/// Weights in 1/512. The mean evidence of noise is the number of channels, and seldom differs from it by more than 2.
inline constexpr int weight_one = 512;
inline constexpr int most_evidence = 11 * weight_one;  ///< of a pixel
inline constexpr int most_unlike = 10 * weight_one;    ///< the largest unlikeness of a pixel
inline constexpr int unlike = 4 * weight_one;          ///< mean unlikeness in no shadow
CUDAVISION_HOST_DEVICE inline int weight(float value, int most_weight) {
  return int(least(mul(value, weight_one), float(most_weight)));
}
/// The variance of a pixel, in which differences are measured.
CUDAVISION_HOST_DEVICE inline float variance_of(const Job& job, int c, std::size_t at) {
  return most(least_variance, job.variance[c * job.pixels() + at]);
}

/// Σ a ÷ b, with one division.
CUDAVISION_HOST_DEVICE inline float sum_of_ratios(const float (&a)[3], const float (&b)[3]) {
  const float pair = mul(b[1], b[2]);
  const float sum = add(add(mul(a[0], pair), mul(mul(a[1], b[0]), b[2])), mul(mul(a[2], b[0]), b[1]));
  return over(sum, mul(b[0], pair));
}

/// Light is not switched again so few frames after the means began.
inline constexpr std::uint64_t least_age = 3;

/// What a pixel is expected to be.
struct Expected {
  float values[3];
  int evidence;  ///< of change
};
template <int channels>
CUDAVISION_HOST_DEVICE Expected expect(const Job& job, std::size_t at, const Light& light) {
  Expected expected{};
  expected.values[0] = sub(mul(light.gain, add(job.mean[at], 4)), 4);
  for (int c = 1; c < channels; ++c) expected.values[c] = add(mul(light.gain, job.mean[c * job.pixels() + at]), light.offset[c]);
  const bool saturated = expected.values[0] > bright && value_of(job, 0, at) > bright;  // clipped samples say nothing
  float square[3] = {}, variance[3] = {1, 1, 1};
  for (int c = 0; c < channels; ++c) {
    const float value = value_of(job, c, at);
    if (saturated) expected.values[c] = value;
    const float away = sub(value, expected.values[c]);
    square[c] = mul(away, away), variance[c] = variance_of(job, c, at);
  }
  expected.evidence = weight(sum_of_ratios(square, variance), most_evidence);
  return expected;
}

/// The difference between frame and mean: the largest of the channels, in fixed point.
template <int channels>
CUDAVISION_HOST_DEVICE int difference(const Job& job, std::size_t at) {
  int largest = 0;
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * job.pixels() + at;
    const int away = job.frame[i] - to_fixed(job.mean[i]), size = away < 0 ? -away : away;
    largest = size > largest ? size : largest;
  }
  return largest;
}

/// Luma in steps of 1/32, of which 5 fit 16 bits.
CUDAVISION_HOST_DEVICE inline int coarse_luma(int fixed) { return fixed < 0 ? 0 : fixed >> 2; }
/// Pixels of the frame in the square of 2·radius + 1 pixels around (x, y).
CUDAVISION_HOST_DEVICE inline int count_around(const Job& job, int radius, int x, int y) {
  const auto along = [radius](int at, int size) {
    return (at + radius < size ? at + radius : size - 1) - (at < radius ? 0 : at - radius) + 1;
  };
  return along(x, job.width) * along(y, job.height);
}
/// How unlike a shadow a pixel is. `frame`, `luma`: sums of coarse_luma() of the frame and of what is expected, of `count` pixels.
template <int channels>
CUDAVISION_HOST_DEVICE int unlike_shadow(const Job& job, std::size_t at, const Expected& expected, int frame, int luma, int count) {
  const float dark = over(float(frame + 32 * count), float(luma + 32 * count));
  if (dark < job.shadow_threshold || dark >= 0.97f || expected.values[0] <= 30) return most_unlike;
  float square[3] = {}, variance[3] = {1, 1, 1};
  for (int c = 0; c < channels; ++c) {
    const float away = sub(value_of(job, c, at), mul(dark, expected.values[c]));
    square[c] = mul(away, away), variance[c] = most(least_variance, mul(mul(dark, dark), variance_of(job, c, at)));
  }
  return weight(sum_of_ratios(square, variance), most_unlike);
}

/// Calls work(channels) with the number of channels as a compile-time constant.
template <typename Work>
auto with_channels(int channels, Work work) {
  return channels == 1 ? work(std::integral_constant<int, 1>()) : work(std::integral_constant<int, 3>());
}
/// Calls work(scale) with the scale of the analysis.
template <typename Work>
auto with_scale(int log2_scale, Work work) {
  if (log2_scale == 0) return work(std::integral_constant<int, 1>());
  if (log2_scale == 1) return work(std::integral_constant<int, 2>());
  return log2_scale == 2 ? work(std::integral_constant<int, 4>()) : work(std::integral_constant<int, 8>());
}

}  // namespace cudavision::diff::pooled
