// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/region.hpp"

#include <algorithm>

#include "kernels/core/outline.hpp"

namespace cudavision {
namespace {

/// The area of a channel set that the shapes of a region cover, in samples.
struct Cover {
  const Geometry& geometry;
  const ChannelSet& set;
  const Coverage coverage;
  std::vector<Rect> rects;
  struct Cut {
    Outline outline;
    int begin, end;  ///< rows
  };
  std::vector<Cut> cuts;

  Cover(const Geometry& of, const Region& region, int index)
      : geometry(of),
        set(info(of.format).sets[index]),
        coverage(region.mode == Region::Mode::outside ? Coverage::outer : Coverage::inner) {
    const auto in_samples = [&](const Rect& box) { return set_rects(geometry, box, coverage)[index]; };
    const auto add_cut = [&](const Rect& whole, const Polygon* polygon) {
      const Rect box = near_frame(whole), rows = in_samples(box);
      if (!rows.empty()) cuts.push_back({{box, polygon}, rows.y, rows.y + rows.height});
    };
    for (const Rect& rect : region.rects)
      if (const Rect samples = in_samples(rect); !samples.empty()) rects.push_back(samples);
    for (const Rect& box : region.ellipses) add_cut(box, nullptr);
    for (const Polygon& polygon : region.polygons) add_cut(box_around(polygon), &polygon);
  }

  /// The first rows of bands whose rows have equal spans. Each row of an ellipse or a polygon is its own band.
  std::vector<int> edges() const {
    std::vector<int> edges{0, geometry.grid(set).height};
    for (const Rect& rect : rects) edges.insert(edges.end(), {rect.y, rect.y + rect.height});
    for (const Cut& cut : cuts)
      for (int y = cut.begin; y <= cut.end; ++y) edges.push_back(y);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    return edges;
  }

  /// The covered spans of row y.
  std::vector<Span> at(int y) const {
    std::vector<Span> covered, row;
    for (const Rect& rect : rects)
      if (y >= rect.y && y < rect.y + rect.height) covered.push_back({rect.x, rect.x + rect.width});
    for (const Cut& cut : cuts) {
      if (y < cut.begin || y >= cut.end) continue;
      row_spans(geometry, set, cut.outline, coverage, y, row);
      covered.insert(covered.end(), row.begin(), row.end());
    }
    merge(covered);
    return covered;
  }
};

/// The spans of a row of `width` samples that are not in `covered`.
std::vector<Span> uncovered(const std::vector<Span>& covered, int width) {
  std::vector<Span> left;
  int begin = 0;
  for (const Span& span : covered) {
    if (begin < span.begin) left.push_back({begin, span.begin});
    begin = span.end;
  }
  if (begin < width) left.push_back({begin, width});
  return left;
}

/// Cuts the grid into bands of rows, and each band into spans. Equal neighbouring bands are merged.
void cut(const Cover& cover, std::vector<Rect>& pieces) {
  const std::vector<int> edges = cover.edges();
  std::vector<Span> above;
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const int y = edges[i], height = edges[i + 1] - y;
    std::vector<Span> spans = cover.at(y);
    if (cover.coverage == Coverage::outer) spans = uncovered(spans, cover.geometry.grid(cover.set).width);
    if (spans == above) {
      for (std::size_t k = pieces.size() - spans.size(); k < pieces.size(); ++k) pieces[k].height += height;
      continue;
    }
    for (const Span& span : spans) pieces.push_back({span.begin, y, span.end - span.begin, height});
    above = std::move(spans);
  }
}

}  // namespace

void region_pieces(const Geometry& geometry, const Region& region, SetPieces& pieces) {
  const FormatInfo& format = info(geometry.format);
  for (auto& list : pieces) list.clear();
  for (int i = 0; i < format.set_count; ++i) {
    if (region.mode == Region::Mode::frame)
      pieces[i].push_back(geometry.grid(format.sets[i]));
    else
      cut(Cover(geometry, region, i), pieces[i]);
  }
}

}  // namespace cudavision
