// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_looks.hpp"

#include <algorithm>

namespace cudavision::diff {
namespace {

template <typename T>
CellLooks looks_of_cell(const LooksJob& job, const cv::Mat& mask, CellSpan across, CellSpan down) {
  CellLooks looks{};
  Structure structure{};
  const auto changed = [&mask](int x, int y) { return mask.ptr(y)[x] != 0; };
  for (int y = down.first; y <= down.last; ++y) {
    for (int x = across.first; x <= across.last; ++x) {
      if (changed(x, y)) looks.add(x, y, looks_of<T>(job, x, y), across);
      if (job.structure.frame) job.structure.vote(x, y, changed, structure);
    }
  }
  looks.structure = structure;
  return looks;
}

}  // namespace

void measure_looks(const LooksJob& job, bool bytes, const cv::Mat& mask, const Cells& cells,
                   const std::vector<std::uint32_t>& changed, std::vector<CellLooks>& looks) {
  looks.resize(changed.size());
  const int width = divide_up(cells.frame_width, cells.cell_size);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (changed[i] == 0) continue;
    const CellSpan across = span_of_cell(int(i) % width, cells.cell_size, cells.frame_width, job.log2_scale);
    const CellSpan down = span_of_cell(int(i) / width, cells.cell_size, cells.frame_height, job.log2_scale);
    looks[i] = bytes ? looks_of_cell<std::uint8_t>(job, mask, across, down)
                     : looks_of_cell<std::uint16_t>(job, mask, across, down);
  }
}

}  // namespace cudavision::diff
