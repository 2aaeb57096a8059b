// SPDX-License-Identifier: LGPL-2.1-or-later
// Tiles are composed in the cache, pad by pad. Where pads have the output's samples, and what comes of them are whole numbers, this
// is done in place, in those samples; else in rows of float planes, which are written once.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")  // vectorised
#endif
#include <algorithm>
#include <opencv2/core.hpp>
#include <type_traits>
#include <utility>

#include "kernels/blend/blend.hpp"
#include "kernels/blend/cpu_in_place.hpp"
#include "kernels/cpu/wide.hpp"

namespace cudavision::detail {
namespace {

constexpr int block = 1024;  ///< columns composed at a time: even
constexpr int band = 16;     ///< and rows: even, so that a tile stays in the cache

using Row = float[block];

/// Memory of one thread at work, kept between frames.
struct Scratch {
  Row below[2][4];  ///< of the rows that share chroma
  Row pad[4], weight;
  std::vector<float> columns = std::vector<float>(16384 + 1);  ///< of a picture, weighted down the rows
};

/// Adds `count` samples that lie Step apart, times a weight, to what is there; or sets it.
template <typename T, int Step>
void load(const BlendLayer& layer, const std::uint8_t* from, int count, float weight, bool add, float* __restrict to) {
  const T* const samples = reinterpret_cast<const T*>(from);
  const int shift = layer.shift, max = layer.max;
  const auto sample = [&](int i) {  // as blend_sample(), of integers that gcc vectorises
    const int value = samples[i * Step] >> shift;
    return float(sizeof(T) == 1 || value < max ? value : max);
  };
  if (add)
    for (int i = 0; i < count; ++i) to[i] += weight * sample(i);
  else if (weight != 1)
    for (int i = 0; i < count; ++i) to[i] = weight * sample(i);
  else
    for (int i = 0; i < count; ++i) to[i] = sample(i);
}

template <typename T, int Step>
void store(const float* from, int count, int shift, std::uint8_t* to) {
  T* const samples = reinterpret_cast<T*>(to);
  for (int i = 0; i < count; ++i) samples[i * Step] = T(int(blend_rounded(from[i])) << shift);
}

/// Calls f with a sample and, as a constant, the samples from one to the next.
template <typename F>
void with_step(int sample_bytes, int step, F&& f) {
  const auto typed = [&](auto sample) {
    switch (step / sample_bytes) {
      case 1:
        return f(sample, std::integral_constant<int, 1>());
      case 2:
        return f(sample, std::integral_constant<int, 2>());
      case 3:
        return f(sample, std::integral_constant<int, 3>());
      default:
        return f(sample, std::integral_constant<int, 4>());
    }
  };
  return sample_bytes == 1 ? typed(std::uint8_t()) : typed(std::uint16_t());
}

/// The row of a layer's component at output row y, as it lies at columns [x0, x1). `taps`: of the layer's visible columns.
void load_row(const BlendLayer& layer, const BlendChannel& channel, const std::vector<BlendTaps>& taps, int y, int x0, int x1,
              std::vector<float>& columns, float* to) {
  const BlendTaps rows = blend_taps(layer.sampling, layer.down[channel.shift_y], y - layer.place.y);
  const BlendTaps* const at = taps.data() + (x0 - layer.visible.x);
  const int count = x1 - x0, first = at[0].first, last = at[count - 1].last;
  const bool plain = channel.shift_x == 0 && layer.place.width == layer.crop.width;
  float* const sums = plain ? to : columns.data();
  for (int row = rows.first; row <= rows.last; ++row)
    with_step(layer.sample_bytes, channel.step, [&](auto sample, auto step) {
      load<decltype(sample), step()>(layer, channel.data + row * channel.pitch + std::ptrdiff_t(first) * channel.step,
                                     last - first + 1, rows.of(row), row > rows.first, sums);
    });
  if (plain) return;
  for (int i = 0; i < count; ++i) {
    const BlendTaps& t = at[i];
    float sum = t.first_weight * sums[t.first - first] + t.last_weight * sums[t.last - first];
    for (int j = t.first + 1; j < t.last; ++j) sum += t.weight * sums[j - first];
    to[i] = sum;
  }
}

// What these loops do not change is copied: then no store can change it, and they are vectorised.

void weigh(const BlendLayer& layer, const float (&color)[3], int count, const Row (&rows)[4], Row& weight) {
  const float *const a = rows[0], *const b = rows[1], *const c = rows[2], key[3] = {color[0], color[1], color[2]};
  const BlendLayer from = layer;
  const BlendMatrix m = layer.to_key;
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    const float x = a[i], y = b[i], z = c[i];
    weight[i] = blend_key_weight(from, key, m.row(0, x, y, z), m.row(1, x, y, z), m.row(2, x, y, z));
  }
}

void convert(const BlendMatrix& matrix, float max, int count, Row (&rows)[4]) {
  float *const a = rows[0], *const b = rows[1], *const c = rows[2];
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) {
    const float x = a[i], y = b[i], z = c[i];
    a[i] = blend_clamped(matrix.row(0, x, y, z), max);
    b[i] = blend_clamped(matrix.row(1, x, y, z), max);
    c[i] = blend_clamped(matrix.row(2, x, y, z), max);
  }
}

template <BlendOperator Op, int Channels>
void blend_row(const BlendTarget& target, const BlendLayer& layer, int count, const Row& weight, const Row (&pad)[4], int at,
               Row (&below)[4]) {
  const float* const s[4] = {pad[0], pad[1], pad[2], pad[3]};
  float* const d[4] = {below[0] + at, below[1] + at, below[2] + at, below[3] + at};
  const BlendTarget to = target;
  const auto each = [&](bool opaque_below) {
    BlendLayer from = layer;
    from.opaque_below = opaque_below;  // a constant: gcc vectorises no choice by a variable
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) {
      const float source[4] = {s[0][i], s[1][i], s[2][i], s[3][i]};
      float pixel[4] = {d[0][i], d[1][i], d[2][i], d[3][i]};
      blend_pixel<Op, Channels>(to, from, weight[i], source, pixel);
      for (int c = 0; c < Channels; ++c) d[c][i] = pixel[c];
    }
  };
  if (Channels == 4 && layer.opaque_below)
    each(true);
  else
    each(false);
}

/// A layer that hides all: computed from what is below, the result would hold its last bits, which may be of another frame.
void replace(const BlendLayer& layer, int count, const Row (&pad)[4], int at, Row (&below)[4]) {
  for (int c = 0; c < 4; ++c) std::copy_n(pad[c], count, below[c] + at);
  if (layer.op != BlendOperator::source) return;
  const BlendLayer from = layer;
  for (int i = at; i < at + count; ++i) below[3][i] = blend_rounded_alpha(from, below[3][i] * from.coverage);
}

template <int Channels, typename... Arguments>
void blend_with(BlendOperator op, Arguments&&... a) {
  switch (op) {
    case BlendOperator::source:
      return blend_row<BlendOperator::source, Channels>(a...);
    case BlendOperator::over:
      return blend_row<BlendOperator::over, Channels>(a...);
    case BlendOperator::add:
      return blend_row<BlendOperator::add, Channels>(a...);
    case BlendOperator::subtract:
      return blend_row<BlendOperator::subtract, Channels>(a...);
    case BlendOperator::multiply:
      return blend_row<BlendOperator::multiply, Channels>(a...);
    case BlendOperator::screen:
      return blend_row<BlendOperator::screen, Channels>(a...);
    case BlendOperator::difference:
      return blend_row<BlendOperator::difference, Channels>(a...);
    case BlendOperator::min:
      return blend_row<BlendOperator::min, Channels>(a...);
    case BlendOperator::max:
      return blend_row<BlendOperator::max, Channels>(a...);
    case BlendOperator::average:
      return blend_row<BlendOperator::average, Channels>(a...);
  }
}

/// Of the visible columns, of a plane not subsampled and of one that is.
using LayerTaps = std::array<std::vector<BlendTaps>, 2>;

/// The key of the picture's first pixel.
void read_first(const BlendLayer& layer, float (&key)[3]) {
  float first[3];
  for (int c = 0; c < 3; ++c) {
    const std::uint8_t* at = layer.channels[c].data;
    first[c] = !at ? layer.neutral
                   : float(layer.sample_bytes == 1 ? blend_sample(layer, *at)
                                                   : blend_sample(layer, *reinterpret_cast<const std::uint16_t*>(at)));
  }
  for (int c = 0; c < 3; ++c) key[c] = layer.to_key.row(c, first[0], first[1], first[2]);
}

CUDAVISION_WIDE void fill(const BlendTarget& target, const Rect& tile, int y, Row (&below)[4]) {
  for (int c = 0; c < 4; ++c) std::fill_n(below[c], tile.width, target.background[c]);
  if (target.background[0] == target.checker[0]) return;
  for (int i = 0; i < tile.width; ++i)
    if (((tile.x + i) ^ y) & 8)
      for (int c = 0; c < 3; ++c) below[c][i] = target.checker[c];
}

CUDAVISION_WIDE void lay_over(const BlendTarget& target, const BlendLayer& layer, const LayerTaps& taps, int y, int x0, int x1,
                              int at, Scratch& scratch, Row (&below)[4]) {
  const int count = x1 - x0;
  for (int c = 0; c < 4; ++c) {
    if (layer.channels[c].data)
      load_row(layer, layer.channels[c], taps[layer.channels[c].shift_x], y, x0, x1, scratch.columns, scratch.pad[c]);
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
      for (int i = 0; i < count; ++i) scratch.pad[c][i] = blend_rounded_sample(scratch.pad[c][i]);
  if (layer.hides)
    replace(layer, count, scratch.pad, at, below);
  else if (target.alpha)
    blend_with<4>(layer.op, target, layer, count, scratch.weight, scratch.pad, at, below);
  else if (target.gray)
    blend_with<1>(layer.op, target, layer, count, scratch.weight, scratch.pad, at, below);
  else
    blend_with<3>(layer.op, target, layer, count, scratch.weight, scratch.pad, at, below);
}

/// Chroma of pairs of columns, and of two rows where there are two.
void means(const Rect& tile, bool two_rows, int c, const Scratch& scratch, Row& to) {
  const float *const top = scratch.below[0][c], *const bottom = scratch.below[1][c];
  const int pairs = tile.width / 2;
  const auto of = [&](int i) { return two_rows ? (top[i] + bottom[i]) * 0.5f : top[i]; };
  for (int i = 0; i < pairs; ++i) to[i] = (of(2 * i) + of(2 * i + 1)) * 0.5f;
  if (tile.width % 2) to[pairs] = of(2 * pairs);
}

CUDAVISION_WIDE void write(const BlendTarget& target, const Rect& tile, Scratch& scratch) {
  for (int c = 0; c < 5; ++c) {
    const BlendChannel& channel = c == 4 ? target.padding : target.channels[c];
    if (!channel.data) continue;
    const int width = subsampled(tile.width, channel.shift_x), height = subsampled(tile.height, channel.shift_y);
    for (int row = 0; row < height; ++row) {
      const bool own = c < 4 && channel.shift_x == 0;
      Row& samples = own ? scratch.below[row][c] : scratch.weight;
      if (c == 4)
        std::fill_n(samples, width, target.max);
      else if (!own)
        means(tile, tile.height > 1, c, scratch, samples);
      with_step(target.sample_bytes, channel.step, [&](auto sample, auto step) {
        store<decltype(sample), step()>(samples, width, target.shift,
                                        channel.data + ((tile.y >> channel.shift_y) + row) * channel.pitch +
                                            std::ptrdiff_t(tile.x >> channel.shift_x) * channel.step);
      });
    }
  }
}

class CpuBlend final : public Blend {
 public:
  CpuBlend(const Geometry& geometry, const BlendColor& color, BlendDivision division)
      : Blend(geometry, color, division, Backend::cpu),
        scratch_(std::size_t(std::max(1, cv::getNumThreads()))),
        taps_(blend_max_pads) {}

 private:
  Status compute(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue) override {
    const FormatInfo& format = info(geometry().format);
    bool general = format.sets[0].shares_plane() && target.width % 2;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      in_place_[l] = find_in_place(format, target, layers[l]);
      general = general || in_place_[l] == InPlace::no || (in_place_[l] == InPlace::last && l + 1 < layers.size());
    }
    if (general) find_taps(layers);
    const int groups = subsampled(target.height, target.shift_y), jobs = std::min(groups, int(scratch_.size()));
    cv::parallel_for_(
        {0, jobs},
        [&](const cv::Range& range) {
          for (int job = range.start; job < range.end; ++job) {
            const int end = std::min(target.height, int(long(groups) * (job + 1) / jobs) << target.shift_y);
            for (int y = int(long(groups) * job / jobs) << target.shift_y; y < end; y += band)
              for (int x = 0; x < target.width; x += block)
                compose(target, layers, {x, y, std::min(block, target.width - x), std::min(band, end - y)}, scratch_[job]);
          }
        },
        jobs);
    return {};
  }

  void find_taps(const std::vector<BlendLayer>& layers) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const BlendLayer& layer = layers[l];
      for (int shift = 0; shift <= layer.channels[1].shift_x; ++shift) {
        taps_[l][shift].resize(std::size_t(layer.visible.width));
        for (int i = 0; i < layer.visible.width; ++i)
          taps_[l][shift][i] = blend_taps(layer.sampling, layer.across[shift], layer.visible.x + i - layer.place.x);
      }
    }
  }

  void compose(const BlendTarget& target, const std::vector<BlendLayer>& layers, const Rect& tile, Scratch& scratch) {
    if (compose_in_place(target, layers, tile, scratch)) return;
    for (int y = tile.y; y < tile.y + tile.height; y += 1 << target.shift_y)
      compose_rows(target, layers, {tile.x, y, tile.width, std::min(1 << target.shift_y, tile.y + tile.height - y)}, scratch);
  }

  /// False: nothing was done.
  bool compose_in_place(const BlendTarget& target, const std::vector<BlendLayer>& layers, const Rect& tile, Scratch& scratch) {
    const FormatInfo& format = info(geometry().format);
    if (format.sets[0].shares_plane() && tile.width % 2) return false;  // of the byte that is in no picture
    const auto [lowest, hidden] = find_lowest(layers, tile);
    bool more = true;
    for (std::size_t l = lowest; l < layers.size(); ++l) {
      if (intersection(layers[l].visible, tile).empty()) continue;
      if (!more || in_place_[l] == InPlace::no) return false;
      more = in_place_[l] == InPlace::yes;
    }
    if (!hidden) paint_background(format, target, tile, scratch);
    // A picture that would be copied, to be laid over at once, is read where it lies.
    const bool skip =
        hidden && lowest + 1 < layers.size() && copies_samples(target, layers[lowest]) && covers(layers[lowest + 1], tile);
    for (std::size_t l = lowest + skip; l < layers.size(); ++l)
      if (const Rect part = intersection(layers[l].visible, tile); !part.empty())
        lay_in_place(format, target, layers[l], skip && l == lowest + 1 ? &layers[lowest] : nullptr, part);
    return true;
  }

  /// What lies below all. Rows like those before are copied.
  static void paint_background(const FormatInfo& format, const BlendTarget& target, const Rect& tile, Scratch& scratch) {
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

  /// Rows that share chroma, in floats.
  void compose_rows(const BlendTarget& target, const std::vector<BlendLayer>& layers, const Rect& tile, Scratch& scratch) {
    const auto [lowest, hidden] = find_lowest(layers, tile);
    for (int row = 0; row < tile.height; ++row) {
      const int y = tile.y + row;
      Row(&below)[4] = scratch.below[row];
      if (!hidden) fill(target, tile, y, below);
      for (std::size_t l = lowest; l < layers.size(); ++l) {
        const Rect& visible = layers[l].visible;
        const int x0 = std::max(tile.x, visible.x), x1 = std::min(tile.x + tile.width, visible.x + visible.width);
        if (x0 >= x1 || y < visible.y || y >= visible.y + visible.height) continue;
        lay_over(target, layers[l], taps_[l], y, x0, x1, x0 - tile.x, scratch, below);
      }
    }
    write(target, tile, scratch);
  }

  /// The lowest layer that is seen in a tile, and whether it hides all below.
  static std::pair<std::size_t, bool> find_lowest(const std::vector<BlendLayer>& layers, const Rect& tile) {
    std::size_t lowest = layers.size();
    bool hidden = false;
    while (lowest > 0 && !hidden) hidden = layers[--lowest].hides && covers(layers[lowest], tile);
    return {lowest, hidden};
  }

  static bool covers(const BlendLayer& layer, const Rect& tile) {
    const Rect& v = layer.visible;
    return v.x <= tile.x && v.y <= tile.y && v.x + v.width >= tile.x + tile.width && v.y + v.height >= tile.y + tile.height;
  }

  std::vector<Scratch> scratch_;
  std::vector<LayerTaps> taps_;  ///< by layer
  std::array<InPlace, blend_max_pads> in_place_{};
};

}  // namespace

Result<std::unique_ptr<Blend>> make_blend_cpu(const Geometry& geometry, const BlendColor& color, BlendDivision division) {
  return std::unique_ptr<Blend>(std::make_unique<CpuBlend>(geometry, color, division));
}

}  // namespace cudavision::detail
