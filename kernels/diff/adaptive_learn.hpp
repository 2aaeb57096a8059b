// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive (see adaptive.hpp): decides which evidence is a change, and learns.
#pragma once

#include <cstdint>

#include "kernels/diff/adaptive_settle.hpp"

namespace cudavision::diff::adaptive {

/// The mean evidence of 5 × 5 pixels. Pixels with strong evidence show an object, and light is not measured at them.
/// Light is measured at pixels just above the threshold: the edge of a cloud gives such evidence, and the light there
/// must be followed. Chosen with tests/bench/motion_quality.py; see docs/scoreboard.md.
enum Level { noise, raised, above, strong };
inline constexpr int least_raised = 4 * weight_one, least_above = 6 * weight_one, least_strong = 8 * weight_one;

/// Once enough frames are learned, a pixel without findings learns only in one of this many frames, at this many times
/// the rate.
inline constexpr int turns = 4;

/// Values that depend on the age of the means.
struct Rates {
  bool learnt;                ///< whether enough frames were seen
  bool settles;               ///< whether the background settles; see adaptive_settle.hpp
  bool in_turns;              ///< whether pixels without findings learn in turns
  float mean, variance;       ///< the rates at which means and variances approach a frame
  float most_variance;        ///< upper limit of variances
  float most_steady;          ///< upper limit where Learning::steady applies
  int raised, above, strong;  ///< evidence above which these levels begin
};
/// `age`: frames since the means began.
CUDAVISION_HOST_DEVICE inline Rates rates_of(const Job& job, std::uint64_t age) {
  constexpr std::uint64_t learning = 50;  // frames
  const bool learnt = job.number >= learning;
  const float usual = most(over(1, float(age + 1)), job.rate);
  // The mean of n frames also has noise: it increases the variance of differences by 1/n.
  const float more = add(1, over(1, most(1, float(age))));
  const auto scaled = [more](int evidence) { return int(mul(float(evidence), more)); };
  const bool settles = age <= settling_frames;
  return {learnt,
          settles,
          learnt && usual <= 0.25f / float(turns),
          settles ? job.rate : usual,
          learnt ? usual : most(usual, 0.05f),
          job.most_variance,
          job.most_steady,
          scaled(least_raised),
          scaled(least_above),
          scaled(least_strong)};
}

/// Whether the pixels of row y without findings learn from the frame. A row learns once in each group of `turns`
/// frames, at a position that changes from group to group, so that it does not always coincide with the same frame of
/// a video codec's groups. Rows at equal distances from the top and the bottom learn in the same frame: flipping the
/// video flips the mask.
CUDAVISION_HOST_DEVICE inline bool has_turn(const Job& job, int y) {
  const std::uint64_t group = job.number / turns, row = std::uint64_t(y < job.height - 1 - y ? y : job.height - 1 - y);
  return (row + job.number + group + group / turns) % turns == 0;
}

/// The level of a sum of evidence over `count` pixels.
template <typename Int>
CUDAVISION_FORMULA Int level_of(const Rates& rates, Int evidence, Int count) {
  const Int raised_or_more = pick(evidence <= count * Int(rates.above), Int(int(raised)), Int(int(above)));
  const Int any = pick(evidence <= count * Int(rates.strong), raised_or_more, Int(int(strong)));
  return pick(evidence <= count * Int(rates.raised), Int(int(noise)), any);
}

/// The findings at a pixel.
template <typename F>
struct Seen {
  IntOf<F> level;          ///< a Level
  IntOf<F> recent;         ///< recent findings at the pixel; see Recent
  MaskOf<F> near_above;    ///< whether the pixel or an adjacent pixel is above the threshold, including shadows
  MaskOf<F> near_changed;  ///< whether the pixel or an adjacent pixel changed
  MaskOf<F> held, taken;   ///< whether Learning::hold or Learning::take applies
  MaskOf<F> steady;        ///< whether Learning::steady applies

  /// Whether the pixel has no findings.
  CUDAVISION_FORMULA MaskOf<F> nothing() const {
    const IntOf<F> any = level | recent;
    return both(any == IntOf<F>(0), no(either(near_above, either(held, taken))));
  }
};
/// Job::recent after the frame.
template <typename F>
CUDAVISION_FORMULA IntOf<F> recent_after(const Seen<F>& seen) {
  using Int = IntOf<F>;
  const Int before = pick((seen.recent & Int(int(above_last))) == Int(0), Int(0), Int(int(above_before)));
  return before | pick(seen.near_above, Int(int(above_last)), Int(0)) |
         pick(seen.level == Int(int(strong)), Int(int(strong_last)), Int(0));
}

/// Whether the pixel does not learn from the frame. turn: has_turn() of its row.
template <typename F>
CUDAVISION_FORMULA MaskOf<F> rests(const Seen<F>& seen, const Rates& rates, bool turn) {
  return both(seen.nothing(), MaskOf<F>(rates.in_turns && !turn ? ~0 : 0));
}
/// Updates the mean and the variance of `pixel` with the frame. settles: rates.settles as a constant, so that the code
/// for a settled background omits that work. If it is true, the counts of `rival` are used, and settle_after() must
/// follow with the values set in `shown`. gain: gain of the light. turn: has_turn() of its row.
template <bool settles, int channels, typename F>
CUDAVISION_FORMULA void learn(Pixel<channels, F>& pixel, const Rival<channels, F>& rival,
                              const Expected<channels, F>& expected, F gain, const Seen<F>& seen, const Rates& rates,
                              bool turn, Shown<channels, F>& shown) {
  using Int = IntOf<F>;
  const MaskOf<F> by_turn = both(seen.nothing(), MaskOf<F>(rates.in_turns ? ~0 : 0));
  const MaskOf<F> keeps = rests(seen, rates, turn);
  const F times = pick(by_turn, F(float(turns)), F(1.0f));
  // Where the frame changed, a lasting change becomes the background in about 1000 frames.
  constexpr float slow = 0.001f, slow_variance = 0.0001f;
  MaskOf<F> background(~0);  // needed only in lanes, and where the background settles
  if (settles || !all(no(seen.steady))) background = shows_background(pixel, expected);
  if constexpr (settles) shown.background = background;
  const MaskOf<F> slowly =
      either(both(seen.near_changed, MaskOf<F>(rates.learnt ? ~0 : 0)), both(seen.steady, no(background)));
  const MaskOf<F> takes = both(seen.taken, seen.near_above);
  F share_of_mean = mul(times, F(rates.mean));
  if constexpr (settles) share_of_mean = rival.share_of_mean(background, share_of_mean);
  const F usual = pick(slowly, F(slow), share_of_mean), of_mean = pick(seen.held, F(0.0f), pick(takes, F(1.0f), usual));
  const F divisor = most(gain, F(0.25f)), step = over(of_mean, divisor);
  F share_of_variance = mul(times, F(rates.variance));
  if constexpr (settles) share_of_variance = pick(rival.immature(), share_of_variance, mul(times, F(rates.mean)));
  const F of_variance = pick(either(seen.held, takes), F(0.0f), pick(slowly, F(slow_variance), share_of_variance));
  // Key frames, leaves and rain disturb a pixel occasionally, and a mean of squares forgets them in between. So a
  // variance that is too small grows fast. A change that comes and goes within one frame is also a disturbance, because
  // no object does that.
  constexpr float fast = 0.2f, growth = 4;
  const MaskOf<F> grows = both(seen.level == Int(int(raised)), no(either(seen.near_above, seen.held)));
  const Int was_above = seen.recent & Int(int(above_last) | int(above_before));
  const MaskOf<F> single = both(was_above == Int(int(above_last)), no(seen.near_above));
  const MaskOf<F> blinked = both(both(single, no(seen.held)), MaskOf<F>(rates.learnt ? ~0 : 0));
  const F most_variance = pick(seen.steady, F(rates.most_steady), F(rates.most_variance));
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F away = sub(pixel.value[c], expected.value[c]), variance = pixel.variance[c], spread = pixel.spread(c);
    const F square = least(mul(away, away), mul(F(16), spread));  // an object is not noise
    if constexpr (settles) shown.value[c] = add(pixel.mean[c], over(away, divisor));
    const F mean = add(pixel.mean[c], mul(step, away));
    pixel.mean[c] = pick(keeps, pixel.mean[c], c == 0 ? most(mean, F(-3)) : mean);
    const F share = pick(both(grows, square > variance), most(F(fast), of_variance), of_variance);
    const F next = pick(blinked, mul(F(growth), spread), add(variance, mul(share, sub(square, variance))));
    pixel.variance[c] = pick(keeps, variance, least(most_variance, next));
  }
}

/// Whether settle_after() would change nothing: the background is mature, has no rival, and was seen.
template <int channels, typename F>
CUDAVISION_FORMULA bool rests_settled(const Rival<channels, F>& rival, const Shown<channels, F>& shown,
                                      const Seen<F>& seen) {
  using Int = IntOf<F>;
  const MaskOf<F> settled = both(rival.stays == Int(0), rival.own_stays >= Int(mature));
  return all(both(both(settled, shown.background), no(seen.taken)));
}
/// Compares the rival of a pixel with its background, after learn(), which describes the parameters.
template <int channels, typename F>
CUDAVISION_FORMULA void settle_after(Pixel<channels, F>& pixel, Rival<channels, F>& rival,
                                     const Shown<channels, F>& shown, const Seen<F>& seen, const Rates& rates,
                                     bool turn) {
  using Int = IntOf<F>;
  const MaskOf<F> by_turn = both(seen.nothing(), MaskOf<F>(rates.in_turns ? ~0 : 0));
  // A held object does not become the background, except in a lane, where many objects follow each other.
  const MaskOf<F> counts = no(either(rests(seen, rates, turn), both(seen.held, no(seen.steady))));
  settle(pixel, rival, shown, pick(by_turn, Int(turns), Int(1)), counts, seen.steady);
  const MaskOf<F> takes = both(seen.taken, seen.near_above);
  rival.own_stays = pick(takes, Int(counted), rival.own_stays), rival.stays = pick(takes, Int(0), rival.stays);
}

}  // namespace cudavision::diff::adaptive
