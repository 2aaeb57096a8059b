// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/region.hpp"

#include <algorithm>

namespace cudavision {
namespace {

using Spans = std::vector<std::pair<int, int>>;  ///< ranges [begin, end) of a row, sorted, with gaps between them

/// The spans of row y that the rectangles cover; `outside`: the spans of a row of `width` that they do not cover. All rows up to
/// the next edge of a rectangle are alike.
Spans spans_at(const std::vector<Rect>& rects, int y, int width, bool outside) {
  Spans covered;
  for (const Rect& rect : rects)
    if (y >= rect.y && y < rect.y + rect.height) covered.push_back({rect.x, rect.x + rect.width});
  std::sort(covered.begin(), covered.end());
  Spans merged;
  for (const auto& span : covered) {
    if (!merged.empty() && span.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, span.second);
    else
      merged.push_back(span);
  }
  if (!outside) return merged;
  Spans left;
  int begin = 0;
  for (const auto& span : merged) {
    if (begin < span.first) left.push_back({begin, span.first});
    begin = span.second;
  }
  if (begin < width) left.push_back({begin, width});
  return left;
}

/// Cuts the grid into bands of rows at the edges of the rectangles, and each band into spans. Equal neighboring bands are merged.
void cut(const std::vector<Rect>& rects, const Rect& grid, bool outside, std::vector<Rect>& pieces) {
  std::vector<int> edges{0, grid.height};
  for (const Rect& rect : rects) edges.insert(edges.end(), {rect.y, rect.y + rect.height});
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  Spans above;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const int y = edges[i], height = edges[i + 1] - y;
    Spans spans = spans_at(rects, y, grid.width, outside);
    if (spans == above) {
      for (std::size_t k = pieces.size() - spans.size(); k < pieces.size(); ++k) pieces[k].height += height;
      continue;
    }
    for (const auto& [begin, end] : spans) pieces.push_back({begin, y, end - begin, height});
    above = std::move(spans);
  }
}

}  // namespace

void region_pieces(const Geometry& geometry, const Region& region, SetPieces& pieces) {
  const FormatInfo& format = info(geometry.format);
  const bool outside = region.mode == Region::Mode::outside;
  for (auto& list : pieces) list.clear();
  std::array<std::vector<Rect>, 3> covered;
  if (region.mode != Region::Mode::frame) {
    for (const Rect& rect : region.rects) {
      const SetRects rects = set_rects(geometry, rect, outside ? Coverage::outer : Coverage::inner);
      for (int i = 0; i < format.set_count; ++i)
        if (!rects[i].empty()) covered[i].push_back(rects[i]);
    }
  }
  for (int i = 0; i < format.set_count; ++i) {
    const Rect grid = geometry.grid(format.sets[i]);
    if (region.mode == Region::Mode::frame)
      pieces[i].push_back(grid);
    else
      cut(covered[i], grid, outside, pieces[i]);
  }
}

}  // namespace cudavision
