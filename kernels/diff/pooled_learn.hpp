// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled (see pooled.hpp): which evidence is a change, and how means and variances learn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/diff/pooled_expect.hpp"

namespace cudavision::diff::pooled {

/// The mean evidence of 5 × 5 pixels. Pixels of strong evidence show an object, and not the light. If the light were
/// measured only below the threshold, the edge of a cloud would be left out, and the light there not be followed.
/// Chosen with tests/bench/motion_quality.py, see docs/scoreboard.md.
enum Level { noise, raised, above, strong };
inline constexpr int least_raised = 4 * weight_one, least_above = 6 * weight_one, least_strong = 8 * weight_one;

/// What depends on the age of the means.
struct Rates {
  bool learnt;                ///< whether frames enough have been seen
  float mean, variance;       ///< the shares with which means and variances approach a frame
  float most_variance;        ///< which variances do not exceed
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
  return {learnt,
          usual,
          learnt ? usual : most(usual, 0.05f),
          job.most_variance,
          scaled(least_raised),
          scaled(least_above),
          scaled(least_strong)};
}

/// The level of a sum of evidence of `count` pixels.
template <typename Int>
CUDAVISION_FORMULA Int level_of(const Rates& rates, Int evidence, Int count) {
  const Int raised_or_more = pick(evidence <= count * Int(rates.above), Int(int(raised)), Int(int(above)));
  const Int any = pick(evidence <= count * Int(rates.strong), raised_or_more, Int(int(strong)));
  return pick(evidence <= count * Int(rates.raised), Int(int(noise)), any);
}

/// What was seen at a pixel.
template <typename F>
struct Seen {
  IntOf<F> level;          ///< a Level
  IntOf<F> recent;         ///< in the last frames, see Recent
  MaskOf<F> near_above;    ///< whether it or a pixel beside it is above the threshold; shadows are, too
  MaskOf<F> near_changed;  ///< whether it or a pixel beside it changed
  MaskOf<F> held, taken;   ///< by Learning::hold, and by Learning::take
};
/// Job::recent after the frame.
template <typename F>
CUDAVISION_FORMULA IntOf<F> recent_after(const Seen<F>& seen) {
  using Int = IntOf<F>;
  const Int before = pick((seen.recent & Int(int(above_last))) == Int(0), Int(0), Int(int(above_before)));
  return before | pick(seen.near_above, Int(int(above_last)), Int(0)) |
         pick(seen.level == Int(int(strong)), Int(int(strong_last)), Int(0));
}

/// Sets the mean and the variance of `pixel` to those after the frame. gain: of the light.
template <int channels, typename F>
CUDAVISION_FORMULA void learn(Pixel<channels, F>& pixel, const Expected<channels, F>& expected, F gain,
                              const Seen<F>& seen, const Rates& rates) {
  using Int = IntOf<F>;
  // Where the frame changed: what stays becomes background in about 1000 frames.
  constexpr float slow = 0.001f, slow_variance = 0.0001f;
  const MaskOf<F> slowly = both(seen.near_changed, MaskOf<F>(rates.learnt ? ~0 : 0));
  const MaskOf<F> takes = both(seen.taken, seen.near_above);
  const F usual = pick(slowly, F(slow), F(rates.mean)), of_mean = pick(seen.held, F(0.0f), pick(takes, F(1.0f), usual));
  const F step = over(of_mean, most(gain, F(0.25f)));
  const F of_variance = pick(either(seen.held, takes), F(0.0f), pick(slowly, F(slow_variance), F(rates.variance)));
  // Key frames, leaves and rain disturb a pixel now and then, and a mean of squares forgets them in between. So a
  // variance that is too small grows fast. No object comes and goes within a frame: what does so is a disturbance, too.
  constexpr float fast = 0.2f, growth = 4;
  const MaskOf<F> grows = both(seen.level == Int(int(raised)), no(either(seen.near_above, seen.held)));
  const Int was_above = seen.recent & Int(int(above_last) | int(above_before));
  const MaskOf<F> single = both(was_above == Int(int(above_last)), no(seen.near_above));
  const MaskOf<F> blinked = both(both(single, no(seen.held)), MaskOf<F>(rates.learnt ? ~0 : 0));
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F away = sub(pixel.value[c], expected.value[c]), variance = pixel.variance[c], spread = pixel.spread(c);
    F square = mul(away, away);
    if (rates.learnt) square = least(square, mul(F(16), spread));
    const F mean = add(pixel.mean[c], mul(step, away));
    pixel.mean[c] = c == 0 ? most(mean, F(-3)) : mean;
    const F share = pick(both(grows, square > variance), most(F(fast), of_variance), of_variance);
    const F next = pick(blinked, mul(F(growth), spread), add(variance, mul(share, sub(square, variance))));
    pixel.variance[c] = least(F(rates.most_variance), next);
  }
}

}  // namespace cudavision::diff::pooled
