// SPDX-License-Identifier: LGPL-2.1-or-later
// Computes each row of the result in pieces:
//
//   rows y, y+1, y+2 of the window   u8  → Σ column · samples  → down     (s16; two pixels more than the piece)
//   down                             s16 → Σ row · down, offsets, |v|     → the row of the result (u8, saturated)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // vectorised
#endif
#include "kernels/convolve/cpu_small.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/wide.hpp"

namespace cudavision::convolve {
namespace {

constexpr int piece = 1024;  ///< samples of a row; the sums of a piece fit in the L1 cache

struct Weights {
  std::int16_t column[3], row[3], before, after;
};

/// The sum of three products. Each step is truncated to 16 bits, so that the compiler uses lanes of 16 bits.
std::int16_t sum_of(const std::int16_t (&w)[3], std::int16_t a, std::int16_t b, std::int16_t c) {
  return std::int16_t(std::int16_t(std::int16_t(w[0] * a) + std::int16_t(w[1] * b)) + std::int16_t(w[2] * c));
}

/// Filters a row of `count` samples. `step`: distance between samples of adjacent pixels, at most 4.
template <bool Absolute>
void filter_row(const Weights& weights, const std::uint8_t* top, const std::uint8_t* middle, const std::uint8_t* bottom,
                int count, int step, std::uint8_t* to) {
  const Weights w = weights;  // local copies, which no store can change
  std::int16_t down[piece + 8];
  const int more = count + 2 * step;
#pragma GCC ivdep
  for (int i = 0; i < more; ++i) down[i] = sum_of(w.column, top[i], middle[i], bottom[i]);
  const std::int16_t *const left = down, *const center = down + step, *const right = down + 2 * step;
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    std::int16_t value = std::int16_t(sum_of(w.row, left[i], center[i], right[i]) + w.before);
    if (Absolute) value = std::max(value, std::int16_t(-value));
    value = std::int16_t(value + w.after);
    value = std::min(std::max(value, std::int16_t(0)), std::int16_t(255));
    to[i] = std::uint8_t(value);
  }
}

template <bool Absolute>
void filter_rows(const Weights& weights, const cv::Mat& window, cv::Mat& result) {
  const int step = result.channels(), count = result.cols * step;
  for (int y = 0; y < result.rows; ++y)
    for (int i = 0; i < count; i += piece)
      filter_row<Absolute>(weights, window.ptr(y) + i, window.ptr(y + 1) + i, window.ptr(y + 2) + i,
                           std::min(piece, count - i), step, result.ptr(y) + i);
}
CUDAVISION_WIDE void filter(const Weights& weights, bool absolute, const cv::Mat& window, cv::Mat& result) {
  absolute ? filter_rows<true>(weights, window, result) : filter_rows<false>(weights, window, result);
}

}  // namespace

bool is_small(const Plan& plan) {
  if (info(plan.geometry.format).depth != 8 || plan.width != 3 || plan.height != 3 || !plan.separable() ||
      plan.scale != 1)
    return false;
  double sum = 0, offset = 0, down = 0;
  bool integers = true;
  const auto count = [&](double value) {
    integers = integers && value == std::nearbyint(value);
    return std::abs(value);
  };
  for (double weight : plan.weights) sum += count(weight) * 255;
  for (double weight : plan.column) down += count(weight) * 255;
  for (double weight : plan.row) count(weight);
  for (std::size_t role = 0; role < plan.before.size(); ++role)
    offset = std::max(offset, count(plan.before[role]) + count(plan.after[role]));
  return integers && std::max(sum, down) + offset < 0x1p15;
}

void small_kernel(const Plan& plan, const cv::Mat& window, double before, double after, bool absolute,
                  cv::Mat& result) {
  Weights weights{};
  for (int i = 0; i < 3; ++i) {
    weights.column[i] = std::int16_t(plan.column[i]);
    weights.row[i] = std::int16_t(plan.row[i]);
  }
  weights.before = std::int16_t(before);
  weights.after = std::int16_t(after);
  filter(weights, absolute, window, result);
}

}  // namespace cudavision::convolve
