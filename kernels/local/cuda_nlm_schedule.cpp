// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/cuda_nlm_schedule.hpp"

#include <algorithm>

namespace cudavision::local {
namespace {

template <int reach>
void set_size(NlmBlock& block, int search_x, int search_y) {
  using Shape = NlmShape<reach>;
  block.reach = reach;
  block.width = block.warps_x * Shape::width;
  block.height = block.warps_y * Shape::height;
  // Four rows of eight lanes use all 32 banks if adjacent rows are 8 or 24 words apart.
  block.pitch = divide_up(block.width + 2 * (reach + search_x) - 4, 8) * 8 + 4;
  block.shared_bytes = std::size_t(block.pitch) * (block.height + 2 * (reach + search_y)) * 4;
}

NlmBlock sized(int reach, int warps_x, int warps_y, int search_x, int search_y) {
  NlmBlock block;
  block.warps_x = warps_x, block.warps_y = warps_y;
  switch (reach) {
    case 1:
      set_size<1>(block, search_x, search_y);
      break;
    case 4:
      set_size<4>(block, search_x, search_y);
      break;
    case 8:
      set_size<8>(block, search_x, search_y);
      break;
    default:
      set_size<16>(block, search_x, search_y);
  }
  return block;
}

}  // namespace

NlmBlock make_nlm_block(int radius_x, int radius_y, int search_x, int search_y, std::size_t shared_limit) {
  const int radius = std::max(radius_x, radius_y);
  const int reach = radius <= 1 ? 1 : radius <= 4 ? 4 : radius <= 8 ? 8 : 16;
  for (int warps_x = tuning.nlm_warps_x; warps_x > 0; --warps_x)
    for (int warps_y = tuning.nlm_warps_y; warps_y > 0; --warps_y) {
      const NlmBlock block = sized(reach, warps_x, warps_y, search_x, search_y);
      if (block.shared_bytes <= shared_limit) return block;
    }
  return {};
}

NlmGrid nlm_grid(const NlmBlock& block, const Rect& rect) {
  const int first_x = rect.x / block.width, first_y = rect.y / block.height;
  return {first_x, first_y, divide_up(rect.x + rect.width, block.width) - first_x,
          divide_up(rect.y + rect.height, block.height) - first_y};
}

int nlm_span(Samples samples, int search) {
  const int offsets = 2 * search + 1, most = samples == Samples::bits8 ? tuning.nlm_half_span : tuning.nlm_float_span;
  return divide_up(offsets, divide_up(offsets, most));
}

}  // namespace cudavision::local
