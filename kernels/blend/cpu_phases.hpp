// SPDX-License-Identifier: LGPL-2.1-or-later
// Subsampled chroma of layers whose chroma samples do not lie on the output's chroma samples: xpos or ypos is odd, or a
// side ends within a chroma sample.
#pragma once

#include <vector>

#include "kernels/blend/cpu_rows.hpp"

namespace cudavision::blend {

/// Lays the chroma of layers[first …] over the output's chroma in a tile, or over the chroma of `base` if it is not
/// nullptr (then layers[first] covers the tile). Every layer that shows in the tile is InPlace::phases or InPlace::yes;
/// `base` is InPlace::yes.
void lay_phases(const FormatInfo& format, const Target& target, const std::vector<Layer>& layers, std::size_t first,
                const Layer* base, const Rect& tile, Phases& phases);

}  // namespace cudavision::blend
