// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/integral.hpp"

#include <algorithm>

namespace cudavision::reference {

Sums::Sums(const Grid& grid, bool squared) : width(grid.width), height(grid.height) {
  values.resize(std::size_t(width + 1) * (height + 1));
  for (int y = 0; y < height; ++y) {
    std::uint64_t row = 0;
    for (int x = 0; x < width; ++x) {
      const std::uint64_t value = std::uint64_t(grid.at(x, y));
      row += squared ? value * value : value;
      values[std::size_t(y + 1) * (width + 1) + x + 1] = at(x + 1, y) + row;
    }
  }
}

std::vector<Sums> tables(const integral::Params& params, const Picture& src) {
  std::vector<Grid> channels;
  if (params.channel == integral::TableChannel::luma) {
    channels.push_back(luma(LumaMatrix::bt601, src));
  } else {
    std::vector<Component> components = src.format().components;
    if (src.format().unpacked) {  // the order of the planes after unpacking
      const std::vector<Role> order = {Role::luma, Role::cb, Role::cr, Role::green, Role::blue, Role::red, Role::alpha};
      const auto place = [&](const Component& c) { return std::find(order.begin(), order.end(), c.role); };
      std::sort(components.begin(), components.end(),
                [&](const Component& a, const Component& b) { return place(a) < place(b); });
    }
    for (const Component& c : components)
      if (c.role != Role::padding) channels.push_back(src.read(c));
  }
  std::vector<Sums> all;
  for (const Grid& grid : channels) all.emplace_back(grid, false);
  if (params.squared)
    for (const Grid& grid : channels) all.emplace_back(grid, true);
  return all;
}

}  // namespace cudavision::reference
