// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/local.hpp"

#include <algorithm>
#include <cmath>

#include "tests/kernels/reference/integral.hpp"

namespace cudavision::reference {
namespace {

struct Window {
  int x0, y0, x1, y1;
  int count() const { return (x1 - x0) * (y1 - y0); }
};
Window window(const Grid& in, int x, int y, int rx, int ry) {
  return {std::max(x - rx, 0), std::max(y - ry, 0), std::min(x + rx + 1, in.width), std::min(y + ry + 1, in.height)};
}

int nlm(const local::Params& params, const Grid& in, int depth, const Component& c, int x, int y) {
  const auto scaled = [](int radius, int shift) { return (radius + (1 << shift) - 1) >> shift; };
  const int rx = scaled(params.radius, c.shift_x), ry = scaled(params.radius, c.shift_y);
  const int sx = scaled(params.search_radius, c.shift_x), sy = scaled(params.search_radius, c.shift_y);
  const auto inside = [&](int px, int py) { return px >= 0 && px < in.width && py >= 0 && py < in.height; };
  double sum = 0, weights = 0;
  for (int dy = -sy; dy <= sy; ++dy)
    for (int dx = -sx; dx <= sx; ++dx) {
      if (!inside(x + dx, y + dy)) continue;
      double squares = 0;
      int count = 0;
      for (int ky = -ry; ky <= ry; ++ky)
        for (int kx = -rx; kx <= rx; ++kx) {
          if (!inside(x + kx, y + ky) || !inside(x + dx + kx, y + dy + ky)) continue;
          const double difference = (in.at(x + kx, y + ky) - in.at(x + dx + kx, y + dy + ky)) / std::pow(2, depth - 8);
          squares += difference * difference;
          ++count;
        }
      const double weight = std::exp(-squares / count / (params.strength * params.strength));
      sum += weight * in.at(x + dx, y + dy);
      weights += weight;
    }
  return int(std::nearbyint(sum / weights));
}

bool follows_boxes(const local::Params& params) {
  return params.operation == local::Operation::pixelate ||
         (params.operation == local::Operation::box_mean && params.radius == 0);
}

/// An eighth of the shorter side of a box, rounded up, at least 2. Sides are limited to the sides of the frame.
int radius_for(const Geometry& geometry, const Rect& box) {
  const int shorter = std::min({box.width, box.height, geometry.width, geometry.height});
  return std::max(2, int(std::ceil(shorter / 8.0)));
}

/// Makes a mosaic: samples whose first pixels lie in one square get their mean.
Grid mosaic(const Grid& in, const Component& c, const Rect& box, int side) {
  const auto square = [side](int sample, int shift, int origin) {
    return int(std::floor(double((sample << shift) - origin) / side));
  };
  const int first_x = square(0, c.shift_x, box.x), first_y = square(0, c.shift_y, box.y);
  const int across = square(in.width - 1, c.shift_x, box.x) - first_x + 1;
  const int down = square(in.height - 1, c.shift_y, box.y) - first_y + 1;
  const auto at = [&](int x, int y) {
    return std::size_t(square(y, c.shift_y, box.y) - first_y) * across +
           std::size_t(square(x, c.shift_x, box.x) - first_x);
  };
  std::vector<double> sums(std::size_t(across) * down), counts(sums.size());
  for (const auto& [x, y] : positions(in)) sums[at(x, y)] += in.at(x, y), ++counts[at(x, y)];
  Grid out(in.width, in.height);
  for (const auto& [x, y] : positions(in)) out.at(x, y) = int(std::nearbyint(sums[at(x, y)] / counts[at(x, y)]));
  return out;
}

/// Filters one shape after another, each with its own box. Shapes with a longer shorter side come later and win.
Picture apply_by_shape(const local::Params& params, const Picture& src, const Region& region, Layout layout) {
  struct One {
    Region region;
    Rect box;
  };
  std::vector<One> shapes;
  const auto inside = Region::Mode::inside;
  for (const Rect& rect : region.rects) shapes.push_back({{inside, {rect}}, rect});
  for (const Rect& box : region.ellipses) shapes.push_back({{inside, {}, {box}}, box});
  for (const Polygon& polygon : region.polygons) {
    int x0 = polygon[0].x, y0 = polygon[0].y, x1 = x0, y1 = y0;
    for (const Point& p : polygon)
      x0 = std::min(x0, p.x), y0 = std::min(y0, p.y), x1 = std::max(x1, p.x), y1 = std::max(y1, p.y);
    shapes.push_back({{inside, {}, {}, {polygon}}, {x0, y0, x1 - x0, y1 - y0}});
  }
  std::stable_sort(shapes.begin(), shapes.end(), [](const One& a, const One& b) {
    return std::min(a.box.width, a.box.height) < std::min(b.box.width, b.box.height);
  });
  Picture dst = filtered(src, {inside}, false, layout, [](const Grid& in, const Component&) { return in; });
  for (const One& one : shapes) {
    const Picture filtered = apply(params, src, one.region, {}, one.box);
    for (const Component& c : src.format().components) {
      if (!c.is_color()) continue;
      const Grid grid = filtered.read(c);
      for (const auto& [x, y] : positions(grid))
        if (in_region(one.region, src.geometry(), c, x, y)) dst.copy(c, x, y, filtered);
    }
  }
  return dst;
}

}  // namespace

Picture apply(const local::Params& params, const Picture& src, const Region& region, Layout layout) {
  if (follows_boxes(params) && region.mode == Region::Mode::inside) return apply_by_shape(params, src, region, layout);
  return apply(params, src, region, layout, {0, 0, src.geometry().width, src.geometry().height});
}

Picture apply(local::Params params, const Picture& src, const Region& region, Layout layout, const Rect& box) {
  const int depth = src.format().depth, max = src.format().max_value();
  if (params.radius == 0 && follows_boxes(params)) params.radius = radius_for(src.geometry(), box);
  Grid light(0, 0);
  if (params.operation == local::Operation::threshold) light = luma(LumaMatrix::bt601, src);
  return filtered(src, region, false, layout, [&](const Grid& component, const Component& c) {
    const bool chroma = c.is_chroma();
    const Grid& in = params.operation == local::Operation::threshold && !chroma ? light : component;
    Grid out(in.width, in.height);
    if (chroma &&
        (params.operation == local::Operation::threshold || params.operation == local::Operation::deviation)) {
      std::fill(out.values.begin(), out.values.end(), 1 << (depth - 1));
      return out;
    }
    if (params.operation == local::Operation::pixelate) return mosaic(in, c, box, 2 * params.radius + 1);
    const auto scaled = [&](int shift) { return (params.radius + (1 << shift) - 1) >> shift; };
    const int rx = scaled(c.shift_x), ry = scaled(c.shift_y);
    const Sums sums(in, false), squares(in, true);
    for (const auto& [x, y] : positions(in)) {
      const Window w = window(in, x, y, rx, ry);
      const auto over = [&](const Sums& s) {
        return s.at(w.x1, w.y1) - s.at(w.x0, w.y1) - s.at(w.x1, w.y0) + s.at(w.x0, w.y0);
      };
      const double n = w.count(), sum = double(over(sums));
      switch (params.operation) {
        case local::Operation::box_mean:
          out.at(x, y) = int(std::nearbyint(sum / n));
          break;
        case local::Operation::threshold:
          out.at(x, y) = in.at(x, y) * n < sum * (1 - params.sensitivity) ? 0 : max;
          break;
        case local::Operation::deviation: {
          // exact: n·Q − S² in 128 bits
          const auto spread = static_cast<unsigned __int128>(over(squares)) * unsigned(w.count()) -
                              static_cast<unsigned __int128>(over(sums)) * over(sums);
          out.at(x, y) = int(std::nearbyint(std::sqrt(double(spread)) / n));
          break;
        }
        case local::Operation::pixelate:  // done above
          break;
        case local::Operation::nlm:
          out.at(x, y) = nlm(params, in, depth, c, x, y);
          break;
      }
    }
    return out;
  });
}

int tolerance(const local::Params& params) {
  return params.operation == local::Operation::deviation || params.operation == local::Operation::nlm;
}

}  // namespace cudavision::reference
