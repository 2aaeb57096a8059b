// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/convolve/cuda_schedule.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::convolve {
namespace {

/// If the error of a result, in sample values, is at most this, each real weight is one half-precision number (11
/// bits). A kernel whose absolute weights sum to 4 has about this error. Above this error, each weight is two numbers
/// (22 bits), which take twice the time.
constexpr double matrix_error = 0.125;

/// The side (3, 5 or 7) of the square around the anchor that holds the kernel; 0: the kernel is larger.
int small_side(const Plan& plan) {
  const int reach =
      std::max({plan.anchor_x, plan.width - 1 - plan.anchor_x, plan.anchor_y, plan.height - 1 - plan.anchor_y});
  return reach <= tuning.small_reach ? 2 * std::max(reach, 1) + 1 : 0;
}

/// Halves the number of warps of a block until bytes(warps) of shared memory fit. Returns false if no warp fits.
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
  return fit(schedule, tuning.tile_warps, limit, [&](int warps) {
    return tile_bytes(warps, plan.width, plan.height, family == Family::two_pass, plan.wide);
  });
}

int last_channels(const FormatInfo& format) { return format.sets[format.set_count - 1].channels; }

/// The number of blocks of all sets of a frame.
int count_blocks(const Schedule& schedule, const FormatInfo& format, const SetRects& rects, StripHeight height) {
  int count = 0;
  for (int i = 0; i < format.set_count; ++i)
    if (!rects[i].empty()) count += cut(schedule, format, format.sets[i].channels, rects[i], height).blocks();
  return count;
}

/// The bytes of shared memory of a block of Family::matrix_tile.
std::size_t matrix_tile_bytes(const Plan& plan, int warps, int parts, int buffers) {
  const FormatInfo& format = info(plan.geometry.format);
  const int skew = matrix_skew(plan.anchor_x), halves = matrix_half_steps(plan.width, skew);
  int most = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const int channels = format.sets[i].channels, lead = -(plan.anchor_x + skew) * channels & 15;
    const int rows = warps * matrix_tile_rows(channels) + plan.height - 1;
    most = std::max(most, rows * matrix_tile_pitch(halves, lead, channels));
  }
  return std::size_t(matrix_weight_bytes(plan.height, halves, parts)) + std::size_t(buffers) * most;
}

}  // namespace

bool uses_matrix_units(const Plan& plan) {
  const bool two_passes_pay = plan.separable() && std::max(plan.width, plan.height) > tuning.matrix_most_separable;
  return !plan.wide && info(plan.geometry.format).sample_bytes() == 1 && !two_passes_pay;
}

Matrix matrix_weights(const Plan& plan, double error) {
  if (plan.gradient()) return Matrix::gradient;
  const bool integers =
      std::all_of(plan.weights.begin(), plan.weights.end(), [](double w) { return w == std::rint(w); });
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
      schedule.shared_bytes = strip_bytes(info(plan.geometry.format));
      fits = schedule.shared_bytes <= shared_limit;
    } else {
      schedule.family = Family::matrix_tile;
      const int parts = matrix == Matrix::pair ? 2 : 1;
      const auto bytes = [&](int warps) { return matrix_tile_bytes(plan, warps, parts, schedule.buffers); };
      schedule.buffers = 2;
      // Two blocks should share a multiprocessor.
      if (2 * bytes(tuning.matrix_tile_warps) > shared_limit) schedule.buffers = 1;
      fits = fit(schedule, tuning.matrix_tile_warps, shared_limit, bytes);
    }
  } else if (side && !plan.wide) {
    schedule.family = Family::small;
    schedule.small = plan.gradient()                ? Small::gradient
                     : plan.separable() && side > 3 ? Small::rows_then_columns
                                                    : Small::direct;
    schedule.side = side;
    schedule.warps = tuning.small_warps;
  } else {
    // One pass needs no shared memory for row results, so it may fit even if two passes do not.
    fits = (plan.separable() && fit_tile(schedule, Family::two_pass, plan, shared_limit)) ||
           fit_tile(schedule, Family::direct, plan, shared_limit);
  }
  if (!fits) return Status::resource("the CUDA device has too little shared memory for this kernel");
  return schedule;
}

int block_width(const Schedule& schedule) { return schedule.family == Family::matrix_strip ? strip_width : tile_width; }
int block_alignment(const Schedule& schedule) {
  return schedule.family == Family::matrix_strip || schedule.family == Family::matrix_tile ? 16 : 4;
}

std::size_t strip_bytes(const FormatInfo& format) {
  constexpr int sizes[] = {StripLayout<1>::size, StripLayout<2>::size, StripLayout<3>::size, StripLayout<4>::size};
  int most = 0;
  for (int i = 0; i < format.set_count; ++i) most = std::max(most, sizes[format.sets[i].channels - 1]);
  return std::size_t(most);
}

StripHeight strip_height(const Schedule& schedule, const FormatInfo& format, const SetRects& rects, int blocks) {
  const int more = schedule.side - 1;  // rows of samples minus rows of results
  const int step = strip_group(last_channels(format));
  const auto count_of = [&](StripHeight height) { return count_blocks(schedule, format, rects, height); };
  const bool differ = format.sets[0].channels < last_channels(format);
  StripHeight best;
  int least = -1;
  for (int steps = 1; least < 0 || steps * step <= tuning.strip_most_rows; ++steps) {
    const int rows = steps * step - more;
    if (rows <= 0) continue;
    bool at_once = false;
    // A row with more channels takes longer, so blocks of such a set have fewer rows.
    for (int first : {2 * steps, (3 * steps + 1) / 2}) {
      StripHeight height{rows, differ ? first * step - more : rows, true};
      int count = count_of(height);
      if (count > blocks) height.short_edges = false, count = count_of(height);
      const int first_rows = (height.first_rows + more) * tuning.strip_first_percent / 100;
      const int samples = std::max(rows + more, differ ? first_rows : 0) * last_channels(format);
      const int cost = divide_up(count, blocks) * (samples + tuning.strip_start_rows);
      if (least < 0 || cost < least) least = cost, best = height;
      at_once = at_once || count <= blocks;
      if (!differ) break;
    }
    if (at_once) break;
  }
  return best;
}

StripHeight tiles_height(const Schedule& schedule, const FormatInfo& format, const SetRects& rects, int blocks) {
  StripHeight best;
  double least = -1;
  for (int tiles = 1; tiles <= tuning.matrix_tile_most; ++tiles) {
    const int count = count_blocks(schedule, format, rects, {tiles});
    const double cost = divide_up(count, blocks) * (tiles + tuning.matrix_tile_start);
    if (least < 0 || cost < least) least = cost, best.rows = tiles;
  }
  return best;
}

Cut cut(const Schedule& schedule, const FormatInfo& format, int channels, const Rect& rect, StripHeight strip) {
  Cut cut;
  switch (schedule.family) {
    case Family::small:
      cut.rows = small_rows(channels, schedule.side);
      break;
    case Family::matrix_strip:
      cut.rows = channels < last_channels(format) ? strip.first_rows : strip.rows;
      break;
    case Family::matrix_tile:
      cut.rows = matrix_tile_rows(channels) * strip.rows;
      break;
    case Family::two_pass:
    case Family::direct:
      cut.rows = tile_rows(schedule.wide);
  }
  cut.tiles_x = divide_up(rect.x + rect.width - (rect.x & -block_alignment(schedule)), block_width(schedule));
  const bool strips = schedule.family == Family::matrix_strip;
  if (strips) {
    const int more = schedule.side - 1, step = strip_group(last_channels(format)), rows = cut.rows + more;
    cut.edges = std::min(cut.tiles_x, 2);
    cut.edge_rows = cut.rows;
    if (strip.short_edges || rows >= tuning.strip_edge_rows)
      cut.edge_rows = std::max(rows / tuning.strip_edge_share / step, more / step + 1) * step - more;
    cut.edge_tiles_y = divide_up(rect.height, cut.edge_rows);
  }
  cut.tiles_y = divide_up(rect.height, (strips ? 1 : schedule.warps) * cut.rows);
  return cut;
}

}  // namespace cudavision::convolve
