// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/blend/blend.hpp"

namespace cudavision::blend {

Fit fit(const Rect& box, int width, int height, double pixel_aspect, SizingPolicy policy) {
  const Rect all{0, 0, width, height};
  if (policy == SizingPolicy::none || box.empty() || all.empty() || !(pixel_aspect > 0)) return {box, all};
  const double aspect = width * pixel_aspect / height, of_box = double(box.width) / box.height;
  if (policy == SizingPolicy::keep_aspect_ratio) {
    // Rounds in the same steps as compositor, so that every pixel has the same position.
    const double rounded = box.width / std::max(std::floor(box.width / aspect + 1e-9), 1.0);
    Rect place = box;
    if (rounded > of_box)
      place.height = std::max(int(box.width / rounded), 1);
    else if (rounded < of_box)
      place.width = std::max(int(box.height * rounded), 1);
    place.x += (box.width - place.width) / 2;
    place.y += (box.height - place.height) / 2;
    return {place, all};
  }
  // Shortens an axis to `ratio` of its length, around its middle.
  const auto part = [](int begin, int length, double ratio) {
    const int less = std::clamp(int(std::lround(length * ratio)), 1, length);
    return std::pair(begin + (length - less) / 2, less);
  };
  Fit fitted{box, all};
  Rect& cut = fitted.crop;
  const double ratio = aspect / of_box;
  if (ratio > 1)
    std::tie(cut.x, cut.width) = part(cut.x, cut.width, 1 / ratio);
  else
    std::tie(cut.y, cut.height) = part(cut.y, cut.height, ratio);
  return fitted;
}

GridShape grid_shape(int count, int columns, int rows) {
  if (columns <= 0) columns = rows > 0 ? divide_up(count, rows) : int(std::ceil(std::sqrt(double(std::max(count, 0)))));
  columns = std::max(columns, 1);
  if (rows <= 0) rows = std::max(divide_up(count, columns), 1);
  return {columns, rows};
}

std::vector<Rect> grid_layout(int count, int wanted_columns, int wanted_rows, int gap, int width, int height) {
  std::vector<Rect> cells(std::size_t(std::max(count, 0)));
  const auto [columns, rows] = grid_shape(count, wanted_columns, wanted_rows);
  const auto side = [](int length, int cells, int gap) {
    return int(std::max<long>((length - long(cells - 1) * gap) / cells, 0));
  };
  gap = std::max(gap, 0);
  const int cell_width = side(width, columns, gap), cell_height = side(height, rows, gap);
  if (cell_width == 0 || cell_height == 0) return cells;
  for (int i = 0; i < count && i / columns < rows; ++i)
    cells[i] = {i % columns * (cell_width + gap), i / columns * (cell_height + gap), cell_width, cell_height};
  return cells;
}

}  // namespace cudavision::blend
