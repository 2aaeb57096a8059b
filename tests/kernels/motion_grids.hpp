// SPDX-License-Identifier: LGPL-2.1-or-later
// Grids of changed cells for the tests of regions and objects.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/diff/motion.hpp"
#include "kernels/track/object_looks.hpp"
#include "tests/kernels/positions.hpp"

namespace cudavision::test {

/// A grid where cells that are mostly covered by rectangles (in pixels) change. Cells have no looks.
inline diff::CellGrid grid_of(int width, int height, int cell, const std::vector<Rect>& rects) {
  diff::CellGrid grid(width, height, cell);
  for (const auto& [x, y] : positions(grid)) {
    const Rect box = grid.box(x, y);
    for (const Rect& rect : rects) {
      const Rect both = intersection(rect, box);
      if (2 * both.width * both.height >= box.width * box.height)
        grid.changed[grid.at(x, y)] = std::uint32_t(box.width * box.height);
    }
  }
  return grid;
}

inline diff::CellGrid noise(std::mt19937& random, int width, int height, int cell, int rects) {
  std::vector<Rect> list;
  for (int i = 0; i < rects; ++i)
    list.push_back({int(random() % unsigned(width)), int(random() % unsigned(height)), 1 + int(random() % 100),
                    1 + int(random() % 100)});
  return grid_of(width, height, cell, list);
}

/// Gives each cell changed pixels at a random position, in all of its columns.
inline void add_looks(std::mt19937& random, diff::CellGrid& grid) {
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  for (const auto& [x, y] : positions(grid)) {
    const Rect box = grid.box(x, y);
    const int left = below(box.width), top = below(box.height), right = left + below(box.width - left),
              bottom = top + below(box.height - top);
    grid.looks.push_back({std::uint16_t(box.x + left), std::uint16_t(box.y + top), std::uint16_t(box.x + right),
                          std::uint16_t(box.y + bottom), 1, 0, 0, 0, 0, ~std::uint64_t(0)});
  }
}

/// A rectangle that changed, in pixels, and its appearance.
struct Figure {
  Rect rect;
  diff::PixelLooks looks{100, 0, 0};
};

/// A grid of changed pixels. Later figures cover earlier ones.
inline diff::CellGrid painted(int width, int height, int cell, const std::vector<Figure>& figures) {
  diff::CellGrid grid(width, height, cell);
  grid.looks.resize(grid.changed.size());
  std::vector<int> figure(std::size_t(width) * height, -1);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const Rect rect = intersection(figures[i].rect, {0, 0, width, height});
    for (int y = rect.y; y < rect.y + rect.height; ++y)
      std::fill_n(figure.begin() + std::ptrdiff_t(y) * width + rect.x, rect.width, int(i));
  }
  for (const auto& [x, y] : positions(width, height)) {
    const int i = figure[std::size_t(y) * width + x];
    if (i < 0) continue;
    const std::size_t at = grid.at(x / cell, y / cell);
    ++grid.changed[at];
    grid.looks[at].add(x, y, figures[std::size_t(i)].looks, diff::span_of_cell(x / cell, cell, width, 0));
  }
  return grid;
}

/// The looks of all changed pixels of a grid, as the looks of an object with this box.
inline track::ObjectLooks looks_of_object(const diff::CellGrid& grid, const Rect& box) {
  track::ObjectLooksSums sums(box);
  for (const auto& [x, y] : positions(grid))
    if (grid.changed[grid.at(x, y)]) sums.add(grid.looks[grid.at(x, y)], grid.box(x, y, grid.looks[grid.at(x, y)]));
  return sums.result();
}

}  // namespace cudavision::test
