// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/cuda_mosaic_schedule.hpp"

#include <algorithm>

namespace cudavision::local {
namespace {

MosaicAxis axis_x(const Geometry& geometry, const MosaicPart& part, const ChannelSet& set) {
  return {part.box.x, part.side, set.shift_x, geometry.grid(set).width};
}
MosaicAxis axis_y(const Geometry& geometry, const MosaicPart& part, const ChannelSet& set) {
  return {part.box.y, part.side, set.shift_y, geometry.grid(set).height};
}

/// The number of cells from the first sample to the last one.
int cells(const MosaicAxis& axis, int begin, int end) {
  return end > begin ? axis.cell(end - 1) - axis.cell(begin) + 1 : 0;
}

}  // namespace

MosaicPart schedule_mosaic(const Geometry& geometry, const Rect& box, const SetRects& rects, int side,
                           int multiprocessors, int parts) {
  const FormatInfo& format = info(geometry.format);
  MosaicPart part;
  part.box = box;
  part.side = side;
  for (int i = 0; i < format.color_sets(); ++i) {
    const ChannelSet& set = format.sets[i];
    const Rect& rect = rects[i];
    if (rect.empty()) continue;
    MosaicGrid& grid = part.sets[i];
    grid.x0 = std::uint16_t(rect.x);
    grid.y0 = std::uint16_t(rect.y);
    grid.x1 = std::uint16_t(rect.x + rect.width);
    grid.y1 = std::uint16_t(rect.y + rect.height);
    const MosaicAxis x = axis_x(geometry, part, set), y = axis_y(geometry, part, set);
    const int pixel = set.channels * format.sample_bytes();
    const int cell_bytes = std::min(subsampled(side, set.shift_x), x.length) * pixel;
    if (is_apart(part)) {
      grid.pieces_x = std::uint16_t(divide_up(cell_bytes, mosaic_piece / pixel * pixel));
      grid.pieces_y = std::uint16_t(divide_up(std::min(subsampled(side, set.shift_y), y.length), mosaic_piece_rows));
      continue;
    }
    const int columns = cells(x, grid.x0, grid.x1), rows = cells(y, grid.y0, grid.y1);
    const int most = std::clamp(mosaic_piece / cell_bytes, 1, columns),
              least = std::min(divide_up(tuning.mosaic_least_row, cell_bytes), most);
    const int wanted = divide_up(multiprocessors * tuning.mosaic_blocks, parts * rows);  // blocks for a row of cells
    grid.span = std::uint16_t(std::clamp(divide_up(columns, wanted), least, most));
  }
  return part;
}

int mosaic_cells(const Geometry& geometry, const MosaicPart& part, int index) {
  const ChannelSet& set = info(geometry.format).sets[index];
  const MosaicGrid& grid = part.sets[index];
  return cells(axis_x(geometry, part, set), grid.x0, grid.x1) * cells(axis_y(geometry, part, set), grid.y0, grid.y1);
}

int mosaic_blocks(const Geometry& geometry, const MosaicPart& part, int index) {
  const ChannelSet& set = info(geometry.format).sets[index];
  const MosaicGrid& grid = part.sets[index];
  return divide_up(cells(axis_x(geometry, part, set), grid.x0, grid.x1), grid.span) * grid.pieces_x *
         cells(axis_y(geometry, part, set), grid.y0, grid.y1) * grid.pieces_y;
}

std::size_t mosaic_sums(const Geometry& geometry) {
  const FormatInfo& format = info(geometry.format);
  std::size_t channels = 0;
  for (int i = 0; i < format.color_sets(); ++i) channels += format.sets[i].channels;
  // Two additional cells are for cells that begin or end outside the frame.
  return std::size_t(geometry.width / mosaic_fused_side + 2) * (geometry.height / mosaic_fused_side + 2) * channels *
         sizeof(std::uint64_t);
}

int find_layers(const std::vector<Rect>& boxes, std::vector<int>& layers) {
  layers.assign(boxes.size(), 0);
  int most = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k)
      if (layers[k] >= layers[i] && !intersection(boxes[i], boxes[k]).empty()) layers[i] = layers[k] + 1;
    most = std::max(most, layers[i]);
  }
  return most;
}

}  // namespace cudavision::local
