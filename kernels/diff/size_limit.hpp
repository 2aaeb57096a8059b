// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides which regions count if there is a largest area. The area in one frame is not enough: an object is small where
// it enters and leaves the frame, and a large change of the light fades in pieces. So regions are followed by the cells
// that they cover.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/diff/motion.hpp"

namespace cudavision::diff {

/// The rules, for a region that
///
/// - is too large: it does not count, and neither does what remains of it where it was: the largest remnant for ten
///   seconds, wherever it goes; others while they are where it was;
/// - is too large because objects that count have met: it does not count, but they do when they part;
/// - touches an edge and is new: it waits, while it touches the edge and has grown within half a second. An edge is an
///   edge of the frame or of a masked area.
class SizeLimit {
 public:
  struct Region {
    int area;            ///< cells
    bool counts = true;  /// result
  };

  /// half_second: in frames.
  explicit SizeLimit(unsigned half_second) : half_second_(half_second) {}

  /// Decides which regions of the next frame count. `runs`: their cells; CellRun::region is the index in `regions`.
  void advance(const CellGrid& grid, const std::vector<CellRun>& runs, int max_area, std::vector<Region>& regions);
  /// Forgets all regions, because the next frame shows another scene.
  void reset();

 private:
  enum class State { waits, counts, too_large };
  /// A region that is followed.
  struct Thing {
    State state;
    int largest;                    // area, in cells
    std::uint64_t grew, seen;       // the last frames in which it became larger, and in which it was seen
    std::uint64_t was_too_large{};  // the last frame in which it was
  };
  /// The thing that covered a cell last. Ids begin at 1.
  struct Mark {
    std::uint64_t id = 0, frame = 0;
  };
  using Overlap = std::map<std::uint64_t, int>;  // cells, by the id of a thing

  Thing* thing_at(const Mark& mark);
  std::uint64_t most_of(const Overlap& overlap, bool too_large) const;
  bool is_meeting(const Overlap& overlap, int area) const;
  void forget();

  unsigned half_second_;
  std::uint64_t frame_ = 0, last_id_ = 0;
  std::map<std::uint64_t, Thing> things_;
  std::vector<Mark> marks_;  // for each cell
};

}  // namespace cudavision::diff
