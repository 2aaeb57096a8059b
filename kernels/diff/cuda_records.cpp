// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cuda_records.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

FrameCounts collect_records(const Plan& plan, const Schedule& s, const unsigned char* tile, std::uint32_t stamp,
                            std::vector<std::uint32_t>& changed) {
  const CellGrid& cells = plan.cells;
  const int cell = plan.params.cell_size;
  const int slots_x = s.frame.slots_x, slots_y = s.frame.slots / slots_x;
  Verdict verdict;
  std::memcpy(&verdict, tile + s.verdict_offset(), sizeof verdict);
  FrameCounts found{verdict.compared != 0, verdict.cause, verdict.moved_x, verdict.moved_y, verdict.difference};
  for (int tile_y = 0; tile_y < s.frame.y; ++tile_y) {
    const int first_y = Schedule::first_cell(tile_y, s.frame.rows, cell),
              down = std::min(slots_y, cells.height - first_y);
    for (int tile_x = 0; tile_x < s.frame.x; ++tile_x, tile += s.frame.record_bytes) {
      std::uint32_t stored;
      std::memcpy(&stored, tile, sizeof stored);
      if (stored != stamp) continue;  // nothing changed: most tiles of most videos
      const auto* counts = reinterpret_cast<const std::uint16_t*>(tile + sizeof stored);
      const int first_x = s.frame.first_x[std::size_t(tile_x)], across = std::min(slots_x, cells.width - first_x);
      for (int y = 0; y < down; ++y) {
        std::uint32_t* const row = &changed[std::size_t(first_y + y) * cells.width + first_x];
        for (int x = 0; x < across; ++x) {
          row[x] += counts[y * slots_x + x];
          found.changed += counts[y * slots_x + x];
        }
      }
    }
  }
  return found;
}

}  // namespace cudavision::diff
