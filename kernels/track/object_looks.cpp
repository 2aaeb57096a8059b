// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/object_looks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cudavision::track {
namespace {

constexpr double gain = 0.1;         ///< weight of a new frame, once an object has been seen often enough
constexpr double most_squares = 16;  ///< largest squared difference, in units of the spread
constexpr double least_pixels = 4;   ///< fewest pixels of a half
/// The smallest variance of each value: luma, its deviation, Cb and Cr.
constexpr std::array<double, 4> least_variance{8 * 8, 5 * 5, 2 * 2, 2 * 2};

}  // namespace

void ObjectLooksSums::add(const diff::CellLooks& looks, const Rect& box) {
  const double upper = std::clamp((middle_ - box.y) / box.height, 0.0, 1.0), shares[2] = {upper, 1 - upper};
  const double values[5] = {double(looks.pixels), double(looks.luma), double(looks.luma_squares), double(looks.cb),
                            double(looks.cr)};
  for (int half = 0; half < 2; ++half)
    for (int k = 0; k < 5; ++k) sums_[half][k] += shares[half] * values[k];
}

ObjectLooks ObjectLooksSums::result() const {
  ObjectLooks looks;
  for (int half = 0; half < 2; ++half) {
    const double(&sums)[5] = sums_[half];
    if (sums[0] < least_pixels) return {};
    double* const values = &looks.values[std::size_t(4 * half)];
    values[0] = sums[1] / sums[0];
    values[1] = std::sqrt(std::max(0.0, sums[2] / sums[0] - values[0] * values[0]));
    values[2] = sums[3] / sums[0];
    values[3] = sums[4] / sums[0];
  }
  looks.known = true;
  return looks;
}

void Portrait::learn(const ObjectLooks& looks) {
  const double rate = std::max(gain, 1.0 / ++frames_);
  for (std::size_t k = 0; k < 8; ++k) {
    const double away = looks.values[k] - mean_[k];
    mean_[k] += rate * away;
    if (frames_ > 1) variance_[k] += rate * (away * away - variance_[k]);
  }
}

double Portrait::unlikeness(const ObjectLooks& looks) const {
  double sum = 0;
  for (std::size_t k = 0; k < 8; ++k) {
    const double away = looks.values[k] - mean_[k];
    sum += std::min(most_squares, away * away / (variance_[k] + least_variance[k % 4]));
  }
  return sum / 8;
}

}  // namespace cudavision::track
