// SPDX-License-Identifier: LGPL-2.1-or-later
// The adaptive mixture of Gaussians of Z. Zivkovic ("Improved adaptive Gaussian mixture model for background
// subtraction", ICPR 2004; "Efficient adaptive density estimation per image pixel for the task of background
// subtraction", PRL 2006), as implemented by OpenCV's BackgroundSubtractorMOG2. Parameters that a plan does not set
// have OpenCV's defaults. Both backends use the same arithmetic: float32 with every product and sum rounded. So their
// masks have the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/luma.hpp"
#include "kernels/core/rounded.hpp"
#include "kernels/core/sample.hpp"

namespace cudavision::diff::mog2 {

inline constexpr int modes = 5;

/// The work on one frame, and the state (see Place).
struct Job {
  ChannelView channels[3];
  ChannelView reference[3];  ///< the same channels, to which the mean of the heaviest mode is written
  int width = 0, height = 0;
  bool luma_of_rgb = false;                        ///< red, green and blue become one value, their luma
  int shift = 0, extra_bits = 0, max_value = 255;  ///< properties of the format; extra_bits: depth − 8
  bool begin = false;                              ///< no pixel has modes yet
  std::uint64_t number = 0;                        ///< number of the frame
  std::uint64_t history = 500;                     ///< history for an automatic learning rate, in frames
  double learning_rate = -1;                       ///< negative: automatic
  bool drop_shadows = false;                       ///< whether pixels in shadow are background
  float shadow_threshold = 0.5f;                   ///< lowest brightness of a shadow, as a share of the background
  float black[3] = {};                             ///< value of black in each channel, in 8-bit steps
  float match = 16;  ///< a value is background if its squared distance is below this multiple of a mode's variance
  float* values = nullptr;
  std::uint8_t* count = nullptr;  ///< number of modes of each pixel
};

/// Number of neighbouring pixels of a row whose values are stored together: 128 bytes for each number of a mode. These
/// are the pixels of a warp on the device, which therefore makes coalesced accesses.
inline constexpr int group = 32;
inline std::size_t groups(int width, int height) { return std::size_t((width + group - 1) / group) * height; }

/// Addresses of the numbers of a pixel in the state. Each mode has a weight, a variance, and the means of C channels.
template <int C>
struct Place {
  float* values;
  std::uint8_t* count;

  CUDAVISION_HOST_DEVICE Place(const Job& job, int x, int y) {
    const std::size_t at = std::size_t(y) * ((job.width + group - 1) / group) + x / group;
    values = job.values + at * (modes * (2 + C) * group) + x % group;
    count = job.count + at * group + x % group;
  }
  CUDAVISION_HOST_DEVICE float& weight(int mode) const { return values[mode * (2 + C) * group]; }
  CUDAVISION_HOST_DEVICE float& variance(int mode) const { return values[(mode * (2 + C) + 1) * group]; }
  CUDAVISION_HOST_DEVICE float& mean(int mode, int channel) const {
    return values[(mode * (2 + C) + 2 + channel) * group];
  }
};

/// Bytes of the state for 1 or 3 channels.
inline std::size_t state_bytes(int width, int height, int channels) {
  return groups(width, height) * group * (std::size_t(modes) * (2 + channels) * sizeof(float) + 1);
}
/// Sets the arrays in the state, which has 1 or 3 channels.
inline void set_state(Job& job, void* state, int channels) {
  job.values = static_cast<float*>(state);
  job.count =
      reinterpret_cast<std::uint8_t*>(job.values + groups(job.width, job.height) * group * modes * (2 + channels));
}

/// The learning rate alpha, 1 − alpha, and −0.05·alpha.
struct Rates {
  float rate, keep, prune;
};
/// The rates of a frame if the mixtures began with frame `began`: the learning rate if it is not negative and the
/// mixtures do not begin with this frame, otherwise the larger of 1 / (2·frames) and 1 / history. Divisions in float32
/// give the same bits as OpenCV's in float64, because the divisors are integers below 2^24.
CUDAVISION_HOST_DEVICE inline Rates rates_of(const Job& job, std::uint64_t began) {
  const std::uint64_t number = job.number - began, frames = 2 * (number + 1);
  if (job.learning_rate >= 0 && number > 0) {
    const float rate = float(job.learning_rate);
    return {rate, sub(1, rate), float(-job.learning_rate * 0.05f)};
  }
  const float divisor = float(frames < job.history ? frames : job.history), rate = over(1, divisor);
  return {rate, sub(1, rate), -over(0.05f, divisor)};
}

inline constexpr float background_ratio = 0.9f;  ///< total weight of the background modes
/// A value fits a mode if its squared distance is below this multiple of the variance.
inline constexpr float match_mode = 9;
inline constexpr float first_variance = 15, least_variance = 4, most_variance = 75;

/// The mixture of one pixel, the heaviest mode first.
template <int C>
struct Mixture {
  int count = 0;
  float weight[modes], variance[modes], mean[modes][C];
  bool new_variance[modes], new_mean[modes];  ///< whether update() has changed these numbers of a mode

  /// Replaces mode `from` with a mode that has these numbers. The new mode moves up past all modes whose weight in
  /// `compared` is at most `heavy`; these move down by one. Mode `stored` and later modes have no numbers yet.
  CUDAVISION_HOST_DEVICE void replace(int from, int stored, float heavy, const float (&compared)[modes],
                                      float its_weight, float its_variance, const float (&its_mean)[C]) {
    const auto set = [&](int m, float to_weight, float to_variance, const float(&to_mean)[C]) {
      new_variance[m] = m >= stored || variance[m] != to_variance;
      for (int c = 0; c < C; ++c) new_mean[m] = new_mean[m] || m >= stored || mean[m][c] != to_mean[c];
      weight[m] = to_weight, variance[m] = to_variance;
      for (int c = 0; c < C; ++c) mean[m][c] = to_mean[c];
    };
    bool moves = true;
    CUDAVISION_UNROLL
    for (int m = modes - 1; m >= 0; --m) {
      new_variance[m] = new_mean[m] = false;
      if (!moves || m > from) continue;
      const int above = m > 0 ? m - 1 : 0;
      moves = m > 0 && !(heavy < compared[above]);
      if (moves)
        set(m, weight[above], variance[above], mean[above]);
      else
        set(m, its_weight, its_variance, its_mean);
    }
  }

  /// Updates the mixture with a value; returns whether the value is foreground. The mode that fits, or a new mode, is
  /// changed after the loop: inside the unrolled loop, the instructions would be repeated for each mode.
  CUDAVISION_HOST_DEVICE bool update(const float (&value)[C], const Rates& rates, float match_background) {
    const float rate = rates.rate, keep = rates.keep, prune = rates.prune;
    const int stored = count;
    bool background = false;
    int from = -1;  // the mode that fits, its weight, variance, means, and the squared distance of the value
    float heavy = 1, var = 0, center[C] = {}, distance = 0;
    float total = 0;
    CUDAVISION_UNROLL
    for (int m = 0; m < modes; ++m) {
      if (m >= count) break;
      float updated = add(mul(keep, weight[m]), prune);
      float squares = 0;
      for (int c = 0; c < C; ++c) {
        const float away = sub(mean[m][c], value[c]);
        squares = add(squares, mul(away, away));
      }
      const bool open = from < 0;
      if (open && total < background_ratio && squares < mul(match_background, variance[m])) background = true;
      if (open && squares < mul(match_mode, variance[m])) {
        from = m;
        heavy = updated = add(updated, rate);
        var = variance[m], distance = squares;
        for (int c = 0; c < C; ++c) center[c] = mean[m][c];
      }
      if (updated < -prune) {
        updated = 0;
        --count;
      }
      weight[m] = updated;
      total = add(total, updated);
    }

    const float scale = total > 1.1920929e-7f || total < -1.1920929e-7f ? inverse(total) : 0;
    const bool fits = from >= 0, begins = !fits && rate > 0;
    const float k = over(rate, heavy);
    for (int c = 0; c < C; ++c) center[c] = begins ? value[c] : sub(center[c], mul(k, sub(center[c], value[c])));
    var = add(var, mul(k, sub(distance, var)));
    var = var < least_variance ? least_variance : var;
    var = var > most_variance ? most_variance : var;
    if (begins) var = first_variance;

    float compared[modes];  // weights: a new mode is compared with the scaled weights
    if (begins) from = count < modes ? count : modes - 1;
    CUDAVISION_UNROLL
    for (int m = 0; m < modes; ++m) {
      compared[m] = weight[m];
      if (m < count) weight[m] = mul(weight[m], scale);
      if (begins && m < from) weight[m] = mul(weight[m], keep);
      if (begins) compared[m] = weight[m];
    }
    if (begins && count < modes) ++count;
    const float moved = fits ? mul(heavy, scale) : from == 0 ? 1 : rate;
    if (begins) heavy = rate;
    replace(from, stored, heavy, compared, moved, var, center);
    return !background;
  }

  /// Whether a value shows a background mode in shadow: darker, and of the same colour (A. Prati, I. Mikić, M. M.
  /// Trivedi and R. Cucchiara, "Detecting moving shadows: algorithms and evaluation", PAMI 2003).
  CUDAVISION_HOST_DEVICE bool in_shadow(const float (&value)[C], const Job& job) const {
    float total = 0;
    CUDAVISION_UNROLL
    for (int m = 0; m < modes; ++m) {
      if (m >= count) break;
      float along = 0, size = 0, light[C], lit[C];  // light of the value and of the mode
      for (int c = 0; c < C; ++c) {
        light[c] = sub(value[c], job.black[c]);
        lit[c] = sub(mean[m][c], job.black[c]);
        along = add(along, mul(light[c], lit[c]));
        size = add(size, mul(lit[c], lit[c]));
      }
      if (size == 0) return false;
      if (along <= size && along >= mul(job.shadow_threshold, size)) {
        const float factor = over(along, size);
        float distance = 0;
        for (int c = 0; c < C; ++c) {
          const float away = sub(mul(factor, lit[c]), light[c]);
          distance = add(distance, mul(away, away));
        }
        if (distance < mul(mul(mul(job.match, variance[m]), factor), factor)) return true;
      }
      total = add(total, weight[m]);
      if (total > background_ratio) return false;
    }
    return false;
  }
};

/// A pixel with 1 or 3 channels and its mixture. The constructor starts loading both: on the device, other work can
/// overlap the loads.
template <typename T, int C>
class Pixel {
  const Place<C> place_;
  Mixture<C> mixture_;
  int sample_[3];

 public:
  CUDAVISION_HOST_DEVICE Pixel(const Job& job, int x, int y) : place_(job, x, y) {
    mixture_.count = job.begin ? 0 : *place_.count;
    for (int c = 0; c < (job.luma_of_rgb ? 3 : C); ++c)
      sample_[c] = sample_of(job.channels[c].template word<const T>(x, y), job.shift, job.max_value);
    CUDAVISION_UNROLL
    for (int m = 0; m < modes; ++m) {
      if (m >= mixture_.count) break;
      mixture_.weight[m] = place_.weight(m);
      mixture_.variance[m] = place_.variance(m);
      for (int c = 0; c < C; ++c) mixture_.mean[m][c] = place_.mean(m, c);
    }
  }

  /// Updates the mixture; returns whether the pixel, at (x, y), is foreground.
  CUDAVISION_HOST_DEVICE bool update(const Job& job, const Rates& rates, int x, int y) {
    float step = 1;  // distance between samples, in 8-bit steps
    for (int i = 0; i < job.extra_bits; ++i) step *= 0.5f;
    if (job.luma_of_rgb) sample_[0] = luma_of(sample_[0], sample_[1], sample_[2]);
    float value[C];
    for (int c = 0; c < C; ++c) value[c] = mul(float(sample_[c]), step);
    for (int c = 0; c < C; ++c) show(job, c, x, y);

    const bool foreground = mixture_.update(value, rates, job.match);
    *place_.count = std::uint8_t(mixture_.count);
    CUDAVISION_UNROLL
    for (int m = 0; m < modes; ++m) {
      if (m >= mixture_.count) break;
      place_.weight(m) = mixture_.weight[m];
      if (mixture_.new_variance[m]) place_.variance(m) = mixture_.variance[m];
      if (mixture_.new_mean[m])
        for (int c = 0; c < C; ++c) place_.mean(m, c) = mixture_.mean[m][c];
    }
    return foreground && !(job.drop_shadows && mixture_.in_shadow(value, job));
  }

 private:
  /// Writes a channel of the reference. The shown difference uses the mixture as it was before its update.
  CUDAVISION_HOST_DEVICE void show(const Job& job, int c, int x, int y) const {
    const ChannelView& reference = job.reference[c];
    if (!reference.is_first(x, y)) return;
    int shown = sample_[c];
    if (mixture_.count > 0) {
      const float mean = mul(mixture_.mean[0][c], float(1 << job.extra_bits));
      shown = int(add(mean, 0.5f));
      if (shown < 0) shown = 0;  // a mean may overshoot the sample that it learns
      if (shown > job.max_value) shown = job.max_value;
    }
    reference.template word<T>(x, y) = T(shown << job.shift);
  }
};

/// Updates the mixture of pixel (x, y). Returns whether the pixel is foreground.
template <typename T, int C>
CUDAVISION_HOST_DEVICE bool pixel(const Job& job, const Rates& rates, int x, int y) {
  return Pixel<T, C>(job, x, y).update(job, rates, x, y);
}

#undef CUDAVISION_UNROLL

}  // namespace cudavision::diff::mog2
