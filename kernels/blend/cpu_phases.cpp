// SPDX-License-Identifier: LGPL-2.1-or-later
// A chroma sample covers 2 × 2 pixels (Y42B: 2 × 1). If the chroma samples of a layer do not coincide with the
// output's, these pixels show different samples of the layer. The result is the mean of the four results:
//
//     output          layer at x 1, y 1            phases of one chroma sample of the output
//     ┌───┬───┐       ┌───╎───┬                    [0][0]: shows layer sample a   [0][1]: b
//     │       │       │ a ╎ b │                    [1][0]: c                      [1][1]: d
//     │       │       ╎┄┄┄╎┄┄┄╎
//     └───┴───┘       │ c ╎ d │                    result: the mean, rounded half to even
//
// Phase [y][x] holds one of the pixels of each chroma sample. It is a plane with the size of the chroma plane. Relative
// to it, the chroma of any layer is shifted by whole samples.
//
//   lay_one     one layer: the four phases stay in registers, and a phase outside the layer shows the samples below
//   lay_plane   several layers: the loops of cpu_in_place.cpp lay each layer over four planes of bytes; then the means
//               are stored
//
// Each phase is the integer that lay_pixel() computes for that pixel, and the mean of four integers is exact in
// float32, so the results have the same bits as the general path (cpu_rows.cpp).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // vectorised
#endif
#include <algorithm>
#include <array>

#include "kernels/blend/cpu_in_place.hpp"
#include "kernels/blend/cpu_patch.hpp"
#include "kernels/cpu/wide.hpp"

namespace cudavision::blend {
namespace {

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void store(std::uint8_t* at, std::uint16_t value) { std::memcpy(at, &value, sizeof value); }

/// Bytes of a plane of the output or of a layer.
struct Bytes {
  const std::uint8_t* data;
  std::ptrdiff_t pitch;
};

/// The first chroma sample whose pixel of this phase is at `pixel` or after it.
int first_sample(int pixel, int phase, int shift) { return (pixel - phase + shift) >> shift; }
/// The shift of the layer's chroma relative to this phase, in samples.
int offset(int phase, int place, int crop, int shift) { return (phase + crop - place) >> shift; }

/// The samples below the first layer at `part`: samples of the output, or of `base`.
Bytes bytes_below(const ChannelSet& set, const FormatInfo& format, const Interleaved& dst, const Layer* base,
                  const Rect& part) {
  if (!base) return {dst.at(part.x, part.y), dst.all.pitch};
  const Interleaved plane(format, set, base->channels);
  // cppcheck-suppress returnDanglingLifetime ; the samples belong to the layer
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
    const int x = x0 + offset(px, layer.place.x, layer.crop.x, shift_x),
              y = y0 + offset(py, layer.place.y, layer.crop.y, shift_y);
    std::uint8_t* const to = phase + (y0 - top) * tile_columns + (x0 - left) * step;
    const Bytes under = empty ? below : Bytes{to, tile_columns};
    const Patch patch{plane.all.at(x, y), under.data, to, plane.all.pitch, under.pitch, tile_columns,
                      (x1 - x0) * step,   y1 - y0,    0};
    copies_samples(target, layer) ? copy(patch) : mix(patch, opacity_256(target, layer));
    empty = false;
  }
}

/// The mean of four samples, rounded half to even.
std::uint16_t mean(std::uint16_t a, std::uint16_t b, std::uint16_t c, std::uint16_t d) {
  const std::uint16_t sum = std::uint16_t(std::uint16_t(a + b) + std::uint16_t(c + d));
  return std::uint16_t(std::uint16_t(sum + 1 + (sum >> 2 & 1)) >> 2);
}
CUDAVISION_WIDE void means(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c, const std::uint8_t* d,
                           int count, std::uint8_t* to) {
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) to[i] = std::uint8_t(mean(a[i], b[i], c[i], d[i]));
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

/// Lays one layer over a part of a plane, with the four phases in registers. `above`: the layer's samples in each
/// phase.
CUDAVISION_WIDE void mix_means(const Bytes (&above)[4], Bytes below, int opacity, int bytes, int rows, std::uint8_t* to,
                               std::ptrdiff_t pitch) {
  const std::uint16_t of_above = std::uint16_t(opacity), of_below = std::uint16_t(256 - opacity);
  for (int row = 0; row < rows; ++row) {
    const auto at = [&](const Bytes& of) { return of.data + row * of.pitch; };
    const std::uint8_t *const a = at(above[0]), *const b = at(above[1]), *const c = at(above[2]),
                              *const d = at(above[3]);
    const std::uint8_t* const under = at(below);
    std::uint8_t* const out = to + row * pitch;
    // Computes half of each word at a time, in lanes of 16 bits, without reordering bytes.
    const auto words = [&](int i, auto&& part) {
      const std::uint16_t rest = std::uint16_t(part(load<std::uint16_t>(under + i)) * of_below);
      const auto mixed = [&](const std::uint8_t* s) {
        return std::uint16_t(std::uint16_t(part(load<std::uint16_t>(s + i)) * of_above + rest) >> 8);
      };
      return mean(mixed(a), mixed(b), mixed(c), mixed(d));
    };
    const int whole = bytes & ~1;
#pragma GCC ivdep
    for (int i = 0; i < whole; i += 2) {
      const std::uint16_t low = words(i, [](std::uint16_t word) { return std::uint16_t(word & 255); });
      const std::uint16_t high = words(i, [](std::uint16_t word) { return std::uint16_t(word >> 8); });
      store(out + i, std::uint16_t(low | std::uint16_t(high << 8)));
    }
    if (bytes > whole) {
      const auto mixed = [&](const std::uint8_t* s) {
        return std::uint16_t((s[whole] * of_above + under[whole] * of_below) >> 8);
      };
      out[whole] = std::uint8_t(mean(mixed(a), mixed(b), mixed(c), mixed(d)));
    }
  }
}
/// Lays one layer over a part of a plane in which the same phases of all samples are inside the layer. Outside the
/// layer, the samples below are mixed with themselves, which does not change them.
void lay_part(const ChannelSet& set, const FormatInfo& format, const Target& target, const Layer& layer,
              const Layer* base, const Rect& tile, const Rect& part) {
  const Interleaved dst(format, set, target.channels), plane(format, set, layer.channels);
  const Bytes below = bytes_below(set, format, dst, base, part);
  Bytes above[4];
  for (int i = 0; i < 4; ++i) {
    int px = i % 2, py = i / 2 & set.shift_y;
    if (part.x + px >= tile.x + tile.width) px = 0;  // the last sample may have only one column of pixels
    if (part.y + py >= tile.y + tile.height) py = 0;
    const int x = (part.x >> set.shift_x) + offset(px, layer.place.x, layer.crop.x, set.shift_x),
              y = (part.y >> set.shift_y) + offset(py, layer.place.y, layer.crop.y, set.shift_y);
    const bool inside = !intersection(layer.visible, {part.x + px, part.y + py, 1, 1}).empty();
    above[i] = inside ? Bytes{plane.all.at(x, y), plane.all.pitch} : below;
  }
  mix_means(above, below, opacity_256(target, layer), dst.bytes(part.width), dst.rows(part.height),
            dst.at(part.x, part.y), dst.all.pitch);
}

/// Cuts a range of pixels before the first and after the last chroma sample that lies completely inside. Returns the
/// four ends of the resulting three parts.
std::array<int, 4> cut(int begin, int end, int shift, int most) {
  const auto down = [&](int pixel) { return pixel >> shift << shift; };
  const auto up = [&](int pixel) { return down(pixel + shift); };
  return {down(begin), up(begin), std::max(up(begin), down(end)), std::min(up(end), most)};
}

/// Lays one layer over a plane of a tile.
void lay_one(const ChannelSet& set, const FormatInfo& format, const Target& target, const std::vector<Layer>& layers,
             std::size_t l, const Layer* base, const Rect& tile, Phases&) {
  const Rect shown = intersection(layers[l].visible, tile);
  const auto xs = cut(shown.x, shown.x + shown.width, set.shift_x, tile.x + tile.width);
  const auto ys = cut(shown.y, shown.y + shown.height, set.shift_y, tile.y + tile.height);
  for (int row = 0; row < 3; ++row)
    for (int column = 0; column < 3; ++column) {
      const Rect part{xs[column], ys[row], xs[column + 1] - xs[column], ys[row + 1] - ys[row]};
      if (!part.empty()) lay_part(set, format, target, layers[l], base, tile, part);
    }
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
