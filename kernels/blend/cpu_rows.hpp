// SPDX-License-Identifier: LGPL-2.1-or-later
// Composes any layers on the CPU, in rows of float32: the general path.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "kernels/blend/sampling.hpp"

namespace cudavision::blend {

/// The part of a picture that is composed at a time, so that it stays in the cache. Both sides are even, because pixels
/// share chroma.
inline constexpr int tile_columns = 1024, tile_rows = 16;

using Row = float[tile_columns];
/// The phases of subsampled chroma (cpu_phases.cpp), as [y][x][row][byte]. A row of a tile has at most one byte per
/// column.
inline constexpr int phase_rows = 8;
using Phases = std::uint8_t[2][2][phase_rows][tile_columns];

/// Memory of one thread, kept between frames.
struct Scratch {
  Row below[2][4];  ///< [row][component]: composed samples of up to two rows, which share chroma
  Row pad[4];       ///< [component]: the samples of a layer in one row
  Row weight;       ///< the key's weight of each pixel
  /// A row of source samples: the weighted sum of several source rows.
  std::vector<float> columns = std::vector<float>(max_frame_side + 1);
  Phases phases;  ///< the phases of subsampled chroma
};

/// The taps of a layer's visible columns: [0] for full-size planes, [1] for subsampled planes.
using LayerTaps = std::array<std::vector<Taps>, 2>;
void find_column_taps(const Layer& layer, LayerTaps& taps);

/// Whether a layer covers every pixel of a tile.
bool covers(const Layer& layer, const Rect& tile);
/// The lowest layer that must be composed in a tile, and whether it hides everything below it.
std::pair<std::size_t, bool> find_lowest(const std::vector<Layer>& layers, const Rect& tile);

/// Writes the background to a tile.
void paint_background(const FormatInfo& format, const Target& target, const Rect& tile, Scratch& scratch);

/// Composes all layers in a tile of one row, or of the rows that share chroma. `taps`: one element for each layer.
void compose_rows(const Target& target, const std::vector<Layer>& layers, const std::vector<LayerTaps>& taps,
                  const Rect& tile, Scratch& scratch);

}  // namespace cudavision::blend
