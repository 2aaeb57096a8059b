// SPDX-License-Identifier: LGPL-2.1-or-later
// Lays layers over each other in the memory of the output, if their samples are like the output's and the results are
// integers. The results have the same bits as the general path.
#pragma once

#include "kernels/blend/cpu_rows.hpp"

namespace cudavision::blend {

/// Whether a layer can be laid in place. last: yes, but its results are fractions, so no other layer of the tile may
/// follow. phases: its chroma samples do not coincide with the output's, because xpos or ypos is odd, or a side ends
/// inside a chroma sample (see lay_phases()).
enum class InPlace : std::uint8_t { no, last, phases, yes };
InPlace find_in_place(const FormatInfo& format, const Target& target, const Layer& layer);

/// Whether the layer's samples replace the samples below without any change.
bool copies_samples(const Target& target, const Layer& layer);
/// The weight of a layer's 8-bit samples if no pixel has its own alpha, in 1/256. 256: the samples are copied.
int opacity_256(const Target& target, const Layer& layer);

/// Lays `part`, a visible part of a layer, over the output or, if `base` is not nullptr, over the samples of `base`.
/// `chroma`: also lays the subsampled planes.
void lay_in_place(const FormatInfo& format, const Target& target, const Layer& layer, const Layer* base,
                  const Rect& part, bool chroma);

/// Copies the rows directly above `rows` to `rows`, all in the output.
void repeat_rows(const FormatInfo& format, const Target& target, const Rect& rows);

/// Lays subsampled chroma of layers whose chroma samples do not coincide with the output's (cpu_phases.cpp): the chroma
/// of layers[first …] over the output's chroma in a tile, or over the chroma of `base` if it is not nullptr (then
/// layers[first] covers the tile). Every layer that is visible in the tile is InPlace::phases or InPlace::yes; `base`
/// is InPlace::yes.
void lay_phases(const FormatInfo& format, const Target& target, const std::vector<Layer>& layers, std::size_t first,
                const Layer* base, const Rect& tile, Phases& phases);

}  // namespace cudavision::blend
