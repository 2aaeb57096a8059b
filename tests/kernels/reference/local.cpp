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
  const auto scaled = [](int radius, int shift) { return shift ? (radius + 1) / 2 : radius; };
  const int rx = scaled(params.radius, c.shift_x), ry = scaled(params.radius, c.shift_y);
  const int sx = scaled(params.search_radius, c.shift_x), sy = scaled(params.search_radius, c.shift_y);
  const auto inside = [&](int px, int py) { return px >= 0 && px < in.width && py >= 0 && py < in.height; };
  double sum = 0, weights = 0;
  for (int dy = -sy; dy <= sy; ++dy) {
    for (int dx = -sx; dx <= sx; ++dx) {
      if (!inside(x + dx, y + dy)) continue;
      double squares = 0;
      int count = 0;
      for (int ky = -ry; ky <= ry; ++ky) {
        for (int kx = -rx; kx <= rx; ++kx) {
          if (!inside(x + kx, y + ky) || !inside(x + dx + kx, y + dy + ky)) continue;
          const double difference = (in.at(x + kx, y + ky) - in.at(x + dx + kx, y + dy + ky)) / std::pow(2, depth - 8);
          squares += difference * difference;
          ++count;
        }
      }
      const double weight = std::exp(-squares / count / (params.strength * params.strength));
      sum += weight * in.at(x + dx, y + dy);
      weights += weight;
    }
  }
  return int(std::nearbyint(sum / weights));
}

}  // namespace

Picture apply(const local::Params& params, const Picture& src, const Region& region, Layout layout) {
  const int depth = src.format().depth, max = src.format().max_value();
  Grid light(0, 0);
  if (params.operation == local::Operation::threshold) light = luma(src);
  return filtered(src, region, false, layout, [&](const Grid& component, const Component& c) {
    const bool chroma = c.role == Role::cb || c.role == Role::cr;
    const Grid& in = params.operation == local::Operation::threshold && !chroma ? light : component;
    Grid out(in.width, in.height);
    if (chroma && (params.operation == local::Operation::threshold || params.operation == local::Operation::deviation)) {
      std::fill(out.values.begin(), out.values.end(), 1 << (depth - 1));
      return out;
    }
    const int rx = c.shift_x ? (params.radius + 1) / 2 : params.radius, ry = c.shift_y ? (params.radius + 1) / 2 : params.radius;
    const Sums sums(in, false), squares(in, true);
    for (int y = 0; y < in.height; ++y) {
      for (int x = 0; x < in.width; ++x) {
        const Window w = window(in, x, y, rx, ry);
        const auto over = [&](const Sums& s) { return s.at(w.x1, w.y1) - s.at(w.x0, w.y1) - s.at(w.x1, w.y0) + s.at(w.x0, w.y0); };
        const double n = w.count(), sum = double(over(sums));
        switch (params.operation) {
          case local::Operation::box_mean:
            out.at(x, y) = int(std::nearbyint(sum / n));
            break;
          case local::Operation::threshold:
            out.at(x, y) = in.at(x, y) * n < sum * (1 - params.sensitivity) ? 0 : max;
            break;
          case local::Operation::deviation: {
            // Exact: n·Q − S² in 128 bits.
            const auto spread = static_cast<unsigned __int128>(over(squares)) * unsigned(w.count()) -
                                static_cast<unsigned __int128>(over(sums)) * over(sums);
            out.at(x, y) = int(std::nearbyint(std::sqrt(double(spread)) / n));
            break;
          }
          case local::Operation::nlm:
            out.at(x, y) = nlm(params, in, depth, c, x, y);
            break;
        }
      }
    }
    return out;
  });
}

int tolerance(const local::Params& params) {
  return params.operation == local::Operation::deviation || params.operation == local::Operation::nlm;
}

}  // namespace cudavision::reference
