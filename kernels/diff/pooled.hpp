// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled: a mean and a variance for each pixel and channel, in Y'CbCr. What a pixel is expected to be
// follows from the mean under the light of the present frame; how far it is from that, measured in its own noise, is pooled over
// its neighbours. Steps of a frame, each for all pixels before the next:
//
//   prepare       samples of the frame, in 8-bit steps                       [begin: they become the means]
//   cell_gain     the light: median of frame ÷ mean in cells of 16 × 16 pixels, over pixels that did not change in the last frame
//   fill, smooth  cells of too few such pixels get the mean of their neighbours; median of 3 × 3 cells
//   cell_offset   the same for chroma, as a median difference; then fill
//   expect        mean under the light (bilinear between cells); evidence = distance² ÷ variance, limited
//   pool          mean evidence of 5 × 5 pixels; how well a local shadow explains the pixel
//   change        above the threshold, and no shadow
//   learn         means and variances approach the frame, slowly where it changed
//
// The arithmetic is the same for both backends: float32 with every result rounded, sums in a fixed order, and medians of integer
// histograms.
#pragma once

#include <cstddef>
#include <cstdint>

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
  float shadow_threshold = 0.5f, rate = 0.01f;
  std::uint64_t number = 0;                                                           ///< of the frame
  float *frame = nullptr, *mean = nullptr, *variance = nullptr, *expected = nullptr;  ///< of each channel
  float *evidence = nullptr, *unlike_shadow = nullptr;
  float* light[3] = {};    ///< of the cells: gain, and offset of Cb and Cr
  float* spare = nullptr;  ///< of the cells, twice
  std::uint8_t *above = nullptr, *changed = nullptr, *left_out = nullptr;

  CUDAVISION_HOST_DEVICE std::size_t pixels() const { return std::size_t(width) * height; }
  CUDAVISION_HOST_DEVICE std::size_t at(int x, int y) const { return std::size_t(y) * width + x; }
};

constexpr int cells_along(int pixels) { return (pixels + cell - 1) / cell; }
/// Bytes of the arrays.
inline std::size_t state_bytes(int width, int height) {
  const std::size_t pixels = std::size_t(width) * height, cells = std::size_t(cells_along(width)) * cells_along(height);
  return sizeof(float) * (14 * pixels + 5 * cells) + 3 * pixels;
}
/// Places the arrays in the state.
inline void set_state(Job& job, void* state) {
  float* next = static_cast<float*>(state);
  const auto take = [&](std::size_t count) { return next += count, next - count; };
  const std::size_t n = job.pixels(), cells = std::size_t(job.cells_x) * job.cells_y;
  job.frame = take(3 * n), job.mean = take(3 * n), job.variance = take(3 * n), job.expected = take(3 * n);
  job.evidence = take(n), job.unlike_shadow = take(n);
  for (float*& light : job.light) light = take(cells);
  job.spare = take(2 * cells);
  job.above = reinterpret_cast<std::uint8_t*>(next);
  job.changed = job.above + n, job.left_out = job.changed + n;
}

/// The frame in which the pixel is shown: the mean as samples.
template <typename T>
CUDAVISION_HOST_DEVICE void show_mean(const Job& job, int x, int y) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  float value[3] = {job.mean[at], 0, 0};
  const int inputs = job.rgb ? 3 : job.channels;
  if (job.channels == 3)
    for (int c = 1; c < 3; ++c) value[c] = job.mean[c * n + at];
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

/// The mean of the samples of a channel that lie in a pixel of the analysis, or the sample that covers it.
template <typename T>
CUDAVISION_HOST_DEVICE float mean_of_samples(const Job& job, const mog2::Channel& channel, int x, int y) {
  const auto range = [&](int at, int shift, int size, int& begin, int& end) {
    const int last = (size - 1) >> shift;
    begin = at << job.log2_scale >> shift;
    end = ((at + 1) << job.log2_scale >> shift) - 1;
    end = end < begin ? begin : end > last ? last : end;
  };
  int left, right, top, bottom, sum = 0;
  range(x, channel.shift_x, job.whole_width, left, right);
  range(y, channel.shift_y, job.whole_height, top, bottom);
  for (int row = top; row <= bottom; ++row) {
    const T* from = reinterpret_cast<const T*>(channel.src + row * channel.src_pitch);
    for (int at = left; at <= right; ++at) sum += sample_of(from[std::ptrdiff_t(at) * channel.step], job.shift, job.max_value);
  }
  return over(float(sum), float((right - left + 1) * (bottom - top + 1)));
}

/// Sets the samples of the frame, in 8-bit steps about black and neutral. `begin`: also the means; `fresh`: also the variances.
template <typename T>
CUDAVISION_HOST_DEVICE void prepare(const Job& job, int x, int y, bool begin, bool fresh) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  const float step = 1.0f / float(1 << job.extra_bits);
  float value[3] = {};
  for (int c = 0; c < (job.rgb ? 3 : job.channels); ++c) {
    value[c] = mul(mean_of_samples<T>(job, job.inputs[c], x, y), step);
  }
  if (job.rgb) {
    const float luma = add(add(mul(0.299f, value[0]), mul(0.587f, value[1])), mul(0.114f, value[2]));
    const float red = value[0], blue = value[2];
    value[0] = luma, value[1] = mul(0.564f, sub(blue, luma)), value[2] = mul(0.713f, sub(red, luma));
  } else {
    value[0] = most(0, sub(value[0], job.black));
    for (int c = 1; c < 3; ++c) value[c] = sub(value[c], 128);
  }
  for (int c = 0; c < job.channels; ++c) {
    job.frame[c * n + at] = value[c];
    if (begin) job.mean[c * n + at] = value[c];
    if (fresh) job.variance[c * n + at] = c == 0 ? 9 : 4;
  }
  if (begin) job.left_out[at] = 0;
}

/// The median of a histogram of `total` values, interpolated in its bin, in bins. `before`: values below bin `first`.
CUDAVISION_HOST_DEVICE inline float median_from(const unsigned* histogram, unsigned total, int first, unsigned before) {
  for (int i = first; i < bins; ++i) {
    const unsigned here = histogram[i];
    if (2 * (before + here) >= total) return add(float(i), over(sub(mul(0.5f, float(total)), float(before)), float(here)));
    before += here;
  }
  return 0;
}
CUDAVISION_HOST_DEVICE inline int clamped_bin(float value) {
  return value < 0 ? 0 : value < float(bins - 1) ? int(value) : bins - 1;
}

/// The bin of frame ÷ mean, in steps of 1/128.
CUDAVISION_HOST_DEVICE inline int gain_bin(const Job& job, std::size_t at) {
  return clamped_bin(over(mul(128, add(job.frame[at], 4)), add(job.mean[at], 4)));
}
CUDAVISION_HOST_DEVICE inline float gain_of(float median) { return over(median, 128); }
/// The bin of the offset of chroma under the gain, in steps of 1/4 from −64.
CUDAVISION_HOST_DEVICE inline int offset_bin(const Job& job, int c, std::size_t at, float gain) {
  const std::size_t i = c * job.pixels() + at;
  return clamped_bin(add(mul(4, sub(job.frame[i], mul(gain, job.mean[i]))), 256));
}
CUDAVISION_HOST_DEVICE inline float offset_of(float median) { return sub(mul(median, 0.25f), 64); }

/// Cell (x, y) of `from`, or if it is empty the mean of its neighbours that are not.
CUDAVISION_HOST_DEVICE inline float filled(const Job& job, const float* from, int x, int y) {
  const float here = from[y * job.cells_x + x];
  if (here != empty) return here;
  float sum = 0;
  int count = 0;
  for (int ny = y - 1; ny <= y + 1; ++ny) {
    for (int nx = x - 1; nx <= x + 1; ++nx) {
      if (nx < 0 || ny < 0 || nx >= job.cells_x || ny >= job.cells_y) continue;
      const float other = from[ny * job.cells_x + nx];
      if (other != empty) sum = add(sum, other), ++count;
    }
  }
  return count ? over(sum, float(count)) : empty;
}
/// The median of 3 × 3 cells; the border is repeated.
CUDAVISION_HOST_DEVICE inline float smooth(const Job& job, const float* from, int x, int y) {
  float sorted[9] = {};
  int count = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int nx = x + dx < 0 ? 0 : x + dx >= job.cells_x ? job.cells_x - 1 : x + dx;
      const int ny = y + dy < 0 ? 0 : y + dy >= job.cells_y ? job.cells_y - 1 : y + dy;
      const float value = from[ny * job.cells_x + nx];
      int i = count++;
      for (; i > 0 && value < sorted[i - 1]; --i) sorted[i] = sorted[i - 1];
      sorted[i] = value;
    }
  }
  return sorted[4];
}

/// The light at a pixel: bilinear between the middles of cells.
CUDAVISION_HOST_DEVICE inline float light_at(const Job& job, const float* light, int x, int y) {
  constexpr float per_cell = 1.0f / cell;
  const float fx = most(0, sub(mul(add(float(x), 0.5f), per_cell), 0.5f)),
              fy = most(0, sub(mul(add(float(y), 0.5f), per_cell), 0.5f));
  const int x0 = int(fx), y0 = int(fy), x1 = x0 + 1 < job.cells_x ? x0 + 1 : x0, y1 = y0 + 1 < job.cells_y ? y0 + 1 : y0;
  const float right = sub(fx, float(x0)), down = sub(fy, float(y0));
  const auto across = [&](int row) {
    const float a = light[row * job.cells_x + x0], b = light[row * job.cells_x + x1];
    return add(a, mul(right, sub(b, a)));
  };
  const float top = across(y0), bottom = across(y1);
  return add(top, mul(down, sub(bottom, top)));
}
CUDAVISION_HOST_DEVICE inline float gain_at(const Job& job, int x, int y) {
  return job.compensates ? light_at(job, job.light[0], x, y) : 1;
}

inline constexpr float least_variance = 6, most_evidence = 17, threshold = 10, bright = 203;
/// The variance of a pixel, in which differences are measured.
CUDAVISION_HOST_DEVICE inline float variance_of(const Job& job, int c, std::size_t at) {
  return most(least_variance, job.variance[c * job.pixels() + at]);
}

/// Light is not switched again so few frames after the means began.
inline constexpr std::uint64_t least_age = 3;

/// Sets what the pixel is expected to be, and its evidence of change.
CUDAVISION_HOST_DEVICE inline void expect(const Job& job, int x, int y) {
  const std::size_t n = job.pixels(), at = job.at(x, y);
  const float gain = gain_at(job, x, y);
  float expected[3];
  expected[0] = sub(mul(gain, add(job.mean[at], 4)), 4);
  for (int c = 1; c < job.channels; ++c) {
    expected[c] = mul(gain, job.mean[c * n + at]);
    if (job.compensates) expected[c] = add(expected[c], light_at(job, job.light[c], x, y));
  }
  const bool saturated = expected[0] > bright && job.frame[at] > bright;  // clipped samples say nothing
  float sum = 0;
  for (int c = 0; c < job.channels; ++c) {
    const float value = job.frame[c * n + at];
    if (saturated) expected[c] = value;
    const float away = sub(value, expected[c]);
    sum = add(sum, over(mul(away, away), variance_of(job, c, at)));
    job.expected[c * n + at] = expected[c];
  }
  job.evidence[at] = least(sum, most_evidence);
}

/// The mean of the square of 2·radius + 1 pixels, inside of the frame.
template <int radius>
CUDAVISION_HOST_DEVICE float mean_around(const Job& job, const float* values, int x, int y) {
  float sum = 0;
  int count = 0;
  for (int ny = y - radius; ny <= y + radius; ++ny) {
    if (ny < 0 || ny >= job.height) continue;
    for (int nx = x - radius; nx <= x + radius; ++nx) {
      if (nx < 0 || nx >= job.width) continue;
      sum = add(sum, values[job.at(nx, ny)]);
      ++count;
    }
  }
  return over(sum, float(count));
}
/// Whether one of 3 × 3 pixels is set.
CUDAVISION_HOST_DEVICE inline bool set_around(const Job& job, const std::uint8_t* bytes, int x, int y) {
  for (int ny = y - 1; ny <= y + 1; ++ny)
    for (int nx = x - 1; nx <= x + 1; ++nx)
      if (nx >= 0 && ny >= 0 && nx < job.width && ny < job.height && bytes[job.at(nx, ny)]) return true;
  return false;
}

/// Decides whether the evidence is enough, and sets how unlike a shadow the pixel is.
CUDAVISION_HOST_DEVICE inline void pool(const Job& job, int x, int y) {
  constexpr float most_unlike = 10;
  const std::size_t n = job.pixels(), at = job.at(x, y);
  job.above[at] = mean_around<2>(job, job.evidence, x, y) > threshold;
  if (!job.drops_shadows) return;
  const float dark = over(add(mean_around<2>(job, job.frame, x, y), 1), add(mean_around<2>(job, job.expected, x, y), 1));
  float unlike = most_unlike;
  if (dark >= job.shadow_threshold && dark < 0.97f && job.expected[at] > 30) {
    float sum = 0;
    for (int c = 0; c < job.channels; ++c) {
      const float away = sub(job.frame[c * n + at], mul(dark, job.expected[c * n + at]));
      sum = add(sum, over(mul(away, away), most(least_variance, mul(mul(dark, dark), variance_of(job, c, at)))));
    }
    unlike = least(sum, most_unlike);
  }
  job.unlike_shadow[at] = unlike;
}
/// Returns whether the pixel changed.
CUDAVISION_HOST_DEVICE inline bool change(const Job& job, int x, int y) {
  const std::size_t at = job.at(x, y);
  const bool changed = job.above[at] && !(job.drops_shadows && mean_around<1>(job, job.unlike_shadow, x, y) <= 4);
  job.changed[at] = changed;
  return changed;
}

/// `age`: frames since the means began.
CUDAVISION_HOST_DEVICE inline void learn(const Job& job, int x, int y, std::uint64_t age) {
  constexpr std::uint64_t learning = 50;  // frames
  constexpr float slow = 0.002f;          // where the frame changed: what stays becomes background in about 1000 frames
  const std::size_t n = job.pixels(), at = job.at(x, y);
  const bool learnt = job.number >= learning;
  const bool changed = set_around(job, job.changed, x, y);
  job.left_out[at] = set_around(job, job.above, x, y);  // shadows too
  const float usual = most(over(1, float(age + 1)), job.rate);
  const float rate = changed && learnt ? slow : usual, of_variance = learnt ? rate : most(usual, 0.05f);
  const float gain = most(gain_at(job, x, y), 0.25f);
  for (int c = 0; c < job.channels; ++c) {
    const std::size_t i = c * n + at;
    const float away = sub(job.frame[i], job.expected[i]);
    float square = mul(away, away);
    if (learnt) square = least(square, mul(16, most(1, job.variance[i])));
    const float mean = add(job.mean[i], over(mul(rate, away), gain));
    job.mean[i] = c == 0 ? most(mean, -3) : mean;
    job.variance[i] = add(job.variance[i], mul(of_variance, sub(square, job.variance[i])));
  }
}

}  // namespace cudavision::diff::pooled
