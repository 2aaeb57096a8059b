// SPDX-License-Identifier: LGPL-2.1-or-later
// A chroma sample belongs to 2 × 2 pixels (Y42B: 2 × 1). Where the chroma samples of a layer do not lie on those of the output, these
// pixels show different samples of the layer, and the result is the mean of the four results:
//
//     output          layer at x 1, y 1            phases of one chroma sample of the output
//     ┌───┬───┐       ┌───╎───┬                    [0][0]: shows layer sample a   [0][1]: b
//     │       │       │ a ╎ b │                    [1][0]: c                      [1][1]: d
//     │       │       ╎┄┄┄╎┄┄┄╎
//     └───┴───┘       │ c ╎ d │                    result: the mean, rounded half to even
//
// Phase [y][x] holds one of the pixels of each chroma sample: it is a plane with the size of the chroma plane, and the chroma of any
// layer is a plane that is shifted against it by whole samples. So each layer is laid over four planes of bytes with the loops of
// cpu_in_place.cpp. Each result is the integer that lay_pixel() computes for that pixel, and the mean of integers is exact in
// float32, so the result has the bits of the general path (cpu_rows.cpp).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // vectorized
#endif
#include "kernels/blend/cpu_phases.hpp"

#include <algorithm>

#include "kernels/blend/cpu_in_place.hpp"
#include "kernels/blend/cpu_patch.hpp"
#include "kernels/cpu/wide.hpp"

namespace cudavision::blend {
namespace {

/// Bytes of the output or of a layer.
struct Bytes {
  const std::uint8_t* data;
  std::ptrdiff_t pitch;
};

/// The first chroma sample whose pixel of this phase is `pixel` or lies after it.
int first_sample(int pixel, int phase, int shift) { return (pixel - phase + shift) >> shift; }
/// How many samples the layer's chroma is shifted against this phase.
int offset(int phase, int place, int crop, int shift) { return (phase + crop - place) >> shift; }

/// Lays the layers over one phase of a part of the output's plane. `below`: the samples below layers[first].
void lay_phase(const ChannelSet& set, const FormatInfo& format, const Target& target, const std::vector<Layer>& layers,
               std::size_t first, Bytes below, const Rect& part, int px, int py, std::uint8_t* phase) {
  const int shift_x = set.shift_x, shift_y = set.shift_y, left = part.x >> shift_x, top = part.y >> shift_y;
  bool empty = true;  // the phase holds no samples yet
  for (std::size_t l = first; l < layers.size(); ++l) {
    const Layer& layer = layers[l];
    const Rect shown = intersection(layer.visible, part);
    const Interleaved plane(format, set, layer.channels);
    const int step = plane.all.step;
    if (empty && !covers(layer, part)) {
      copy({below.data, nullptr, phase, below.pitch, 0, tile_columns, subsampled(part.width, shift_x) * step,
            subsampled(part.height, shift_y), 0});
      empty = false;
    }
    const int x0 = first_sample(shown.x, px, shift_x), x1 = first_sample(shown.x + shown.width, px, shift_x);
    const int y0 = first_sample(shown.y, py, shift_y), y1 = first_sample(shown.y + shown.height, py, shift_y);
    if (shown.empty() || x0 >= x1 || y0 >= y1) continue;
    const std::ptrdiff_t x = x0 + offset(px, layer.place.x, layer.crop.x, shift_x);
    const std::ptrdiff_t y = y0 + offset(py, layer.place.y, layer.crop.y, shift_y);
    std::uint8_t* const to = phase + (y0 - top) * tile_columns + (x0 - left) * step;
    const Bytes under = empty ? below : Bytes{to, tile_columns};
    const Patch patch{plane.all.data + y * plane.all.pitch + x * step,
                      under.data,
                      to,
                      plane.all.pitch,
                      under.pitch,
                      tile_columns,
                      (x1 - x0) * step,
                      y1 - y0,
                      0};
    copies_samples(target, layer) ? copy(patch) : mix(patch, int(layer.coverage * 256));
    empty = false;
  }
}

/// The means of four samples, rounded half to even.
CUDAVISION_WIDE void means(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d, int count,
                           std::uint8_t* to) {
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    const std::uint16_t sum = std::uint16_t(std::uint16_t(a[i] + b[i]) + std::uint16_t(c[i] + d[i]));
    to[i] = std::uint8_t(std::uint16_t(sum + 1 + (sum >> 2 & 1)) >> 2);
  }
}

/// Lays the layers over a part of a plane of at most phase_rows rows.
void lay_plane(const ChannelSet& set, const FormatInfo& format, const Target& target, const std::vector<Layer>& layers,
               std::size_t first, const Layer* base, const Rect& part, Phases& phases) {
  const Interleaved dst(format, set, target.channels);
  std::uint8_t* const to = dst.at(part.x, part.y);
  Bytes below{to, dst.all.pitch};
  if (base) {
    const Interleaved plane(format, set, base->channels);
    below = {plane.at(part.x - base->place.x + base->crop.x, part.y - base->place.y + base->crop.y), plane.all.pitch};
  }
  for (int py = 0; py < 1 << set.shift_y; ++py)
    for (int px = 0; px < 1 << set.shift_x; ++px)
      lay_phase(set, format, target, layers, first, below, part, px, py, phases[py][px][0]);
  const int bytes = dst.bytes(part.width);
  for (int row = 0; row < dst.rows(part.height); ++row) {
    const bool two_rows = set.shift_y > 0 && 2 * row + 1 < part.height;
    std::uint8_t(*const upper)[phase_rows][tile_columns] = phases[0], (*const lower)[phase_rows][tile_columns] = phases[two_rows];
    if (part.width % 2)  // the last samples have one column of pixels
      for (auto* const of : {upper, lower})
        std::copy_n(of[0][row] + bytes - dst.all.step, dst.all.step, of[1][row] + bytes - dst.all.step);
    means(upper[0][row], upper[1][row], lower[0][row], lower[1][row], bytes, to + row * dst.all.pitch);
  }
}

}  // namespace

void lay_phases(const FormatInfo& format, const Target& target, const std::vector<Layer>& layers, std::size_t first,
                const Layer* base, const Rect& tile, Phases& phases) {
  each_plane(format, [&](const ChannelSet& set) {
    if (set.shift_x == 0) return;
    const int end = tile.y + tile.height, rows = phase_rows << set.shift_y;
    for (int y = tile.y; y < end; y += rows) {
      const Rect part{tile.x, y, tile.width, std::min(rows, end - y)};
      const auto shows = [&](const Layer& layer) { return !intersection(layer.visible, part).empty(); };
      if (std::any_of(layers.begin() + std::ptrdiff_t(first), layers.end(), shows))
        lay_plane(set, format, target, layers, first, base, part, phases);
    }
  });
}

}  // namespace cudavision::blend
