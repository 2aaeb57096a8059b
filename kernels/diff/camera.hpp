// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides why many pixels changed at once: the camera was moved, the light was switched, or another scene began.
// Objects change the edges of the picture in a few places. These three causes change them everywhere or nowhere.
//
//                    edges of the picture         changed pixels
//  objects           new in a few sectors         have new edges
//  light             where they were              have the edges that were there: switched lamps, infrared, exposure
//  moved             new in most sectors, but the same a few pixels away
//  scene             new in most sectors
//
// The decision compares two luma pictures of Reference::adaptive, at the size of the analysis: the frame and the
// expected luma. The shift of the camera is found in two steps. First, sums of edges along columns and rows (profiles)
// propose the best shifts. Then the shift with the largest correlation of gradients is taken, if the correlation is
// large enough. A frame is examined only if many pixels changed. The same code runs on both backends, with the threads
// of a Team. All numbers are integers, except correlations, for which every operation is rounded.
// Profiles: S. Ratakonda, Real-time digital video stabilization for multi-media applications, ISCAS 1998.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/diff/diff.hpp"
#include "kernels/diff/structure.hpp"

namespace cudavision::diff::camera {

inline constexpr int sectors_x = 8, sectors_y = 6, sectors = sectors_x * sectors_y;
/// The sector of a pixel of the analysis.
CUDAVISION_HOST_DEVICE inline int sector_of(int x, int y, int width, int height) {
  return y * sectors_y / height * sectors_x + x * sectors_x / width;
}
/// The smallest size of a picture that is examined, in pixels of the analysis.
inline constexpr int least_width = 64, least_height = 48;
/// The maximum number of pixels that are compared for a correlation, and for the counts of sectors.
inline constexpr int correlated_pixels = 1 << 14, counted_pixels = 1 << 15;

/// What is remembered from earlier frames. All 0 when the reference begins.
struct Watch {
  std::uint32_t above;   ///< number of changed pixels in the last frame
  std::uint32_t moving;  ///< number of further frames without a shift until the camera rests; 0: the camera rests
};

/// Decides whether a frame is examined, and whether the reference restarts.
struct Rule {
  unsigned long long number;  ///< number of the frame
  std::uint32_t limit;        ///< pixels; the reference restarts if more changed. ~0: never
  std::uint32_t pixels;       ///< number of counted pixels
  unsigned age;               ///< minimum age of the reference, in frames
};

/// Memory of look(), which the team shares.
struct Scratch {
  /// Numbers of pixels in each sector: the expected edge is there; it is not there; changed; changed with the expected
  /// edge; changed with another edge; certainly covered by an object; all.
  std::uint32_t same[sectors], other[sectors], changed[sectors], same_changed[sectors], other_changed[sectors],
      held[sectors], seen[sectors];
  std::uint32_t* profiles;  ///< profile_numbers() numbers
};
/// The number of values in two profiles across, two profiles down, and the misfits of shifts.
CUDAVISION_HOST_DEVICE constexpr std::size_t profile_numbers(int width, int height) {
  return 3 * (std::size_t(width) + std::size_t(height));
}

/// Whether a frame of a resting camera is examined: always above the limit; otherwise if at least 1 % of the pixels
/// changed, and clearly more than in the last frame. Every 8th frame needs only the 1 %.
CUDAVISION_HOST_DEVICE inline bool suspects(const Watch& watch, const Rule& rule, std::uint32_t above) {
  constexpr unsigned period = 8;  // frames
  if (above > rule.limit) return true;
  if (rule.limit == ~0u || above < rule.pixels / 100) return false;
  return rule.number % period == 0 || above > watch.above + watch.above / 2 + rule.pixels / 50;
}

/// A sum of three numbers.
struct Sums {
  long long both, frame, expected;
};

/// The correlation, −1 to 1, of the gradients of the frame with the expected gradients at a shift of (dx, dy).
template <typename Team>
CUDAVISION_HOST_DEVICE double correlation(Team& team, const StructureJob& p, int dx, int dy) {
  const int left = 1 + (dx < 0 ? -dx : 0), right = p.width - 1 - (dx > 0 ? dx : 0);
  const int top = 1 + (dy < 0 ? -dy : 0), bottom = p.height - 1 - (dy > 0 ? dy : 0);
  const int across = right - left, down = bottom - top;
  if (across < p.width / 2 || down < p.height / 2) return -1;
  const int step = 1 + across * down / correlated_pixels;
  Sums sums{0, 0, 0};
  team.each(across, (down + step - 1) / step, [&](int column, int row) {
    const int x = left + column, y = top + row * step;
    const auto limited = [](int value) { return value < -64 ? -64 : value > 64 ? 64 : value; };
    const Gradient a = p.frame_gradient(x, y), b = p.expected_gradient(x + dx, y + dy);
    const int ax = limited(a.x), ay = limited(a.y), bx = limited(b.x), by = limited(b.y);
    sums.both += ax * bx + ay * by, sums.frame += ax * ax + ay * ay, sums.expected += bx * bx + by * by;
  });
  sums = team.sum(sums);
  if (sums.frame == 0 || sums.expected == 0) return -1;
  return double(sums.both) / std::sqrt(double(sums.frame) * double(sums.expected));
}

/// How badly two profiles of `size` numbers match at a shift: the mean of their differences.
CUDAVISION_HOST_DEVICE inline std::uint32_t misfit(const std::uint32_t* frame, const std::uint32_t* expected, int size,
                                                   int shift) {
  const int begin = shift < 0 ? -shift : 0, end = shift < 0 ? size : size - shift;
  unsigned long long sum = 0;
  for (int i = begin; i < end; ++i) {
    const std::uint32_t a = frame[i], b = expected[i + shift];
    sum += a < b ? b - a : a - b;
  }
  return std::uint32_t(16 * sum / (unsigned long long)(end - begin));
}
/// Shift 0, and the shifts of a profile that match best, among those that match better than their neighbours.
struct Candidates {
  static constexpr int most = 4;
  int shifts[most] = {};  ///< the first is 0
  int count = 1;
};
CUDAVISION_HOST_DEVICE inline Candidates best_of(const std::uint32_t* misfits, int reach) {
  Candidates best;
  const auto at = [&](int shift) { return misfits[shift + reach]; };
  for (; best.count < Candidates::most; ++best.count) {
    int found = 0;
    for (int shift = 1 - reach; shift < reach; ++shift) {
      if (at(shift) > at(shift - 1) || at(shift) > at(shift + 1)) continue;
      bool taken = false;
      for (int i = 0; i < best.count; ++i) taken = taken || best.shifts[i] == shift;
      if (!taken && (found == 0 || at(shift) < at(found))) found = shift;
    }
    if (found == 0) break;
    best.shifts[best.count] = found;
  }
  return best;
}

/// The best shifts across or down. `profiles`: the profile of the frame, the expected profile, and room for misfits.
template <typename Team>
CUDAVISION_HOST_DEVICE Candidates candidates(Team& team, std::uint32_t* profiles, int size) {
  const int reach = size / 4;
  team.each(2 * reach + 1, 1,
            [&](int i, int) { profiles[2 * size + i] = misfit(profiles, profiles + size, size, i - reach); });
  team.wait();
  return best_of(profiles + 2 * size, reach);
}

/// The shift of a picture, and the correlation that it gives.
struct Shift {
  double correlation = -1;
  int x = 0, y = 0;
};

/// Finds the shift of the picture: the content of the frame at (x, y) was expected at (x + shift.x, y + shift.y).
template <typename Team>
CUDAVISION_HOST_DEVICE Shift find_shift(Team& team, const StructureJob& p, std::uint32_t* profiles) {
  const auto size = [](int value) { return std::uint32_t(value < 0 ? -value : value); };
  std::uint32_t *const across = profiles, *const down = profiles + 3 * p.width;
  team.each(p.width, 1, [&](int x, int) {
    std::uint32_t frame = 0, expected = 0;
    if (x > 0 && x + 1 < p.width)
      for (int y = 1; y + 1 < p.height; ++y)
        frame += size(p.frame_gradient(x, y).x), expected += size(p.expected_gradient(x, y).x);
    across[x] = frame, across[p.width + x] = expected;
  });
  team.each(p.height, 1, [&](int y, int) {
    std::uint32_t frame = 0, expected = 0;
    if (y > 0 && y + 1 < p.height)
      for (int x = 1; x + 1 < p.width; ++x)
        frame += size(p.frame_gradient(x, y).y), expected += size(p.expected_gradient(x, y).y);
    down[y] = frame, down[p.height + y] = expected;
  });
  team.wait();
  const Candidates of_x = candidates(team, across, p.width), of_y = candidates(team, down, p.height);
  Shift best;
  const auto consider = [&](int x, int y) {
    const double found = correlation(team, p, x, y);
    if (found > best.correlation) best = {found, x, y};
  };
  for (int i = 0; i < of_x.count; ++i)
    for (int j = 0; j < of_y.count; ++j) consider(of_x.shifts[i], of_y.shifts[j]);
  for (int round = 0; round < 6; ++round) {  // climbs to the maximum
    const Shift from = best;
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x)
        if (x != 0 || y != 0) consider(from.x + x, from.y + y);
    if (best.x == from.x && best.y == from.y) break;
  }
  return best;
}

/// Whether the frame has the expected edge, perhaps with another contrast: within 45° and a factor of four.
CUDAVISION_HOST_DEVICE inline bool is_same_edge(const Gradient& a, const Gradient& b) {
  const long long both = (long long)a.x * b.x + (long long)a.y * b.y,
                  of_a = (long long)a.x * a.x + (long long)a.y * a.y,
                  of_b = (long long)b.x * b.x + (long long)b.y * b.y;
  return both > 0 && 2 * both * both >= of_a * of_b && 16 * of_a >= of_b && 16 * of_b >= of_a;
}

/// The number of bits that are set.
CUDAVISION_HOST_DEVICE inline int bits_in(unsigned bits) {
  int count = 0;
  for (; bits; bits &= bits - 1) ++count;
  return count;
}

/// The findings for a frame in which many pixels changed.
struct Decision {
  Cause cause = Cause::none;
  /// For Cause::moved: the shift of the picture to the right and down, in pixels of the analysis.
  int x = 0, y = 0;
  bool begins = false;  ///< whether the reference restarts
  /// Sectors in which the reference does not restart, because objects would be lost, one bit each: sectors where most
  /// edges of changed pixels are new, and those in `held`. Set only for Cause::light with edges that stay.
  std::uint64_t kept = 0;
  /// Sectors with a changed pixel where Learning::hold applies. In other kept sectors, the background is in doubt.
  std::uint64_t held = 0;

  CUDAVISION_HOST_DEVICE bool shifted() const { return x != 0 || y != 0; }
};

/// Examines a frame. moving: whether the camera was moving. changed(x, y): whether a pixel of the analysis changed.
/// held(x, y): whether an object is certainly there. The whole team calls this function, and all threads get the same
/// result.
template <typename Team, typename Changed, typename Held>
CUDAVISION_HOST_DEVICE Decision look(Team& team, const StructureJob& p, Scratch& scratch, bool moving, Changed changed,
                                     Held held) {
  team.each(sectors, 1, [&](int i, int) {
    scratch.same[i] = scratch.other[i] = scratch.held[i] = scratch.seen[i] = 0;
    scratch.changed[i] = scratch.same_changed[i] = scratch.other_changed[i] = 0;
  });
  team.wait();
  const int across = p.width - 2, down = p.height - 2, step = 1 + across * down / counted_pixels;
  team.each(across, (down + step - 1) / step, [&](int column, int row) {
    const int x = 1 + column, y = 1 + row * step;
    const int sector = sector_of(x, y, p.width, p.height);
    const Gradient a = p.frame_gradient(x, y), b = p.expected_gradient(x, y);
    const int size = a.size(), expected = b.size(), most = size > expected ? size : expected;
    const bool here = changed(x, y);
    team.add(scratch.seen[sector], 1);
    if (here) team.add(scratch.changed[sector], 1);
    if (here && held(x, y)) team.add(scratch.held[sector], 1);
    if (most < StructureJob::least_size) return;
    const bool same = 2 * Gradient{a.x - b.x, a.y - b.y}.size() <= most;
    if (here) team.add(is_same_edge(a, b) ? scratch.same_changed[sector] : scratch.other_changed[sector], 1);
    // Objects add edges. Only missing expected edges describe the whole picture.
    if (expected >= StructureJob::least_size) team.add(same ? scratch.same[sector] : scratch.other[sector], 1);
  });
  team.wait();
  int structured = 0, broken = 0, touched = 0;
  long long same = 0, other = 0, same_changed = 0, other_changed = 0, all_changed = 0, seen = 0;
  std::uint64_t objects = 0, held_sectors = 0;
  int held_count = 0;
  unsigned columns = 0, rows = 0;  // columns and rows with edges, one bit each
  for (int i = 0; i < sectors; ++i) {
    const std::uint32_t edges = scratch.same[i] + scratch.other[i];
    same += scratch.same[i], other += scratch.other[i], seen += scratch.seen[i];
    same_changed += scratch.same_changed[i], other_changed += scratch.other_changed[i];
    all_changed += scratch.changed[i];
    if (scratch.held[i] > 0) held_sectors |= std::uint64_t(1) << i, ++held_count;
    if (scratch.other_changed[i] > scratch.same_changed[i]) objects |= std::uint64_t(1) << i;
    touched += 16 * scratch.changed[i] >= scratch.seen[i];
    if (32 * edges < scratch.seen[i]) continue;
    ++structured;
    columns |= 1u << i % sectors_x, rows |= 1u << i / sectors_x;
    broken += scratch.other[i] > scratch.same[i];
  }
  // If all edges are in one place, they may belong to an object that was present when the reference began.
  const bool spread = bits_in(columns) >= 5 && bits_in(rows) >= 4;
  const bool many_changed = 16 * all_changed >= seen && 3 * touched >= sectors;
  if (spread && structured >= 6 && (moving || 3 * broken >= structured || 5 * other >= same)) {
    const double here = correlation(team, p, 0, 0);
    const Shift shift = find_shift(team, p, scratch.profiles);
    const bool better = shift.correlation >= here + 0.1 || 1 - shift.correlation <= 0.7 * (1 - here);
    if (better && shift.correlation >= 0.4 && (shift.x != 0 || shift.y != 0))
      return {Cause::moved, -shift.x, -shift.y, true};
    if (here < 0.4 && structured >= 8 && 5 * broken >= 3 * structured && many_changed)
      return {Cause::scene, 0, 0, true};
  }
  // If few pixels changed, very few of them may have other edges.
  const int factor = many_changed ? 3 : 12;
  const bool edges_stay = same_changed >= 10 && 2 * same_changed >= factor * other_changed;
  // Light is measured outside held objects. If held objects are nearly everywhere, they are ignored.
  if (2 * held_count > sectors) held_sectors = 0;
  if (edges_stay && 8 * touched >= sectors) return {Cause::light, 0, 0, true, objects | held_sectors, held_sectors};
  return {};
}

/// Decides why many pixels changed. The reference restarts unless the cause is none. `above`: number of changed pixels
/// in the frame. `began`: the number of the frame with which the reference began. look() describes the other
/// parameters.
template <typename Team, typename Changed, typename Held>
CUDAVISION_HOST_DEVICE Decision decide(Team& team, Watch& watch, unsigned long long began, const Rule& rule,
                                       std::uint32_t above, const StructureJob& p, Scratch& scratch, Changed changed,
                                       Held held) {
  constexpr std::uint32_t rests = 5;  // frames without a shift after which the camera rests
  const Watch before = watch;
  team.wait();
  const bool moving = before.moving > 0;
  Decision found;
  std::uint32_t left = 0;
  if (moving || (rule.number >= began + rule.age && suspects(before, rule, above))) {
    if (p.width >= least_width && p.height >= least_height) found = look(team, p, scratch, moving, changed, held);
    if (found.shifted())
      left = rests;
    else if (moving)  // the reference also restarts with the last frame of a movement, because a shift of less than a
                      // pixel may remain
      left = before.moving - 1, found = {Cause::moved, 0, 0, found.begins || left == 0};
    else if (found.cause == Cause::none && above > rule.limit)
      found = {Cause::light, 0, 0, true};
  }
  if (team.first()) watch = {found.cause == Cause::none ? above : 0, left};
  return found;
}

}  // namespace cudavision::diff::camera
