// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive: a mean and a variance for each pixel and channel, in Y'CbCr. The expected
// value of a pixel is its mean under the light of the present frame. The distance of the frame from it, measured in the
// noise of the pixel, is averaged over the neighbours. Each frame goes through these steps; a step is complete for all
// pixels before the next begins:
//
//   prepare       samples of the frame, in 8-bit steps                       [begin: they become the means]
//   light         gain: median of frame ÷ mean in cells of 16 × 16 pixels, except pixels with strong evidence in the
//                 last frame. Offsets: median difference of chroma under this gain
//   filled        cells with too few such pixels get the mean of their neighbours, repeatedly
//   smooth        the gain of a cell becomes the median of 3 × 3 cells; its offsets do so only where the gain changes
//                 much
//   expect        mean under the light (bilinear between cells); evidence = distance² ÷ variance, limited
//   level         mean evidence of 5 × 5 pixels: noise, raised, above the threshold, or strong
//   unlike_shadow how badly a local shadow (5 × 5 pixels) explains the pixel
//   change        pixels above the threshold that are no shadow
//   learn         means and variances approach the frame, slowly where it changed; variances grow fast where evidence
//                 is raised although nothing changed, and where it was above the threshold in a single frame
//                 (adaptive_learn.hpp)
//   settle        in the 600 frames after the means began, or restarted somewhere, the value that stays longest becomes
//                 the mean (adaptive_settle.hpp)
//   relight       if the light changed: the means restart, or move to it where objects are (adaptive_relight.hpp)
// After the opening, and only if the mask is shown:
//
//   enclose       fill pixels between changed pixels on all four sides (enclosed.hpp)
//   outline       refine the outline to the resolution of the frame (adaptive_outline.hpp)
//
// The arithmetic is the same for both backends: float32 with every result rounded. Sums over pixels are integer sums,
// so their order does not matter. Formulas take a number type F (see rounded.hpp): one pixel on the device, several on
// the CPU. This file computes the samples of the frame, adaptive_light.hpp the light, adaptive_expect.hpp the expected
// values and the distance of the frame from them. adaptive_learn.hpp updates the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/core/luma.hpp"
#include "kernels/core/rounded.hpp"
#include "kernels/core/sample.hpp"
#include "kernels/diff/camera.hpp"
#include "kernels/diff/learning.hpp"
#include "kernels/diff/mog2.hpp"

namespace cudavision::diff::adaptive {

inline constexpr int cell = 16;
/// The light cannot be switched again within this many frames after the means began.
inline constexpr std::uint64_t least_age = 3;
/// Rows of arrays begin at multiples of this many pixels. The padding at the end of a row affects no pixel.
inline constexpr int row_unit = 32;

/// The work on one frame. Arrays of pixels have rows of `pitch` pixels. Each channel has its own array.
struct Job {
  ChannelView inputs[3];     ///< channels of the frame: luma, Cb, Cr; red, green, blue; or luma
  ChannelView reference[3];  ///< the same channels of the reference, which has the size of the analysis
  int whole_width = 0, whole_height = 0,
      log2_scale = 0;                                   ///< size of the frame; log2 of its size ÷ size of the analysis
  int width = 0, height = 0, cells_x = 0, cells_y = 0;  ///< size of the analysis, in pixels and in cells
  int pitch = 0;                                        ///< a multiple of row_unit
  int channels = 3;                                     ///< channels of the background: 1 (luma) or 3 (luma, Cb, Cr)
  bool rgb = false;                                     ///< whether inputs are red, green and blue
  float black = 0;                                      ///< black level of luma, in 8-bit steps
  int shift = 0, extra_bits = 0, max_value = 255;       ///< properties of the format; extra_bits: depth − 8
  bool begin = false;                                   ///< there are no means yet
  bool compensates = true;                              ///< whether light is compensated
  bool drops_shadows = false;
  bool shows_mean = false;  ///< whether the mean is written as samples of the reference
  float shadow_threshold = 0.5f, rate = 0.01f;
  float most_variance = std::numeric_limits<float>::max();  ///< upper limit of variances
  float most_steady = 12 * 12;                              ///< upper limit of variances where Learning::steady applies
  std::uint64_t number = 0;                                 ///< number of the frame
  std::int16_t* frame = nullptr;                            ///< samples of each channel, see Fixed
  float *mean = nullptr, *variance = nullptr;               ///< values of each channel before the frame
  float *next_mean = nullptr, *next_variance = nullptr;     ///< values after the frame; may be the same memory
  float *light[3] = {}, *spare[3] = {};                     ///< light of the cells: gain, and offsets of Cb and Cr
  std::int16_t *rival = nullptr, *stays = nullptr;          ///< see Rival: three channels, and two counts
  std::uint8_t* recent = nullptr;                           ///< recent findings at the pixel; see Recent
  std::uint8_t* expected = nullptr;                         ///< expected luma, in 8-bit steps; see StructureJob
  std::uint32_t* profiles = nullptr;                        ///< see camera::profile_numbers()
  LearningMap learning;

  /// The distance from an array to the array of the next channel.
  CUDAVISION_HOST_DEVICE std::size_t pixels() const { return std::size_t(pitch) * height; }
  CUDAVISION_HOST_DEVICE std::size_t at(int x, int y) const { return std::size_t(y) * pitch + x; }
  CUDAVISION_HOST_DEVICE bool contains(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }
};

/// Bits of Job::recent. The first two: whether the pixel or an adjacent pixel was above the threshold.
enum Recent : std::uint8_t { above_last = 1, above_before = 2, strong_last = 4 };

constexpr int cells_along(int pixels) { return (pixels + cell - 1) / cell; }
constexpr int pitch_of(int width) { return (width + row_unit - 1) / row_unit * row_unit; }
/// The number of buffers for means and variances. On the device, frames alternate between two, because neighbours read
/// the previous values.
inline constexpr int device_places = 2, cpu_places = 1;
/// The size of all arrays, in bytes.
inline std::size_t state_bytes(int width, int height, int places) {
  const std::size_t pixels = std::size_t(pitch_of(width)) * height,
                    cells = std::size_t(cells_along(width)) * cells_along(height);
  return sizeof(float) * (std::size_t(places) * 6 * pixels + 6 * cells) + (8 * sizeof(std::int16_t) + 2) * pixels +
         sizeof(std::uint32_t) * camera::profile_numbers(width, height);
}
/// Sets the arrays in the state.
inline void set_state(Job& job, void* state, int places) {
  float* next = static_cast<float*>(state);
  const auto allocate = [&](std::size_t count) { return next += count, next - count; };
  const std::size_t n = job.pixels(), cells = std::size_t(job.cells_x) * job.cells_y;
  float* const models[2] = {allocate(6 * n), places == 2 ? allocate(6 * n) : nullptr};
  const int place = places == 2 ? int(job.number % 2) : 0;
  job.mean = models[place], job.variance = job.mean + 3 * n;
  job.next_mean = models[places == 2 ? 1 - place : 0], job.next_variance = job.next_mean + 3 * n;
  for (float*& light : job.light) light = allocate(cells);
  for (float*& spare : job.spare) spare = allocate(cells);
  job.profiles = reinterpret_cast<std::uint32_t*>(allocate(camera::profile_numbers(job.width, job.height)));
  job.frame = static_cast<std::int16_t*>(static_cast<void*>(next));
  job.rival = job.frame + 3 * n, job.stays = job.rival + 3 * n;
  job.recent = reinterpret_cast<std::uint8_t*>(job.stays + 2 * n);
  job.expected = job.recent + n;
}

/// Fixed point with 7 fractional bits and 16 bits in total: sums are exact.
inline constexpr float fixed_step = 1.0f / 128;
template <typename F>
CUDAVISION_FORMULA IntOf<F> to_fixed(F value) {
  return to_int(add(mul(most(F(-128), least(value, F(255.99f))), F(128)), F(16384.5f))) - 16384;
}
template <typename Int>
CUDAVISION_FORMULA auto from_fixed(Int value) {
  const auto number = to_float(value);
  return mul(number, decltype(number)(fixed_step));
}
/// The sample of a channel of the frame, in 8-bit steps, relative to black or neutral.
CUDAVISION_HOST_DEVICE inline float value_of(const Job& job, int c, std::size_t at) {
  return from_fixed(int(job.frame[c * job.pixels() + at]));
}
CUDAVISION_HOST_DEVICE constexpr float first_variance(int channel) { return channel == 0 ? 9 : 4; }

/// Writes a mean as samples of the reference.
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
    if (!job.reference[c].is_first(x, y)) continue;
    const float zero = job.rgb ? 0 : c == 0 ? job.black : 128;
    const float shown = add(mul(add(value[c], zero), float(1 << job.extra_bits)), 0.5f);
    const int sample = shown < 0 ? 0 : shown > float(job.max_value) ? job.max_value : int(shown);
    job.reference[c].template word<T>(x, y) = T(sample << job.shift);
  }
}

/// The mean of `across` × `down` samples of a channel, starting at (x, y).
template <typename T, int across, int down>
CUDAVISION_HOST_DEVICE float mean_of_block(const Job& job, const ChannelView& channel, int x, int y) {
  int sum = 0;
  const unsigned char* row = channel.at(x, y);
  for (int dy = 0; dy < down; ++dy, row += channel.pitch)
    for (int dx = 0; dx < across; ++dx)
      sum += sample_of(*reinterpret_cast<const T*>(row + dx * channel.step), job.shift, job.max_value);
  return mul(float(sum), 1.0f / float(across * down));  // exact like a division, because the divisor is a power of two
}

/// The mean of the samples of a channel in a pixel of the analysis, or the sample that covers the pixel. `scale`: the
/// scale of the analysis.
template <typename T, int scale>
CUDAVISION_HOST_DEVICE float mean_of_samples(const Job& job, const ChannelView& channel, int x, int y) {
  constexpr int half = scale > 1 ? scale / 2 : 1;
  const int shift_x = channel.shift_x, shift_y = channel.shift_y, left = x * scale >> shift_x,
            top = y * scale >> shift_y;
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
  for (int row = top; row <= bottom; ++row)
    for (int at = left; at <= right; ++at)
      sum += sample_of(*reinterpret_cast<const T*>(channel.at(at, row)), job.shift, job.max_value);
  return over(float(sum), float((right - left + 1) * (bottom - top + 1)));
}

/// Converts means of samples to luma above black, and to Cb and Cr relative to neutral, in 8-bit steps.
template <typename F>
CUDAVISION_FORMULA void to_background(const Job& job, F (&value)[3]) {
  if (job.rgb) {
    const F luma = add(add(mul(F(0.299f), value[0]), mul(F(0.587f), value[1])), mul(F(0.114f), value[2]));
    const F red = value[0], blue = value[2];
    value[0] = luma, value[1] = mul(F(0.564f), sub(blue, luma)), value[2] = mul(F(0.713f), sub(red, luma));
  } else {
    value[0] = most(F(0), sub(value[0], F(job.black)));
    CUDAVISION_CHANNELS
    for (int c = 1; c < 3; ++c) value[c] = sub(value[c], F(128));
  }
}
/// The distance between samples, in 8-bit steps.
CUDAVISION_HOST_DEVICE inline float sample_step(const Job& job) { return 1.0f / float(1 << job.extra_bits); }

}  // namespace cudavision::diff::adaptive
