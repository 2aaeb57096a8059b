// SPDX-License-Identifier: LGPL-2.1-or-later
// Fills the inside of the outline of an object: a pixel also counts as changed if changed pixels lie within `reach`
// pixels of it on all four sides.
//
//          # # #
//        # . . . #        .  filled: a roof that looks like the road
//        # . . . #
//        # #   # #           not filled: nothing changed below
//
// Masks are bits here, in words of 32; the lowest bit is the leftmost pixel. Both backends call filled_word().
#pragma once

#include <cstdint>

#include "kernels/core/host_device.hpp"

namespace cudavision::diff {

inline constexpr int most_reach = 32;  ///< pixels

/// Sets each bit that is set itself or has a set bit among the next `reach` higher bits.
CUDAVISION_HOST_DEVICE inline std::uint64_t spread_down(std::uint64_t bits, int reach) {
  for (int done = 0; done < reach;) {
    const int step = reach - done < done + 1 ? reach - done : done + 1;
    bits |= bits >> step;
    done += step;
  }
  return bits;
}
/// Sets each bit that is set itself or has a set bit among the next `reach` lower bits.
CUDAVISION_HOST_DEVICE inline std::uint64_t spread_up(std::uint64_t bits, int reach) {
  for (int done = 0; done < reach;) {
    const int step = reach - done < done + 1 ? reach - done : done + 1;
    bits |= bits << step;
    done += step;
  }
  return bits;
}

/// The filled word of a row. word(dx, dy): the word dx words and dy rows away; 0 outside the mask. above, below: number
/// of rows of the mask above and below the row.
template <typename Word>
CUDAVISION_HOST_DEVICE std::uint32_t filled_word(int reach, int above, int below, Word word) {
  const std::uint32_t here = word(0, 0), before = word(-1, 0), after = word(1, 0);
  if ((here | before) == 0 || (here | after) == 0) return here;
  const std::uint32_t left = std::uint32_t(spread_up(std::uint64_t(here) << 32 | before, reach) >> 32);
  const std::uint32_t right = std::uint32_t(spread_down(std::uint64_t(after) << 32 | here, reach));
  const std::uint32_t between = left & right & ~here;
  if (between == 0) return here;
  std::uint32_t up = 0, down = 0;
  for (int dy = 1; dy <= reach && dy <= above && (between & ~up); ++dy) up |= word(0, -dy);
  if ((between & up) == 0) return here;
  for (int dy = 1; dy <= reach && dy <= below && (between & up & ~down); ++dy) down |= word(0, dy);
  return here | (between & up & down);
}

}  // namespace cudavision::diff
