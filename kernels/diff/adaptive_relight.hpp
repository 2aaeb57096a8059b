// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive (see adaptive.hpp) in the sectors that do not restart when the light changes,
// because objects are there: the means move to the new light. Elsewhere the old means and the frame show the same
// things in both lights, so the effect of the light is measured there:
//
//   luma     by how much it changed, in bins of the old luma: cameras change their response curve, not only the gain
//   chroma   the line that fits best, by least squares
//
// The effect of a change of the light on a pixel, by its sector (camera::Decision):
//
//   sector           mean                  counts of adaptive_settle.hpp                          variance
//   not kept         becomes the frame     restart                                                stays
//   kept             moves to the light    the background is in doubt: see doubt_background()     stays
//   kept and held    moves to the light    stay                                                   stays
//
// The same code runs on both backends; see camera.hpp.
#pragma once

#include <cstdint>

#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/relight.hpp"

namespace cudavision::diff::adaptive {

/// Sums over pixels, by the bin of their mean, which a team shares. Luma is in fixed point, starting at −128 steps.
struct RelightSums {
  std::uint32_t pixels[Relight::bins], means[Relight::bins], samples[Relight::bins];
};

/// The change of luma in a bin, or in the nearest bin with enough pixels; 0 if no bin has enough.
CUDAVISION_HOST_DEVICE inline float change_of_bin(const RelightSums& sums, int bin) {
  constexpr unsigned enough = 16;
  for (int distance = 0; distance < Relight::bins; ++distance)
    for (int i : {bin - distance, bin + distance}) {
      if (i < 0 || i >= Relight::bins || sums.pixels[i] < enough) continue;
      const float both = sub(float(sums.samples[i]), float(sums.means[i]));
      return mul(over(both, float(sums.pixels[i])), fixed_step);
    }
  return 0;
}
/// The line that fits `pixels` pixels. of_samples, of_means: sums of the samples and of the means.
CUDAVISION_HOST_DEVICE inline Relight::Line line_of(long long pixels, long long means, long long samples,
                                                    long long mean_squares, long long products) {
  const float spread = float(pixels * mean_squares - means * means), both = float(pixels * products - means * samples);
  const auto mean_of = [&](long long sum) { return mul(over(float(sum), float(pixels)), fixed_step); };
  return {mean_of(means), mean_of(samples), spread > 0 ? over(both, spread) : 1};
}

/// Measures how the light changed since the last frame, in the sectors outside `kept`. The means already include the
/// frame. The whole team calls this function, and one thread sets the result.
template <typename Team>
CUDAVISION_HOST_DEVICE void measure(Team& team, const Job& job, std::uint64_t kept, RelightSums& sums,
                                    Relight& result) {
  team.each(Relight::bins, 1, [&](int i, int) { sums.pixels[i] = sums.means[i] = sums.samples[i] = 0; });
  team.wait();
  const int step = 1 + job.width * job.height / camera::counted_pixels, rows = (job.height + step - 1) / step;
  // Calls work(x, y, mean, sample) for pixels that restart, with the values of a channel in fixed point.
  const auto each = [&](int c, auto work) {
    team.each(job.width, rows, [&](int x, int row) {
      const int y = row * step;
      if (kept >> camera::sector_of(x, y, job.width, job.height) & 1) return;
      const std::size_t at = c * job.pixels() + job.at(x, y);
      work(to_fixed(job.next_mean[at]), int(job.frame[at]));
    });
  };
  each(0, [&](int mean, int sample) {
    constexpr int offset = 16384;
    const int bin = mean < 0 ? 0 : mean / (128 * Relight::width);
    team.add(sums.pixels[bin], 1);
    team.add(sums.means[bin], std::uint32_t(mean + offset)),
        team.add(sums.samples[bin], std::uint32_t(sample + offset));
  });
  team.wait();
  if (team.first())
    for (int i = 0; i < Relight::bins; ++i) result.change[i] = change_of_bin(sums, i);
  for (int c = 1; c < job.channels; ++c) {
    camera::Sums firsts{0, 0, 0}, seconds{0, 0, 0};
    each(c, [&](int mean, int sample) {
      ++firsts.both, firsts.expected += mean, firsts.frame += sample;
      seconds.expected += mean * mean, seconds.both += mean * sample;
    });
    firsts = team.sum(firsts), seconds = team.sum(seconds);
    if (team.first())
      result.lines[c - 1] = firsts.both > 0
                                ? line_of(firsts.both, firsts.expected, firsts.frame, seconds.expected, seconds.both)
                                : Relight::Line{0, 0, 1};
  }
}

}  // namespace cudavision::diff::adaptive
