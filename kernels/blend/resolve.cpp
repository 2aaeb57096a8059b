// SPDX-License-Identifier: LGPL-2.1-or-later
// Turns the parameters of a frame into a Target and Layers. To add a parameter of pads: add it to Pad, check it in
// validate(), resolve it here into a field of Layer, and use it in arithmetic.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/blend/arithmetic.hpp"

namespace cudavision::blend {
namespace {

/// Finds the components of a picture.
void find_channels(const Image& image, ChannelView (&channels)[4]) {
  for (Role role : {Role::luma, Role::cb, Role::cr, Role::red, Role::green, Role::blue, Role::alpha})
    if (const ChannelView channel = channel_of(image, role); channel.data) channels[component_of(role)] = channel;
}

Packed find_packed(const Image& image) {
  const FormatInfo& format = info(image.geometry.format);
  const ChannelSet& set = format.sets[0];
  const Plane& plane = image.planes[0];
  Packed packed;
  if (set.channels != 4 || !aligned_to(plane.data, plane.pitch, 4 * format.sample_bytes())) return packed;
  packed.data = static_cast<std::uint8_t*>(plane.data);
  for (int c = 0; c < 4; ++c)
    packed.order[set.roles[c] == Role::padding ? 3 : component_of(set.roles[c])] = std::uint8_t(c);
  return packed;
}

Matrix single_precision(const Affine& affine) {
  Matrix matrix;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) matrix.m[r][c] = float(affine.m[r][c]);
  return matrix;
}

void set_background(const ColorCoding& out, const Background& background, Target& target) {
  using Kind = Background::Kind;
  const FormatInfo& format = out.format;
  target.background[3] = background.kind == Kind::transparent ? 0.0f : target.max;
  if (background.kind == Kind::checker) {
    const float step = float(1 << (format.depth - 8)), neutral = float(format.neutral_chroma());
    for (int c = 0; c < 3; ++c) {
      target.background[c] = c == 0 || out.rgb ? 80 * step : neutral;
      target.checker[c] = c == 0 || out.rgb ? 160 * step : neutral;
    }
    target.checker[3] = target.max;
    return;
  }
  const std::uint32_t white = 0xffffffff, argb = background.kind == Kind::color   ? background.argb
                                                 : background.kind == Kind::white ? white
                                                                                  : 0;
  if (background.kind == Kind::color) target.background[3] = std::nearbyint(float(argb >> 24) * target.max / 255);
  const Affine matrix = from_rgb(out);
  for (int c = 0; c < 3; ++c) {
    double sample = matrix.m[c][3];
    for (int k = 0; k < 3; ++k) sample += matrix.m[c][k] * (argb >> (16 - 8 * k) & 255) / 255;
    if (out.gray && c > 0) sample = out.offset[c];
    target.background[c] = float(std::clamp(std::nearbyint(sample), 0.0, double(target.max)));
  }
  std::copy_n(target.background, 4, target.checker);
}

/// The axis on which `place` output pixels show `crop` pixels of the picture, beginning at `begin`, in a plane
/// subsampled by 2^shift.
Axis find_axis(Sampling sampling, int place, int begin, int crop, int shift) {
  const int fraction = 32 - shift;
  const auto rounded_up = [&](std::int64_t n, std::int64_t d) { return ((n << fraction) + d - 1) / d; };
  Axis axis{
      std::int64_t(begin) << fraction, rounded_up(crop, place), begin >> shift, (begin + crop - 1) >> shift, 0, 0};
  if (sampling == Sampling::area && crop > place) {
    axis.per = float(std::ldexp(double(place) / crop, shift));
    return axis;
  }
  axis.start += rounded_up(crop, std::int64_t(2) * place);  // the centre of the first pixel
  if (sampling != Sampling::point && crop != place) {
    axis.start -= std::int64_t(1) << 31;
    axis.weight = 0x1p-24f;
  }
  return axis;
}

/// Sets the sampling of a layer whose place, crop and visible are set.
void set_sampling(Interpolation interpolation, Layer& layer) {
  const Rect &place = layer.place, &crop = layer.crop;
  const bool shrinks = crop.width > place.width || crop.height > place.height;
  layer.unscaled = place.width == crop.width && place.height == crop.height;
  layer.sampling = layer.unscaled || interpolation == Interpolation::nearest ? Sampling::point
                   : interpolation == Interpolation::area && shrinks         ? Sampling::area
                                                                             : Sampling::linear;
  for (int i = 0; i < 2; ++i) {
    const ChannelView& chroma = layer.channels[1];
    layer.across[i] = find_axis(layer.sampling, place.width, crop.x, crop.width, i * chroma.shift_x);
    layer.down[i] = find_axis(layer.sampling, place.height, crop.y, crop.height, i * chroma.shift_y);
  }
}

bool soft(const Key& key) { return key.mode != Key::Mode::none && key.softness > 0; }

void set_colors(const Key& key, const ColorCoding& in, const ColorCoding& out, Layer& layer) {
  const Affine to_target = conversion(in, out);
  layer.to_target = single_precision(to_target);
  layer.identity = true;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) layer.identity = layer.identity && to_target.m[r][c] == (r == c);
  layer.to_key = single_precision(diagonal(255, 255, 255).after(to_rgb(in)));
  for (int c = 0; c < 3; ++c) layer.key[c] = float(key.color[c] * 255);
  layer.keyed = key.mode != Key::Mode::none;
  layer.first_pixel = key.mode == Key::Mode::first_pixel;
  // The weight of a hard key becomes 1 slightly above its tolerance, so that rounding errors do not separate equal
  // samples.
  const double scale = soft(key) ? std::min(1 / key.softness, 1e30) : 1e30;
  layer.key_scale = float(scale);
  layer.key_offset = float(scale * (soft(key) ? key.tolerance : key.tolerance + 0.001));
}

/// Whether the samples of a layer with `source`, `over` or `add` can be laid over composed bytes. All other fields are
/// set.
bool is_direct(const FormatInfo& format, const Target& target, const Layer& layer) {
  const bool pixels = format.sets[0].channels == 4, pairs = format.is_semi_planar();
  if (layer.format != format.format || format.depth > 8 || format.sets[0].shares_plane() || layer.keyed ||
      !layer.identity)
    return false;
  // Kernels need interleaved Cb and Cr at half the width. They support neither planes of a quarter of the width nor
  // alpha planes.
  if (target.shift_x > 1 || (pairs && target.shift_x != 1) || format.alpha_set() >= 0) return false;
  if (pixels && !(layer.packed.data && target.packed.data)) return false;
  if (!layer.hides && !(pixels && target.alpha && layer.op == Operator::over)) return false;
  const auto aligned = [](const ChannelView(&c)[4]) {
    return aligned_to(std::min(c[1].data, c[2].data), c[1].pitch, 2);
  };
  if (pairs && !(aligned(layer.channels) && aligned(target.channels))) return false;
  for (int c = 0; c < 4; ++c)
    if (std::max(layer.channels[c].pitch, target.channels[c].pitch) > std::numeric_limits<int>::max()) return false;
  for (int i = 0; i < 2; ++i)  // the two samples of bilinear interpolation must be adjacent
    if (layer.across[i].low == layer.across[i].high) return false;
  return true;
}

/// Sets the remaining fields, which depend on operator and alpha. Sampling and colours are already set.
void set_blending(const Pad& pad, const ColorCoding& out, const Target& target, Division division, Layer& layer) {
  const bool average = pad.op == Operator::average, source = pad.op == Operator::source;
  const bool over = pad.op == Operator::over || pad.op == Operator::add;
  const bool opaque = target.background[3] == target.max;
  const double steps = std::floor(pad.alpha * target.max);
  layer.op = pad.op;
  layer.opacity = average || pad.alpha == 1 ? float(pad.alpha)
                                            : float(steps / (target.alpha || source ? target.max : target.max + 1));
  if (out.format.depth == 8 && !soft(pad.key)) {
    // compositor divides colours by 255 only over an opaque background and in formats with alpha;
    // it rounds other colours down.
    layer.rounding = round_bias;
    layer.alpha_bias = division == Division::nearest ? 0 : down_bias;
    layer.color_bias = target.alpha && opaque ? layer.alpha_bias : down_bias;
    layer.rounds_samples = (over || source) && (!layer.unscaled || !layer.identity);
  }
  layer.opaque_below = opaque;
  layer.hides = !layer.keyed && (source || (pad.alpha == 1 && (average || (over && !layer.channels[3].data))));
  const auto even = [](int offset, int shift) { return offset % (1 << shift) == 0; };
  layer.copies = layer.hides && layer.identity && layer.unscaled && layer.format == out.format.format &&
                 layer.shift == 0 && !target.padding.data && (!target.alpha || layer.opacity == 1) &&
                 even(layer.crop.x - layer.place.x, target.shift_x) &&
                 even(layer.crop.y - layer.place.y, target.shift_y);
  const Rect& v = layer.visible;
  const auto even_edges = [&](int begin, int length, int shift, int side) {
    return even(begin, shift) && (even(begin + length, shift) || begin + length == side);
  };
  layer.even_edges = even_edges(v.x, v.width, target.shift_x, target.width) &&
                     even_edges(v.y, v.height, target.shift_y, target.height);
  layer.direct = (over || source) && is_direct(out.format, target, layer);
}

}  // namespace

ChannelView whole_plane(const FormatInfo& format, const ChannelSet& set, const ChannelView (&channels)[4]) {
  int c = 0;
  while (component_of(set.roles[c]) < 0) ++c;
  ChannelView plane = channels[component_of(set.roles[c])];
  plane.data -= c * format.sample_bytes();
  return plane;
}

Target make_target(const Geometry& geometry, const ColorCoding& out) {
  Target target{};
  target.width = geometry.width;
  target.height = geometry.height;
  target.sample_bytes = std::uint8_t(out.format.sample_bytes());
  target.shift = out.format.shift;
  target.gray = out.gray;
  target.alpha = out.format.has_alpha();
  target.max = float(out.format.max_value());
  target.per_max = 1 / target.max;
  target.to_rgb = single_precision(to_rgb(out));
  target.from_rgb = single_precision(from_rgb(out));
  return target;
}

void set_frame(const Image& dst, const ColorCoding& out, const Background& background, Target& target) {
  find_channels(dst, target.channels);
  target.padding = channel_of(dst, Role::padding);
  target.packed = find_packed(dst);
  target.shift_x = target.channels[1].shift_x;
  target.shift_y = target.channels[1].shift_y;
  set_background(out, background, target);
}

bool resolve(const Pad& pad, const Image& src, const ColorCoding& out, const Target& target, Division division,
             Layer& layer) {
  if (pad.alpha == 0 || pad.place.empty()) return false;
  const Geometry& geometry = src.geometry;
  const ColorCoding in(geometry.format, pad.color.matrix, pad.color.limited);
  const int max = in.format.max_value();
  layer = {};
  find_channels(src, layer.channels);
  layer.packed = find_packed(src);
  layer.place = pad.place;
  layer.crop = pad.crop.empty() ? Rect{0, 0, geometry.width, geometry.height} : pad.crop;
  layer.visible = intersection(pad.place, {0, 0, target.width, target.height});
  if (layer.visible.empty()) return false;
  layer.alpha_scale = target.max / float(max);
  layer.neutral = float(in.format.neutral_chroma());
  layer.opaque = float(max);
  layer.format = geometry.format;
  layer.sample_bytes = std::uint8_t(in.format.sample_bytes());
  layer.shift = in.format.shift;
  layer.max = std::uint16_t(max);
  set_sampling(pad.interpolation, layer);
  set_colors(pad.key, in, out, layer);
  set_blending(pad, out, target, division, layer);
  return true;
}

}  // namespace cudavision::blend
