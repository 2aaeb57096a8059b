// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/sizes.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::track {
namespace {

// Chosen with the scene `lane` of tests/bench/motion_world.py.
constexpr double least_laps = 6;     ///< how far objects must have travelled in a band, in usual widths
constexpr double most_laps = 50;     ///< beyond this distance, all earlier weights are halved
constexpr double per_octave = 6;     ///< steps of a histogram for each doubling of a side
constexpr double neighbour = 0.5;    ///< weight in the bands above and below
constexpr double largest = 1.1;      ///< largest side of a single object ÷ usual side
constexpr double least_row = 1.5;    ///< smallest width of a row of objects ÷ usual width
constexpr double highest_row = 1.4;  ///< largest height of a row of objects ÷ usual height

}  // namespace

void SizeMap::Sides::add(int side, double weight) {
  const int step = int(std::lround(per_octave * std::log2(double(side))));
  weights[std::size_t(std::min(step, steps - 1))] += float(weight);
  sum += weight;
  double left = sum / 2;
  std::size_t middle = 0;
  while (middle + 1 < weights.size() && (left -= weights[middle]) > 0) ++middle;
  median = std::exp2(double(middle) / per_octave);
}

void SizeMap::Sides::forget() {
  for (float& weight : weights) weight /= 2;
  sum /= 2;
}

void SizeMap::begin_frame(int frame_height) {
  if (frame_height != frame_height_) *this = {};
  frame_height_ = frame_height;
}

int SizeMap::band_of(const Rect& box) const { return (box.y + box.height - 1) * bands / frame_height_; }

void SizeMap::add(const Rect& box, double way) {
  const int middle = band_of(box);
  for (int at = std::max(0, middle - 1); at <= std::min(bands - 1, middle + 1); ++at) {
    Band& band = bands_[std::size_t(at)];
    const double weight = (at == middle ? 1 : neighbour) * way;
    band.widths.add(box.width, weight * box.width);
    band.heights.add(box.height, weight * box.width);
    if (band.laps() <= most_laps) continue;
    band.widths.forget();
    band.heights.forget();
  }
}

const SizeMap::Band* SizeMap::known(const Rect& box) const {
  const Band& band = bands_[std::size_t(std::clamp(band_of(box), 0, bands - 1))];
  return band.widths.sum > 0 && band.laps() >= least_laps ? &band : nullptr;
}

bool SizeMap::fits(const Rect& box) const {
  const Band* band = known(box);
  return band && box.width <= largest * band->widths.median && box.height <= largest * band->heights.median;
}

double SizeMap::width_in_row(const Rect& box) const {
  const Band* band = known(box);
  const bool is_row =
      band && box.width >= least_row * band->widths.median && box.height <= highest_row * band->heights.median;
  return is_row ? band->widths.median : 0;
}

}  // namespace cudavision::track
