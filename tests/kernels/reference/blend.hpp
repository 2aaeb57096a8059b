// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "kernels/blend/blend.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// A pad whose picture is here; its params' own image is not looked at.
struct Pad {
  Picture picture;
  BlendPad params;
};

/// What make_blend()'s plan must give, pixel by pixel.
Picture blend(const Geometry& geometry, const BlendColor& color, const BlendBackground& background, const std::vector<Pad>& pads,
              Layout layout = {}, BlendDivision division = BlendDivision::nearest);

}  // namespace cudavision::reference
