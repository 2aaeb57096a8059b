// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive (see adaptive.hpp) while it settles, at the beginning and after each change of
// the light or the camera. The background is the value that stays longest at a pixel, not the value in the first
// frames. Each pixel counts how long its background was seen, and how long one other value, its rival, was seen. Until
// the background is mature, a rival that was seen longer replaces it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/diff/adaptive_expect.hpp"

namespace cudavision::diff::adaptive {

/// The number of frames in which a background settles.
inline constexpr std::uint64_t settling_frames = 600;
/// Counts are in eighths of a frame: a frame that shows a value adds `counted` to its count, and any other frame
/// subtracts 1. So the count of a value that is seen in more than a ninth of the frames grows. Chosen with the scene
/// `lane` of tests/bench/motion_world.py, where the road is seen in two fifths of the frames, and never for long.
inline constexpr int counted = 8;
inline constexpr int mature = 50 * counted;  ///< a background with this count stays: no rival can replace it
inline constexpr int most_counted = 16000;

/// Another value that a pixel showed, besides its background.
template <int channels, typename F>
struct Rival {
  F value[channels];          ///< as a mean
  IntOf<F> stays, own_stays;  ///< counts of the rival and of the background

  CUDAVISION_FORMULA MaskOf<F> immature() const { return own_stays < IntOf<F>(mature); }
  /// The rate at which the mean approaches a frame. shown: shows_background(). usual: the rate of a mature background.
  /// The mean of an immature background is the mean of the frames that showed it.
  CUDAVISION_FORMULA F share_of_mean(MaskOf<F> shown, F usual) const {
    const F of_shown = over(F(float(counted)), to_float(own_stays + IntOf<F>(counted)));
    return pick(shown, most(of_shown, usual), pick(immature(), F(0.0f), usual));
  }
};

/// What a frame shows at a pixel.
template <int channels, typename F>
struct Shown {
  F value[channels];     ///< its value in the form of a mean
  MaskOf<F> background;  ///< shows_background()
};

/// The largest squared difference between a value and a frame that shows it.
CUDAVISION_HOST_DEVICE constexpr float alike_square(int channel) { return channel == 0 ? 8 * 8 : 4 * 4; }
inline constexpr float most_alike_square = 12 * 12;
/// The largest variance of a new background outside lanes.
inline constexpr float most_new_variance = 10 * 10;

/// Whether the frame shows the background: within its noise, where a large variance counts only up to a limit.
template <int channels, typename F>
CUDAVISION_FORMULA MaskOf<F> shows_background(const Pixel<channels, F>& pixel, const Expected<channels, F>& expected) {
  MaskOf<F> shows(~0);
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F away = sub(pixel.value[c], expected.value[c]);
    const F limit = most(F(alike_square(c)), least(pixel.variance[c], F(most_alike_square)));
    shows = both(shows, no(mul(away, away) > limit));
  }
  return shows;
}

/// Restarts the counts of a pixel whose mean begins with a frame; see Job::stays.
CUDAVISION_HOST_DEVICE inline void restart_counts(const Job& job, std::size_t at) {
  job.stays[at] = 0, job.stays[job.pixels() + at] = counted;
}

/// The largest count of a background that may be wrong; see doubt_background().
inline constexpr int doubtful = 5 * counted;
/// Allows a background that may be wrong since the light changed to be replaced by any value that is seen longer from
/// now on. The rival from before the change is dropped, because its value belongs to the old light.
CUDAVISION_HOST_DEVICE inline void doubt_background(const Job& job, std::size_t at) {
  std::int16_t &rival = job.stays[at], &own = job.stays[job.pixels() + at];
  rival = 0;
  if (own > doubtful) own = doubtful;
}

/// A count after a frame.
template <typename Int, typename Mask>
CUDAVISION_FORMULA Int count_after(Int count, Mask seen, Int times) {
  const Int next = pick(seen, count + times * Int(counted), count - times);
  return pick(next < Int(0), Int(0), pick(next > Int(most_counted), Int(most_counted), next));
}

/// Counts the value that a frame shows, and makes the rival the background if it was seen longer. times: the number of
/// frames that this frame represents. counts: whether the pixel learns from the frame. steady: whether Learning::steady
/// applies.
template <int channels, typename F>
CUDAVISION_FORMULA void settle(Pixel<channels, F>& pixel, Rival<channels, F>& rival, const Shown<channels, F>& frame,
                               IntOf<F> times, MaskOf<F> counts, MaskOf<F> steady) {
  using Int = IntOf<F>;
  const MaskOf<F> shown = frame.background;
  const auto& value = frame.value;
  MaskOf<F> is_rival = both(no(shown), rival.stays > Int(0));
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F away = sub(value[c], rival.value[c]);
    is_rival = both(is_rival, no(mul(away, away) > F(alike_square(c))));
  }
  const Int own = count_after(rival.own_stays, shown, times), others = count_after(rival.stays, is_rival, times);
  const MaskOf<F> is_new = both(both(counts, no(either(shown, is_rival))), others == Int(0));
  rival.own_stays = pick(both(counts, rival.own_stays < Int(mature)), own, rival.own_stays);
  rival.stays = pick(counts, pick(is_new, times * Int(counted), others), rival.stays);
  const MaskOf<F> nearer = both(counts, is_rival);
  const MaskOf<F> wins = both(counts, both(rival.stays > rival.own_stays, rival.own_stays < Int(mature)));
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F moved = add(rival.value[c], mul(F(0.25f), sub(value[c], rival.value[c])));
    const F other = pick(is_new, value[c], pick(nearer, moved, rival.value[c]));
    rival.value[c] = pick(wins, pixel.mean[c], other);
    pixel.mean[c] = pick(wins, other, pixel.mean[c]);
    pixel.variance[c] = pick(
        wins,
        most(F(first_variance(c)), least(pick(steady, F(first_variance(c)), F(most_new_variance)), pixel.variance[c])),
        pixel.variance[c]);
  }
  const Int stays = rival.stays;
  rival.stays = pick(wins, rival.own_stays, stays), rival.own_stays = pick(wins, stays, rival.own_stays);
}

}  // namespace cudavision::diff::adaptive
