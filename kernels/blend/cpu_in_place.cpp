// SPDX-License-Identifier: LGPL-2.1-or-later
// find_in_place() decides, lay_in_place() chooses one of the loops:
//
//   copy, copy_samples   the layer replaces the samples below
//   mix                  one weight for all samples, in 1/256: over and add without alpha
//   mix_rounded          one weight for all samples, in float32: average; over and add of more than 8 bits
//   copy_faded           source with a smaller alpha
//   over_opaque          over and add by the pixel's alpha, over an opaque background
//   over_pixels          over and add by the pixel's alpha, over a background with alpha
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")  // vectorised
#endif
#include "kernels/blend/cpu_in_place.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cpu_patch.hpp"
#include "kernels/cpu/wide.hpp"

namespace cudavision::blend {
namespace {

/// v / 255 for v up to 255². A bias of 128 rounds to nearest, a bias of 1 rounds down.
template <typename T>
constexpr T per_255(T v, T bias) {
  const T sum = T(v + bias);
  return T(T(sum + (sum >> 8)) >> 8);
}
template <typename T>
T bias_255(const Layer& layer) {
  return layer.alpha_bias < 0 ? 1 : 128;
}

/// Copies 16-bit samples and limits them to the layer's largest sample.
CUDAVISION_WIDE void copy_samples(const Patch& patch, std::uint16_t max) {
  patch.each_row([&](auto* above, auto*, auto* to, int bytes) {
    const auto* const s = reinterpret_cast<const std::uint16_t*>(above);
    auto* const d = reinterpret_cast<std::uint16_t*>(to);
    const std::uint16_t most = max;
    const int count = bytes / 2;
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) d[i] = s[i] < most ? s[i] : most;
  });
}

/// Computes results that are fractions, and rounds them when storing them. Uses the arithmetic of lay_pixel(), so tiles
/// composed in place equal other tiles.
template <typename T>
void mix_rounded(const Patch& patch, float weight, T max) {
  patch.each_row([&](auto* above, auto* below, auto* to, int bytes) {
    const T *const s = reinterpret_cast<const T*>(above), *const b = reinterpret_cast<const T*>(below);
    T* const d = reinterpret_cast<T*>(to);
    const int count = bytes / int(sizeof(T));
    const float of_above = weight;
    const T most = max;
    const auto sample = [&](T stored) { return float(sizeof(T) == 1 || stored < most ? stored : most); };
#pragma GCC ivdep
    for (int i = 0; i < count; ++i) {
      const float sum = sample(b[i]) + of_above * (sample(s[i]) - sample(b[i])) + round_bias;
      Word bits;  // the lowest bits are the sample, because floats around 1.5 · 2^23 differ by 1
      std::memcpy(&bits, &sum, sizeof bits);
      d[i] = T(bits);
    }
  });
}
CUDAVISION_WIDE void mix_rounded(const Layer& layer, const Patch& patch, float weight) {
  layer.sample_bytes == 1 ? mix_rounded<std::uint8_t>(patch, weight, 255)
                          : mix_rounded<std::uint16_t>(patch, weight, layer.max);
}

/// Operator::source with a smaller alpha. `bit`: position of alpha in the pixel's word; `opacity`: in 1/255.
CUDAVISION_WIDE void copy_faded(const Layer& layer, const Patch& patch, int bit, unsigned opacity) {
  const unsigned bias = bias_255<unsigned>(layer);
  patch.each_row([&](auto* s, auto*, auto* d, int bytes) {
#pragma GCC ivdep
    for (int i = 0; i < bytes; i += 4) {
      const Word pixel = load_word(s + i);
      store_word(d + i, (pixel & ~(Word(255) << bit)) | per_255((pixel >> bit & 255) * opacity, bias) << bit);
    }
  });
}

/// Over and add by the pixel's own alpha, if everything below counts as opaque.
CUDAVISION_WIDE void over_opaque(const Layer& layer, Patch patch, int bit, unsigned opacity) {
  const auto bias = bias_255<std::uint16_t>(layer);
  patch.set = Word(255) << bit;
  patch.each_row([&](auto* s, auto* b, auto* d, int row_bytes) {
    // The pixel's weight, repeated for each byte: loops over bytes vectorise better than loops over pixels.
    std::uint8_t weights[1024];
    for (int left = row_bytes; left > 0;
         left -= int(sizeof weights), s += sizeof weights, b += sizeof weights, d += sizeof weights) {
      const int bytes = std::min(int(sizeof weights), left);
      for (int i = 0; i < bytes; i += 4)
        store_word(weights + i, per_255<unsigned>((load_word(s + i) >> bit & 255) * opacity, bias) * 0x01010101u);
#pragma GCC ivdep
      for (int i = 0; i < bytes; ++i) {
        const std::uint16_t weight = weights[i], rest = std::uint16_t(255 - weight);
        d[i] = std::uint8_t(per_255(std::uint16_t(std::uint16_t(s[i] * weight) + std::uint16_t(b[i] * rest)), bias));
      }
    }
  });
}

/// Over and add, pixel by pixel, if the picture below has its own alpha.
template <Operator Op>
void over_pixels(const Target& target, const Layer& layer, const Patch& patch, int bit) {
  const Target to = target;
  Layer from = layer;
  from.opaque_below = false;  // a constant: gcc does not vectorise a choice by a variable
  // The three colour bytes may be in any order, because all colours are treated alike.
  const int shifts[4] = {bit == 0 ? 8 : 0, bit == 0 ? 16 : 8, bit == 0 ? 24 : 16, bit};
  patch.each_row([&](auto* s, auto* b, auto* d, int bytes) {
#pragma GCC ivdep
    for (int i = 0; i < bytes; i += 4) {
      const Word above = load_word(s + i), below = load_word(b + i);
      float source[4], pixel[4];
      for (int c = 0; c < 4; ++c)
        source[c] = float(int(above >> shifts[c] & 255)), pixel[c] = float(int(below >> shifts[c] & 255));
      lay_pixel<Op, 4>(to, from, 1, source, pixel);
      Word word = 0;
      for (int c = 0; c < 4; ++c) word |= Word(int(pixel[c])) << shifts[c];
      store_word(d + i, word);
    }
  });
}
CUDAVISION_WIDE void over_pixels(const Target& target, const Layer& layer, const Patch& patch, int bit) {
  layer.op == Operator::add ? over_pixels<Operator::add>(target, layer, patch, bit)
                            : over_pixels<Operator::over>(target, layer, patch, bit);
}

}  // namespace

CUDAVISION_WIDE void copy(const Patch& patch) {
  patch.each_row([](auto* s, auto*, auto* d, int bytes) { std::memcpy(d, s, std::size_t(bytes)); });
}
CUDAVISION_WIDE void mix(const Patch& patch, int opacity) {
  const std::uint16_t of_above = std::uint16_t(opacity), of_below = std::uint16_t(256 - opacity);
  patch.each_row([&](auto* s, auto* b, auto* d, int bytes) {
#pragma GCC ivdep
    for (int i = 0; i < bytes; ++i) d[i] = std::uint8_t(std::uint16_t(s[i] * of_above + b[i] * of_below) >> 8);
  });
}

bool copies_samples(const Target& target, const Layer& layer) {
  if (layer.op == Operator::source && !target.alpha) return true;
  const bool whole = !target.alpha || layer.op == Operator::source || layer.op == Operator::average;
  return whole && layer.opacity == 1;
}
int opacity_256(const Target& target, const Layer& layer) {
  return copies_samples(target, layer) ? 256 : int(layer.opacity * 256);
}

InPlace find_in_place(const FormatInfo& format, const Target& target, const Layer& layer) {
  if (layer.format != format.format || format.shift > 0 || format.alpha_set() >= 0 || !layer.identity ||
      !layer.unscaled || layer.keyed)
    return InPlace::no;
  // Whether the chroma samples of the layer coincide with chroma samples of the output.
  const auto fits = [](int shift, int visible, int length, int place, int crop, int size) {
    const int odd = (1 << shift) - 1, end = visible + length;
    return ((visible | (crop - place)) & odd) == 0 && ((end & odd) == 0 || end == size);
  };
  const Rect& v = layer.visible;
  if (!fits(target.shift_x, v.x, v.width, layer.place.x, layer.crop.x, target.width) ||
      !fits(target.shift_y, v.y, v.height, layer.place.y, layer.crop.y, target.height)) {
    const bool integers =
        layer.op == Operator::average ? layer.opacity == 1 : layer.rounding != 0 && layer.op <= Operator::add;
    return integers && format.depth == 8 && target.shift_x <= 1 && !format.sets[0].shares_plane() ? InPlace::phases
                                                                                                  : InPlace::no;
  }
  switch (layer.op) {
    case Operator::source:
    case Operator::over:
    case Operator::add:
      if (layer.rounding != 0 || copies_samples(target, layer)) return InPlace::yes;
      return target.alpha ? InPlace::no : InPlace::last;
    case Operator::average:
      return copies_samples(target, layer) ? InPlace::yes : InPlace::last;
    case Operator::subtract:
    case Operator::multiply:
    case Operator::screen:
    case Operator::difference:
    case Operator::min:
    case Operator::max:
      break;
  }
  return InPlace::no;
}

void lay_in_place(const FormatInfo& format, const Target& target, const Layer& layer, const Layer* base,
                  const Rect& part, bool chroma) {
  each_plane(format, [&](const ChannelSet& set) {
    if (!chroma && set.shift_x > 0) return;
    const auto shown = [&](const Layer& of) {
      const Interleaved plane(format, set, of.channels);
      return std::pair(plane.at(part.x - of.place.x + of.crop.x, part.y - of.place.y + of.crop.y), plane.all.pitch);
    };
    const Interleaved dst(format, set, target.channels);
    const auto to = std::pair(dst.at(part.x, part.y), dst.all.pitch), above = shown(layer),
               below = base ? shown(*base) : to;
    const Word padding = target.padding.data ? Word(255) << dst.bit(target.padding) : 0;
    const Patch patch{above.first,           below.first,           to.first, above.second, below.second, to.second,
                      dst.bytes(part.width), dst.rows(part.height), padding};
    const int alpha_bit = target.alpha ? dst.bit(target.channels[3]) : 0;
    const unsigned opacity = unsigned(std::nearbyint(layer.opacity * target.max));
    const bool can_exceed = layer.sample_bytes == 2 && layer.max < 0xffff;
    if (copies_samples(target, layer))
      can_exceed ? copy_samples(patch, layer.max) : copy(patch);
    else if (layer.op == Operator::average)
      mix_rounded(layer, patch, layer.opacity);
    else if (layer.rounding == 0)
      mix_rounded(layer, patch, layer.opaque * layer.opacity * target.per_max);
    else if (!target.alpha)
      mix(patch, opacity_256(target, layer));
    else if (layer.op == Operator::source)
      copy_faded(layer, patch, alpha_bit, opacity);
    else if (layer.opaque_below)
      over_opaque(layer, patch, alpha_bit, opacity);
    else
      over_pixels(target, layer, patch, alpha_bit);
  });
}

void repeat_rows(const FormatInfo& format, const Target& target, const Rect& rows) {
  each_plane(format, [&](const ChannelSet& set) {
    const Interleaved dst(format, set, target.channels);
    std::uint8_t* const to = dst.at(rows.x, rows.y);
    copy({to - dst.all.pitch, nullptr, to, dst.all.pitch, 0, dst.all.pitch, dst.bytes(rows.width),
          dst.rows(rows.height), 0});
  });
}

}  // namespace cudavision::blend
