// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled (see pooled.hpp): which evidence is a change, and how means and variances learn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/diff/pooled.hpp"

namespace cudavision::diff::pooled {

/// The mean evidence of 5 × 5 pixels. Pixels of strong evidence show an object, and not the light. If the light were measured only
/// below the threshold, the edge of a cloud would be left out, and the light there not be followed. Chosen with
/// tests/bench/motion_quality.py, see docs/motion.md.
enum Level { noise, raised, above, strong };
inline constexpr int least_raised = 4 * weight_one, least_above = 6 * weight_one, least_strong = 8 * weight_one;

/// What depends on the age of the means.
struct Rates {
  bool learnt;                ///< whether frames enough have been seen
  float mean, variance;       ///< the shares with which means and variances approach a frame
  int raised, above, strong;  ///< the evidence that these levels exceed
};
/// `age`: frames since the means began.
CUDAVISION_HOST_DEVICE inline Rates rates_of(const Job& job, std::uint64_t age) {
  constexpr std::uint64_t learning = 50;  // frames
  const bool learnt = job.number >= learning;
  const float usual = most(over(1, float(age + 1)), job.rate);
  // The mean of n frames has noise, too: the variance of differences from it is larger by 1/n.
  const float more = add(1, over(1, most(1, float(age))));
  const auto scaled = [more](int evidence) { return int(mul(float(evidence), more)); };
  return {learnt, usual, learnt ? usual : most(usual, 0.05f), scaled(least_raised), scaled(least_above), scaled(least_strong)};
}

/// The level of a sum of evidence of `count` pixels.
CUDAVISION_HOST_DEVICE inline Level level_of(const Rates& rates, int evidence, int count) {
  if (evidence <= rates.raised * count) return noise;
  return evidence <= rates.above * count ? raised : evidence <= rates.strong * count ? above : strong;
}

/// What was seen at a pixel.
struct Seen {
  Level level;
  bool near_above;    ///< whether it or a pixel beside it is above the threshold; shadows are, too
  bool near_changed;  ///< whether it or a pixel beside it changed
};

/// Also sets Job::recent.
template <int channels>
CUDAVISION_HOST_DEVICE void learn(const Job& job, std::size_t at, const Expected& expected, float gain, const Seen& seen,
                                  const Rates& rates) {
  // Where the frame changed: what stays becomes background in about 1000 frames.
  constexpr float slow = 0.001f, slow_variance = 0.0001f;
  const bool slowly = seen.near_changed && rates.learnt;
  const float step = over(slowly ? slow : rates.mean, most(gain, 0.25f)), of_variance = slowly ? slow_variance : rates.variance;
  // Key frames, leaves and rain disturb a pixel now and then, and a mean of squares forgets them in between. So a variance that is
  // too small grows fast. No object comes and goes within a frame: what does so is a disturbance, too.
  constexpr float fast = 0.2f, growth = 4;
  const unsigned recent = job.recent[at];
  const bool grows = seen.level == raised && !seen.near_above;
  const bool blinked = rates.learnt && !seen.near_above && (recent & (above_last | above_before)) == above_last;
  job.recent[at] = std::uint8_t((recent & above_last ? above_before : 0) | (seen.near_above ? above_last : 0) |
                                (seen.level == strong ? strong_last : 0));
  for (int c = 0; c < channels; ++c) {
    const std::size_t i = c * job.pixels() + at;
    const float away = sub(value_of(job, c, at), expected.values[c]), variance = job.variance[i];
    float square = mul(away, away);
    if (rates.learnt) square = least(square, mul(16, most(least_variance, variance)));
    const float mean = add(job.mean[i], mul(step, away));
    job.next_mean[i] = c == 0 ? most(mean, -3) : mean;
    const float share = grows && square > variance ? most(fast, of_variance) : of_variance;
    job.next_variance[i] = blinked ? mul(growth, most(least_variance, variance)) : add(variance, mul(share, sub(square, variance)));
  }
}

}  // namespace cudavision::diff::pooled
