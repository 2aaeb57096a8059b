// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive (see adaptive.hpp): the light of the frame, measured in cells.
#pragma once

#include "kernels/diff/adaptive.hpp"

namespace cudavision::diff::adaptive {

inline constexpr int bins = 512;
inline constexpr float empty = -1000;  ///< marks a cell with too few pixels

/// The median of `total` values in bins, interpolated within its bin. `before` values are in lower bins, and `here`
/// values are in this bin.
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
template <typename F>
CUDAVISION_FORMULA IntOf<F> clamped_bin(F value) {
  return to_int(most(F(0), least(value, F(bins - 1))));
}

/// Whether the light is measured at a pixel. `recent`: recent findings at the pixel; see Recent.
template <typename Int>
CUDAVISION_FORMULA auto shows_light(Int recent) {
  return (recent & Int(int(strong_last))) == Int(0);
}
/// The bin of the luma ratio frame ÷ mean, in steps of 1/128.
template <typename F>
CUDAVISION_FORMULA IntOf<F> gain_bin(F value, F mean) {
  return clamped_bin(over(mul(F(128), add(value, F(4))), add(mean, F(4))));
}
CUDAVISION_HOST_DEVICE inline float gain_of(float median) { return over(median, 128); }
CUDAVISION_HOST_DEVICE inline int bin_of_gain(float gain) { return clamped_bin(128 * gain); }
/// The bin of the chroma offset under the gain, in steps of 1/4, beginning at −64.
template <typename F>
CUDAVISION_FORMULA IntOf<F> offset_bin(F value, F mean, float gain) {
  return clamped_bin(add(mul(F(4), sub(value, mul(F(gain), mean))), F(256)));
}
CUDAVISION_HOST_DEVICE inline float offset_of(float median) { return sub(mul(median, 0.25f), 64); }
CUDAVISION_HOST_DEVICE inline int bin_of_offset(float offset) { return clamped_bin(4 * (offset + 64)); }
/// If no cell has a gain, the gain of the frame is measured at every fourth pixel of every fourth row.
inline constexpr int sparse = 4;
/// Whether `total` of a cell's `pixels` pixels are enough for a median.
CUDAVISION_HOST_DEVICE inline bool enough_in_cell(unsigned total, unsigned pixels) {
  return total > 0 && 2 * total >= pixels;
}
CUDAVISION_HOST_DEVICE inline bool enough_in_frame(unsigned total, unsigned pixels) { return 8 * total > pixels; }

/// The light of cell (x, y): the measured light, which `of(x, y)` returns, or, if the cell is empty, the mean of the
/// neighbours that are not empty.
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
/// The median of 3 × 3 numbers. of(x, y): the number at a position, with x and y from −1 to 1.
template <typename F, typename Of>
CUDAVISION_FORMULA F median_of_nine(Of of) {
  // It is the median of the largest minimum, the median of the medians, and the smallest maximum of the three rows.
  F low = 0.0f, middle[3] = {}, high = 0.0f;
  CUDAVISION_CHANNELS
  for (int row = 0; row < 3; ++row) {
    const F a = of(-1, row - 1), b = of(0, row - 1), c = of(1, row - 1);
    const F first = least(least(a, b), c), last = most(most(a, b), c);
    middle[row] = most(least(a, b), least(most(a, b), c));
    low = row == 0 ? first : most(low, first);
    high = row == 0 ? last : least(high, last);
  }
  const F median = most(least(middle[0], middle[1]), least(most(middle[0], middle[1]), middle[2]));
  return most(least(low, median), least(most(low, median), high));
}
/// The median light of 3 × 3 cells. Cells beyond the border repeat the edge.
CUDAVISION_HOST_DEVICE inline float median_around(const Job& job, int channel, int x, int y) {
  return median_of_nine<float>([&](int dx, int dy) {
    const int nx = x + dx < 0 ? 0 : x + dx >= job.cells_x ? job.cells_x - 1 : x + dx;
    const int ny = y + dy < 0 ? 0 : y + dy >= job.cells_y ? job.cells_y - 1 : y + dy;
    return job.light[channel][ny * job.cells_x + nx];
  });
}

/// The offset of a cell without the effect of small objects. `gain`: the median of 3 × 3 cells. If the gain of the cell
/// is far from the median, its chroma offsets were measured under the gain of an object, so medians replace them.
CUDAVISION_HOST_DEVICE inline float smooth_offset(const Job& job, int channel, int x, int y, float gain) {
  constexpr float far = 0.1f;
  const int at = y * job.cells_x + x;
  const float away = sub(job.light[0][at], gain), limit = mul(far, gain);
  return away > limit || away < -limit ? median_around(job, channel, x, y) : job.light[channel][at];
}
/// The light of a cell without the effect of small objects: the gain is the median of 3 × 3 cells.
CUDAVISION_HOST_DEVICE inline float smooth(const Job& job, int channel, int x, int y) {
  const float gain = median_around(job, 0, x, y);
  return channel == 0 ? gain : smooth_offset(job, channel, x, y, gain);
}

/// The position of a coordinate between the centres of two cells.
struct Between {
  int first, second;
  float weight;  ///< weight of the second cell
};
CUDAVISION_HOST_DEVICE inline Between between(int at, int cells) {
  const float place = most(0, sub(mul(add(float(at), 0.5f), 1.0f / cell), 0.5f));
  const int first = int(place);
  return {first, first + 1 < cells ? first + 1 : first, sub(place, float(first))};
}
/// a + weight · rise: the light at a position between two cells with the light a and a + rise.
template <typename F>
CUDAVISION_FORMULA F along(F a, F rise, F weight) {
  return add(a, mul(weight, rise));
}
template <typename F>
CUDAVISION_FORMULA F mixed(F a, F b, F weight) {
  return along(a, sub(b, a), weight);
}

/// The light at a pixel.
template <typename F>
struct Light {
  F gain = 1, offset[3] = {0, 0, 0};  ///< only the offsets of channels 1 and 2 are used
};

}  // namespace cudavision::diff::adaptive
