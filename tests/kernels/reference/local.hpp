// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/local/local.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// Computes the filter by its definition, window by window.
Picture apply(const local::Params& params, const Picture& src, const Region& region = {}, Layout layout = {});
/// Applies a filter that depends on the box, with this box for all shapes of the region.
Picture apply(local::Params params, const Picture& src, const Region& region, Layout layout, const Rect& box);
/// The allowed difference: 0, or 1 for deviation and non-local means.
int tolerance(const local::Params& params);

}  // namespace cudavision::reference
