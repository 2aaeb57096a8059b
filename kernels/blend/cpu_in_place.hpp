// SPDX-License-Identifier: LGPL-2.1-or-later
// Layers that have the output's samples are laid over each other in the output's own memory, if the results are
// integers. A picture looks the same whether its parts are composed in place or not: both ways give the same bits.
#pragma once

#include "kernels/blend/plan.hpp"

namespace cudavision::blend {

/// Whether a layer can be laid in place. last: its results are fractions, so it must be the last layer of the tile.
/// phases: its chroma samples do not lie on the output's chroma samples (cpu_phases.hpp).
enum class InPlace : std::uint8_t { no, last, phases, yes };
InPlace find_in_place(const FormatInfo& format, const Target& target, const Layer& layer);

/// Whether the layer's samples replace the samples below without any change.
bool copies_samples(const Target& target, const Layer& layer);

/// Lays `part`, a visible part of a layer, over the output, or over the samples of `base` if it is not nullptr.
/// `chroma`: also the subsampled planes.
void lay_in_place(const FormatInfo& format, const Target& target, const Layer& layer, const Layer* base,
                  const Rect& part, bool chroma);

/// Copies the rows directly above `rows` to `rows`, all in the output.
void repeat_rows(const FormatInfo& format, const Target& target, const Rect& rows);

}  // namespace cudavision::blend
