// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/convolve/cuda_schedule.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::convolve {
namespace {

/// Largest error of a result, in sample values, for which one half-precision number (11 bits) of a real weight is enough. It is
/// about the error of a kernel whose absolute weights sum to 4. Beyond it, two numbers (22 bits) take twice the time.
constexpr double matrix_error = 0.125;

/// Side (3, 5 or 7) of the square around the anchor that holds the kernel; 0: the kernel is larger.
int small_side(const Plan& plan) {
  const int reach = std::max({plan.anchor_x, plan.width - 1 - plan.anchor_x, plan.anchor_y, plan.height - 1 - plan.anchor_y});
  return reach <= tuning.small_reach ? 2 * std::max(reach, 1) + 1 : 0;
}

/// Halves the warps of a block until bytes(warps) of shared memory fit. Returns false if not even one warp fits.
template <typename F>
bool fit(Schedule& schedule, int most_warps, std::size_t limit, F&& bytes) {
  int warps = most_warps;
  while (warps > 0 && bytes(warps) > limit) warps /= 2;
  if (warps == 0) return false;
  schedule.warps = warps;
  schedule.shared_bytes = bytes(warps);
  return true;
}

bool fit_tile(Schedule& schedule, Family family, const Plan& plan, std::size_t limit) {
  schedule.family = family;
  schedule.wide = plan.wide;
  return fit(schedule, tuning.tile_warps, limit,
             [&](int warps) { return tile_bytes(warps, plan.width, plan.height, family == Family::two_pass, plan.wide); });
}

int last_channels(const FormatInfo& format) { return format.sets[format.set_count - 1].channels; }

}  // namespace

bool uses_matrix_units(const Plan& plan) {
  const bool two_passes_pay = plan.separable() && std::max(plan.width, plan.height) > tuning.matrix_most_separable;
  return !plan.wide && info(plan.geometry.format).sample_bytes() == 1 && !two_passes_pay;
}

Matrix matrix_weights(const Plan& plan, double error) {
  if (plan.gradient()) return Matrix::gradient;
  const bool integers = std::all_of(plan.weights.begin(), plan.weights.end(), [](double w) { return w == std::rint(w); });
  return error <= (integers ? 0 : matrix_error) ? Matrix::single : Matrix::pair;
}

Result<Schedule> make_schedule(const Plan& plan, Matrix matrix, std::size_t shared_limit) {
  Schedule schedule;
  const int side = small_side(plan);
  bool fits = true;
  if (uses_matrix_units(plan)) {
    schedule.matrix = matrix;
    if (side) {
      schedule.family = Family::matrix_strip;
      schedule.side = side;
      schedule.warps = tuning.strip_warps;
    } else {
      schedule.family = Family::matrix_tile;
      const int parts = matrix == Matrix::pair ? 2 : 1;
      fits = fit(schedule, tuning.matrix_tile_warps, shared_limit,
                 [&](int warps) { return matrix_tile_bytes(warps, plan.width, plan.height, parts); });
    }
  } else if (side && !plan.wide) {
    schedule.family = Family::small;
    schedule.small = plan.gradient() ? Small::gradient : plan.separable() && side > 3 ? Small::two_pass : Small::direct;
    schedule.side = side;
    schedule.warps = tuning.small_warps;
  } else {
    // One pass needs no shared memory for row results, so it can fit where two passes do not.
    fits = (plan.separable() && fit_tile(schedule, Family::two_pass, plan, shared_limit)) ||
           fit_tile(schedule, Family::direct, plan, shared_limit);
  }
  if (!fits) return Status::resource("the CUDA device has too little shared memory for this kernel");
  return schedule;
}

int block_width(const Schedule& schedule, const FormatInfo& format, int channels) {
  return schedule.family == Family::matrix_strip ? strip_width(channels, last_channels(format)) : tile_width;
}

int strip_rows(const FormatInfo& format, const SetRects& rects, int threads) {
  std::int64_t lane_rows = 0;  // one for each row of results of each lane
  for (int i = 0; i < format.set_count; ++i) {
    const Rect& rect = rects[i];
    const int pixels = strip_width(format.sets[i].channels, last_channels(format)) / 32;
    if (!rect.empty()) lane_rows += std::int64_t(divide_up(rect.width, pixels)) * rect.height;
  }
  const std::int64_t lanes = std::int64_t(threads) * strip_waves(last_channels(format));
  return std::clamp(int((lane_rows + lanes - 1) / lanes), tuning.strip_least_rows, tuning.strip_most_rows);
}

Cut cut(const Schedule& schedule, const FormatInfo& format, int channels, const Rect& rect, int strip_rows) {
  Cut cut;
  switch (schedule.family) {
    case Family::small:
      cut.rows = small_rows(channels, schedule.side);
      break;
    case Family::matrix_strip:
      cut.rows = strip_rows;
      break;
    case Family::matrix_tile:
      cut.rows = tuning.matrix_tile_rows;
      break;
    default:
      cut.rows = tile_rows(schedule.wide);
  }
  cut.tiles_x = divide_up(rect.x + rect.width - (rect.x & -4), block_width(schedule, format, channels));
  cut.tiles_y = divide_up(rect.height, schedule.warps * cut.rows);
  return cut;
}

}  // namespace cudavision::convolve
