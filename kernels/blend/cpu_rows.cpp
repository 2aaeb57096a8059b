// SPDX-License-Identifier: LGPL-2.1-or-later
// A row of a layer goes through these steps, each of which is a loop that the compiler vectorises:
//
//   load_row   stored samples → float32, scaled vertically and then horizontally
//   weigh      → the key's weight of each pixel
//   convert    → samples of the output
//   lay_row    lay_pixel() with the samples composed so far
//
// After the last layer, write() rounds and stores the row. A chroma sample is the mean of the pixels that share it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")  // vectorised
#endif
#include "kernels/blend/cpu_rows.hpp"

#include <algorithm>

#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cpu_in_place.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/wide.hpp"

namespace cudavision::blend {
namespace {

cpu::Rows source_of(const Layer& layer, const ChannelView& channel) {
  return {channel, layer.sample_bytes, layer.shift, layer.max};
}

/// Reads one component of a layer for columns [x0, x1) of output row y. `taps`: the taps of the layer's visible
/// columns.
void load_row(const Layer& layer, const ChannelView& channel, const std::vector<Taps>& taps, int y, int x0, int x1,
              std::vector<float>& columns, float* to) {
  const Taps rows = taps_of(layer.sampling, layer.down[channel.shift_y], y - layer.place.y);
  const Taps* const at = taps.data() + (x0 - layer.visible.x);
  const int count = x1 - x0, first = at[0].first, last = at[count - 1].last;
  const bool plain = channel.shift_x == 0 && layer.place.width == layer.crop.width;
  float* const sums = plain ? to : columns.data();
  const cpu::Rows source = source_of(layer, channel);
  source.read(first, rows.first, last - first + 1, sums);
  if (const float weight = rows.of(rows.first); weight != 1)
    for (int i = 0; i <= last - first; ++i) sums[i] *= weight;
  for (int row = rows.first + 1; row <= rows.last; ++row) source.add(first, row, last - first + 1, rows.of(row), sums);
  if (plain) return;
  for (int i = 0; i < count; ++i) {
    const Taps& t = at[i];
    float sum = t.first_weight * sums[t.first - first] + t.last_weight * sums[t.last - first];
    for (int j = t.first + 1; j < t.last; ++j) sum += t.weight * sums[j - first];
    to[i] = sum;
  }
}

// ---- One row of a layer ---------------------------------------------------------------------------------------------
// The loops below use local copies of values that they do not change. The compiler then knows that no store changes
// them, and vectorises.

/// The colour of the key: the first pixel of the picture.
void read_first(const Layer& layer, float (&key)[3]) {
  float first[3] = {layer.neutral, layer.neutral, layer.neutral};
  for (int c = 0; c < 3; ++c)
    if (layer.channels[c].data) source_of(layer, layer.channels[c]).read(0, 0, 1, first + c);
  for (int c = 0; c < 3; ++c) key[c] = layer.to_key.row(c, first[0], first[1], first[2]);
}

void weigh(const Layer& layer, const float (&color)[3], int count, const Row (&rows)[4], Row& weight) {
  const float *const a = rows[0], *const b = rows[1], *const c = rows[2], key[3] = {color[0], color[1], color[2]};
  const Layer from = layer;
  const Matrix m = layer.to_key;
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    const float x = a[i], y = b[i], z = c[i];
    weight[i] = key_weight(from, key, m.row(0, x, y, z), m.row(1, x, y, z), m.row(2, x, y, z));
  }
}

void convert(const Matrix& matrix, float max, int count, Row (&rows)[4]) {
  float *const a = rows[0], *const b = rows[1], *const c = rows[2];
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    const float x = a[i], y = b[i], z = c[i];
    a[i] = clamped(matrix.row(0, x, y, z), max);
    b[i] = clamped(matrix.row(1, x, y, z), max);
    c[i] = clamped(matrix.row(2, x, y, z), max);
  }
}

template <Operator Op, int Channels>
void lay_row(const Target& target, const Layer& layer, int count, const Row& weight, const Row (&pad)[4], int at,
             Row (&below)[4]) {
  const float* const s[4] = {pad[0], pad[1], pad[2], pad[3]};
  float* const d[4] = {below[0] + at, below[1] + at, below[2] + at, below[3] + at};
  const Target to = target;
  const auto each = [&](bool opaque_below) {
    Layer from = layer;
    from.opaque_below = opaque_below;  // a constant: gcc does not vectorise a choice by a variable
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) {
      const float source[4] = {s[0][i], s[1][i], s[2][i], s[3][i]};
      float pixel[4] = {d[0][i], d[1][i], d[2][i], d[3][i]};
      lay_pixel<Op, Channels>(to, from, weight[i], source, pixel);
      for (int c = 0; c < Channels; ++c) d[c][i] = pixel[c];
    }
  };
  if (Channels == 4 && layer.opaque_below)
    each(true);
  else
    each(false);
}

/// Copies a layer that hides everything: d + 1 · (s − d) could keep the last bits of d, which may come from an earlier
/// frame.
void replace(const Layer& layer, int count, const Row (&pad)[4], int at, Row (&below)[4]) {
  for (int c = 0; c < 4; ++c) std::copy_n(pad[c], count, below[c] + at);
  if (layer.op != Operator::source) return;
  const Layer from = layer;
  for (int i = at; i < at + count; ++i) below[3][i] = rounded_alpha(from, below[3][i] * from.opacity);
}

/// Lays columns [x0, x1) of a layer over `below`, beginning at column `at` of `below`.
CUDAVISION_WIDE void lay_over(const Target& target, const Layer& layer, const LayerTaps& taps, int y, int x0, int x1,
                              int at, Scratch& scratch, Row (&below)[4]) {
  const int count = x1 - x0;
  for (int c = 0; c < 4; ++c) {
    if (layer.channels[c].data)
      load_row(layer, layer.channels[c], taps[layer.channels[c].shift_x > 0], y, x0, x1, scratch.columns,
               scratch.pad[c]);
    else
      std::fill_n(scratch.pad[c], count, c == 3 ? layer.opaque : layer.neutral);
  }
  if (layer.alpha_scale != 1)
    for (int i = 0; i < count; ++i) scratch.pad[3][i] *= layer.alpha_scale;
  if (layer.keyed) {
    float key[3] = {layer.key[0], layer.key[1], layer.key[2]};
    if (layer.first_pixel) read_first(layer, key);
    weigh(layer, key, count, scratch.pad, scratch.weight);
  } else {
    std::fill_n(scratch.weight, count, 1.0f);
  }
  if (!layer.identity) convert(layer.to_target, target.max, count, scratch.pad);
  if (layer.rounds_samples)
    for (int c = 0; c < 3; ++c)
      for (int i = 0; i < count; ++i) scratch.pad[c][i] = rounded_sample(scratch.pad[c][i]);
  if (layer.hides) return replace(layer, count, scratch.pad, at, below);
  with_operator(layer.op, [&](auto op) {
    if (target.alpha)
      lay_row<op(), 4>(target, layer, count, scratch.weight, scratch.pad, at, below);
    else if (target.gray)
      lay_row<op(), 1>(target, layer, count, scratch.weight, scratch.pad, at, below);
    else
      lay_row<op(), 3>(target, layer, count, scratch.weight, scratch.pad, at, below);
  });
}

// ---- Background and output ------------------------------------------------------------------------------------------

CUDAVISION_WIDE void fill(const Target& target, const Rect& tile, int y, Row (&below)[4]) {
  for (int c = 0; c < 4; ++c) std::fill_n(below[c], tile.width, target.background[c]);
  if (target.background[0] == target.checker[0]) return;
  for (int i = 0; i < tile.width; ++i)
    if (((tile.x + i) ^ y) & 8)
      for (int c = 0; c < 3; ++c) below[c][i] = target.checker[c];
}

/// The mean of a chroma component over 2^shift columns and, if there are two rows, over both rows.
void means(const Rect& tile, bool two_rows, int c, int shift, const Scratch& scratch, Row& to) {
  const float *const top = scratch.below[0][c], *const bottom = scratch.below[1][c];
  const int pairs = tile.width / 2;
  const auto of = [&](int i) { return two_rows ? (top[i] + bottom[i]) * 0.5f : top[i]; };
  if (shift == 2) {
    for (int i = 0; i < subsampled(tile.width, 2); ++i) {
      const int end = std::min(4 * i + 4, tile.width);
      float sum = 0;
      for (int x = 4 * i; x < end; ++x) sum += of(x);
      to[i] = sum / float(end - 4 * i);
    }
    return;
  }
  for (int i = 0; i < pairs; ++i) to[i] = (of(2 * i) + of(2 * i + 1)) * 0.5f;
  if (tile.width % 2) to[pairs] = of(2 * pairs);
}

CUDAVISION_WIDE void write(const Target& target, const Rect& tile, Scratch& scratch) {
  for (int c = 0; c < 5; ++c) {
    const ChannelView& channel = c == 4 ? target.padding : target.channels[c];
    if (!channel.data) continue;
    const int width = subsampled(tile.width, channel.shift_x), height = subsampled(tile.height, channel.shift_y);
    for (int row = 0; row < height; ++row) {
      const bool full_size = c < 4 && channel.shift_x == 0;
      Row& samples = full_size ? scratch.below[row][c] : scratch.weight;
      if (c == 4)
        std::fill_n(samples, width, target.max);
      else if (!full_size)
        means(tile, tile.height > 1, c, channel.shift_x, scratch, samples);
      cpu::Rows{channel, target.sample_bytes, target.shift}.write(tile.x >> channel.shift_x,
                                                                  (tile.y >> channel.shift_y) + row, width, samples);
    }
  }
}

}  // namespace

void find_column_taps(const Layer& layer, LayerTaps& taps) {
  const int grids = layer.channels[1].shift_x > 0 ? 2 : 1;
  for (int chroma = 0; chroma < grids; ++chroma) {
    taps[chroma].resize(std::size_t(layer.visible.width));
    for (int i = 0; i < layer.visible.width; ++i)
      taps[chroma][i] = taps_of(layer.sampling, layer.across[chroma], layer.visible.x + i - layer.place.x);
  }
}

bool covers(const Layer& layer, const Rect& tile) {
  const Rect& v = layer.visible;
  return v.x <= tile.x && v.y <= tile.y && v.x + v.width >= tile.x + tile.width &&
         v.y + v.height >= tile.y + tile.height;
}

std::pair<std::size_t, bool> find_lowest(const std::vector<Layer>& layers, const Rect& tile) {
  std::size_t lowest = layers.size();
  bool hidden = false;
  while (lowest > 0 && !hidden) hidden = layers[--lowest].hides && covers(layers[lowest], tile);
  return {lowest, hidden};
}

void paint_background(const FormatInfo& format, const Target& target, const Rect& tile, Scratch& scratch) {
  const bool checker = target.background[0] != target.checker[0];
  for (int y = tile.y; y < tile.y + tile.height; y += 1 << target.shift_y) {
    const Rect rows{tile.x, y, tile.width, std::min(1 << target.shift_y, tile.y + tile.height - y)};
    if (y > tile.y && !(checker && y % 8 == 0)) {
      repeat_rows(format, target, rows);
      continue;
    }
    for (int row = 0; row < rows.height; ++row) fill(target, rows, y + row, scratch.below[row]);
    write(target, rows, scratch);
  }
}

void compose_rows(const Target& target, const std::vector<Layer>& layers, const std::vector<LayerTaps>& taps,
                  const Rect& tile, Scratch& scratch) {
  const auto [lowest, hidden] = find_lowest(layers, tile);
  for (int row = 0; row < tile.height; ++row) {
    const int y = tile.y + row;
    Row(&below)[4] = scratch.below[row];
    if (!hidden) fill(target, tile, y, below);
    for (std::size_t l = lowest; l < layers.size(); ++l) {
      const Rect& visible = layers[l].visible;
      const int x0 = std::max(tile.x, visible.x), x1 = std::min(tile.x + tile.width, visible.x + visible.width);
      if (x0 >= x1 || y < visible.y || y >= visible.y + visible.height) continue;
      lay_over(target, layers[l], taps[l], y, x0, x1, x0 - tile.x, scratch, below);
    }
  }
  write(target, tile, scratch);
}

}  // namespace cudavision::blend
