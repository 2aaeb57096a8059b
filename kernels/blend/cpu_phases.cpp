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

/// The samples below the first layer at `part`: those of the output, or of `base`.
Bytes bytes_below(const ChannelSet& set, const FormatInfo& format, const Interleaved& dst, const Layer* base, const Rect& part) {
  if (!base) return {dst.at(part.x, part.y), dst.all.pitch};
  const Interleaved plane(format, set, base->channels);
  return {plane.at(part.x - base->place.x + base->crop.x, part.y - base->place.y + base->crop.y), plane.all.pitch};
}

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

/// The mean of four samples, rounded half to even.
std::uint8_t mean(std::uint16_t a, std::uint16_t b, std::uint16_t c, std::uint16_t d) {
  const std::uint16_t sum = std::uint16_t(std::uint16_t(a + b) + std::uint16_t(c + d));
  return std::uint8_t(std::uint16_t(sum + 1 + (sum >> 2 & 1)) >> 2);
}
CUDAVISION_WIDE void means(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d, int count,
                           std::uint8_t* to) {
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) to[i] = mean(a[i], b[i], c[i], d[i]);
}

/// Lays the layers over a part of a plane of at most phase_rows rows.
void lay_rows(const ChannelSet& set, const FormatInfo& format, const Target& target, const std::vector<Layer>& layers,
              std::size_t first, const Layer* base, const Rect& part, Phases& phases) {
  const Interleaved dst(format, set, target.channels);
  std::uint8_t* const to = dst.at(part.x, part.y);
  const Bytes below = bytes_below(set, format, dst, base, part);
  for (int py = 0; py < 1 << set.shift_y; ++py)
    for (int px = 0; px < 1 << set.shift_x; ++px)
      lay_phase(set, format, target, layers, first, below, part, px, py, phases[py][px][0]);
  const int bytes = dst.bytes(part.width), step = dst.all.step;
  for (int row = 0; row < dst.rows(part.height); ++row) {
    auto& upper = phases[0];
    auto& lower = phases[set.shift_y > 0 && 2 * row + 1 < part.height];  // the last sample may have one row of pixels
    if (part.width % 2)                                                  // and one column
      for (auto* of : {&upper, &lower}) std::copy_n((*of)[0][row] + bytes - step, step, (*of)[1][row] + bytes - step);
    means(upper[0][row], upper[1][row], lower[0][row], lower[1][row], bytes, to + row * dst.all.pitch);
  }
}
void lay_plane(const ChannelSet& set, const FormatInfo& format, const Target& target, const std::vector<Layer>& layers,
               std::size_t first, const Layer* base, const Rect& part, Phases& phases) {
  const int end = part.y + part.height, rows = phase_rows << set.shift_y;
  if (part.width <= 0) return;
  for (int y = part.y; y < end; y += rows)
    lay_rows(set, format, target, layers, first, base, {part.x, y, part.width, std::min(rows, end - y)}, phases);
}

/// Lays one layer over a part of a plane in which it covers all pixels of each chroma sample: the four phases in registers.
CUDAVISION_WIDE void mix_means(const Bytes (&above)[4], Bytes below, int alpha, int bytes, int rows, std::uint8_t* to,
                               std::ptrdiff_t pitch) {
  const std::uint16_t of_above = std::uint16_t(alpha), of_below = std::uint16_t(256 - alpha);
  for (int row = 0; row < rows; ++row) {
    const auto at = [&](const Bytes& of) { return of.data + row * of.pitch; };
    const std::uint8_t *const a = at(above[0]), *const b = at(above[1]), *const c = at(above[2]), *const d = at(above[3]);
    const std::uint8_t* const under = at(below);
    std::uint8_t* const out = to + row * pitch;
#pragma GCC ivdep
    for (int i = 0; i < bytes; ++i) {
      const std::uint16_t rest = std::uint16_t(under[i] * of_below);
      const auto mixed = [&](std::uint8_t s) { return std::uint16_t(std::uint16_t(s * of_above + rest) >> 8); };
      out[i] = mean(mixed(a[i]), mixed(b[i]), mixed(c[i]), mixed(d[i]));
    }
  }
}
void lay_inside(const ChannelSet& set, const FormatInfo& format, const Target& target, const Layer& layer, const Layer* base,
                const Rect& part) {
  const Interleaved dst(format, set, target.channels), plane(format, set, layer.channels);
  Bytes above[4];
  for (int i = 0; i < 4; ++i) {
    const std::ptrdiff_t x = (part.x >> set.shift_x) + offset(i % 2, layer.place.x, layer.crop.x, set.shift_x);
    const std::ptrdiff_t y = (part.y >> set.shift_y) + offset(i / 2 & set.shift_y, layer.place.y, layer.crop.y, set.shift_y);
    above[i] = {plane.all.data + y * plane.all.pitch + x * plane.all.step, plane.all.pitch};
  }
  mix_means(above, bytes_below(set, format, dst, base, part), copies_samples(target, layer) ? 256 : int(layer.coverage * 256),
            dst.bytes(part.width), dst.rows(part.height), dst.at(part.x, part.y), dst.all.pitch);
}

/// Lays one layer over a plane of a tile.
void lay_one(const ChannelSet& set, const FormatInfo& format, const Target& target, const std::vector<Layer>& layers, std::size_t l,
             const Layer* base, const Rect& tile, Phases& phases) {
  const Rect shown = intersection(layers[l].visible, tile);
  const int odd_x = set.shift_x, odd_y = set.shift_y;  // masks of pixels that lie inside a chroma sample
  // Columns and rows of pixels: the outer ones touch the layer, the inner ones have chroma samples that it covers.
  const int x0 = shown.x & ~odd_x, x1 = (shown.x + odd_x) & ~odd_x, x2 = std::max(x1, (shown.x + shown.width) & ~odd_x);
  const int y0 = shown.y & ~odd_y, y1 = (shown.y + odd_y) & ~odd_y, y2 = std::max(y1, (shown.y + shown.height) & ~odd_y);
  const int x3 = std::min(tile.x + tile.width, (shown.x + shown.width + odd_x) & ~odd_x);
  const int y3 = std::min(tile.y + tile.height, (shown.y + shown.height + odd_y) & ~odd_y);
  if (x1 < x2 && y1 < y2) lay_inside(set, format, target, layers[l], base, {x1, y1, x2 - x1, y2 - y1});
  for (const Rect& border : {Rect{x0, y0, x3 - x0, y1 - y0}, Rect{x0, y2, x3 - x0, y3 - y2}, Rect{x0, y1, x1 - x0, y2 - y1},
                             Rect{x2, y1, x3 - x2, y2 - y1}})
    lay_plane(set, format, target, layers, l, base, border, phases);
}

}  // namespace

void lay_phases(const FormatInfo& format, const Target& target, const std::vector<Layer>& layers, std::size_t first,
                const Layer* base, const Rect& tile, Phases& phases) {
  const auto shows = [&](const Layer& layer) { return !intersection(layer.visible, tile).empty(); };
  const bool one = std::none_of(layers.begin() + std::ptrdiff_t(first) + 1, layers.end(), shows);
  each_plane(format, [&](const ChannelSet& set) {
    if (set.shift_x > 0) (one ? lay_one : lay_plane)(set, format, target, layers, first, base, tile, phases);
  });
}

}  // namespace cudavision::blend
