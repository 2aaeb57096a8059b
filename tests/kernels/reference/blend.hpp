// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "kernels/blend/blend.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// A pad with its picture; params.src is not used.
struct Pad {
  Picture picture;
  blend::Pad params;
};

/// The result that the plan of blend::make() must give, computed pixel by pixel in double precision. `nudge` is added
/// before the colours and alpha of a layer are rounded.
Picture blend(const Geometry& geometry, const blend::Color& color, const blend::Background& background,
              const std::vector<Pad>& pads, Layout layout = {}, blend::Division division = blend::Division::nearest,
              double nudge = 0);

}  // namespace cudavision::reference
