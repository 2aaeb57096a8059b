// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <vector>

#include "kernels/blend/blend.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// A pad with its picture; params.src is not used.
struct Pad {
  Picture picture;
  BlendPad params;
};

/// The result that make_blend()'s plan must give, computed pixel by pixel in double precision.
Picture blend(const Geometry& geometry, const BlendColor& color, const BlendBackground& background, const std::vector<Pad>& pads,
              Layout layout = {}, BlendDivision division = BlendDivision::nearest);

}  // namespace cudavision::reference
