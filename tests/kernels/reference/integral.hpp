// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/integral/integral.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// An exact table in the padded layout: (width + 1) × (height + 1) entries.
struct Sums {
  int width = 0, height = 0;
  std::vector<std::uint64_t> values;

  Sums(const Grid& grid, bool squared);
  std::uint64_t at(int x, int y) const { return values[std::size_t(y) * (width + 1) + x]; }
};

/// The exact tables of a picture, in the order of integral::Integral::tables().
std::vector<Sums> tables(const integral::Params& params, const Picture& src);

}  // namespace cudavision::reference
