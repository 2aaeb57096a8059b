// SPDX-License-Identifier: LGPL-2.1-or-later
// How non-local means are divided into blocks: plain C++, without CUDA. Units: samples of a set's grid.
#pragma once

#include <cstddef>

#include "kernels/core/image.hpp"
#include "kernels/local/cuda_tuning.hpp"

namespace cudavision::local {

/// The depths of samples that kernels distinguish.
enum class Samples { bits8, bits10, bits16 };

/// The work of a warp for patches with a radius of up to `reach`: two groups of results, side by side. The matrix units
/// use 16 × 16 samples for a group. For reach 1, the results are the inner 14 × 14 samples. For a larger reach, there
/// is a halo of samples around both groups.
template <int reach>
struct NlmShape {
  static_assert(reach == 1 || reach == 4 || reach == 8 || reach == 16);
  static constexpr int inset = reach == 1 ? 1 : 0;  ///< samples at each edge of a group that are not results
  static constexpr int halo = reach == 1 ? 0 : reach;
  static constexpr int group_width = 16 - 2 * inset;
  static constexpr int width = 2 * group_width, height = 16 - 2 * inset;
};

/// The number of blocks whose registers must fit in a multiprocessor.
constexpr int nlm_min_blocks(Samples samples, int reach) {
  return tuning.nlm_min_blocks[int(samples)][reach == 1 ? 0 : reach == 4 ? 1 : reach == 8 ? 2 : 3];
}

/// The block of a channel set.
struct NlmBlock {
  int reach = 0;                 ///< 1, 4, 8 or 16: the smallest that covers both radii
  int warps_x = 0, warps_y = 0;  ///< warps across and down, each with an NlmShape; 0: not even one warp fits
  int width = 0, height = 0;     ///< results across and down
  int pitch = 0;  ///< words of a row of the shared picture, chosen so that no two lanes of a warp use the same bank
  std::size_t shared_bytes = 0;
};
/// The largest block that needs at most `shared_limit` bytes and is at most as large as the tuning allows.
NlmBlock make_nlm_block(int radius_x, int radius_y, int search_x, int search_y, std::size_t shared_limit);

/// The blocks that cover a rectangle. They lie on a grid that begins at the corner of the frame. So the result of a
/// sample does not depend on the rectangle, not even in the last bit.
struct NlmGrid {
  int first_x = 0, first_y = 0;  ///< the first block, counted from the corner of the frame
  int blocks_x = 0, blocks_y = 0;
};
NlmGrid nlm_grid(const NlmBlock& block, const Rect& rect);

/// The number of offsets that are summed before the sums are added to the totals: a part of a row of 2 · search + 1
/// offsets. All parts are as equal as possible.
int nlm_span(Samples samples, int search);

}  // namespace cudavision::local
