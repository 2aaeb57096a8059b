// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cuda_records.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {
namespace {

/// Whether all counts of a record are 0.
bool counts_nothing(const unsigned char* counts, int slots) {
  std::uint32_t any = 0;
  for (int i = 0; 2 * i < slots; ++i) {  // the kernels write pairs
    std::uint32_t pair;
    std::memcpy(&pair, counts + 4 * i, sizeof pair);
    any |= pair;
  }
  return any == 0;
}

}  // namespace

Found collect_records(const Plan& plan, const Schedule& s, const unsigned char* tile,
                      std::vector<std::uint32_t>& changed) {
  const CellGrid& cells = plan.cells;
  const int cell = plan.params.cell_size;
  const int slots_x = s.frame.slots_x, slots_y = s.frame.slots / slots_x;
  Found found;
  const bool pooled = plan.has_pooled(), waits = plan.keeps_previous() && plan.params.interval > 1;
  if (plan.detects_light() || waits || pooled) {
    Verdict verdict;
    std::memcpy(&verdict, tile + s.verdict_offset(), sizeof verdict);
    found.compared = verdict.compared != 0;
    found.cause = verdict.cause;
    found.moved_x = verdict.moved_x, found.moved_y = verdict.moved_y;
    found.sum = verdict.difference;
  }
  if (!pooled)
    for (std::size_t i = 0; i < s.analysis.count(); ++i) {
      std::uint32_t of_tile;
      std::memcpy(&of_tile, tile + s.sums_offset() + 4 * i, sizeof of_tile);
      found.sum += of_tile;
    }
  for (int tile_y = 0; tile_y < s.frame.y; ++tile_y) {
    const int first_y = Schedule::first_cell(tile_y, s.frame.rows, cell),
              down = std::min(slots_y, cells.height - first_y);
    for (int tile_x = 0; tile_x < s.frame.x; ++tile_x, tile += s.frame.record_bytes) {
      const auto* counts = reinterpret_cast<const std::uint16_t*>(tile);
      if (counts_nothing(tile, s.frame.slots)) continue;  // most tiles of most videos
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
