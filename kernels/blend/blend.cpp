// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/blend/blend.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {
namespace {

using detail::BlendAxis;
using detail::BlendChannel;
using detail::BlendLayer;
using detail::BlendMatrix;
using detail::BlendSampling;
using detail::BlendTarget;

Status out_of_range(const char* name, double value, const char* allowed) {
  char text[160];
  std::snprintf(text, sizeof text, "%s is %g: it must be %s", name, value, allowed);
  return Status::settings(text);
}

bool has_role(const FormatInfo& format, Role role) {
  for (int i = 0; i < format.set_count; ++i)
    for (int c = 0; c < format.sets[i].channels; ++c)
      if (format.sets[i].roles[c] == role) return true;
  return false;
}

/// A format's components as numbers: what they are of R'G'B' or Y'CbCr, as (sample − offset) / scale.
struct Samples {
  Samples(Format of, const BlendColor& color)
      : format(info(of)), rgb(has_role(format, Role::red)), gray(!rgb && !has_role(format, Role::cb)) {
    const double step = 1 << (format.depth - 8);
    offset[0] = color.limited ? 16 * step : 0;
    scale[0] = color.limited ? 219 * step : format.max_value();
    for (int c = 1; c < 3; ++c) {
      offset[c] = rgb ? offset[0] : format.neutral_chroma();
      scale[c] = color.limited && !rgb ? 224 * step : scale[0];
    }
    weights = luma_weights(color.matrix);
  }

  const FormatInfo& format;
  bool rgb, gray;
  double offset[3], scale[3];
  LumaWeights weights;
};

/// Rows of a matrix and an offset.
struct Affine {
  double m[3][4] = {};

  /// This after `first`.
  Affine after(const Affine& first) const {
    Affine both;
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 4; ++c) {
        both.m[r][c] = c == 3 ? m[r][3] : 0;
        for (int k = 0; k < 3; ++k) both.m[r][c] += m[r][k] * first.m[k][c];
      }
    return both;
  }
  BlendMatrix rounded() const {
    BlendMatrix matrix;
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 4; ++c) matrix.m[r][c] = float(m[r][c]);
    return matrix;
  }
};

Affine diagonal(double a, double b, double c) { return {{{a, 0, 0, 0}, {0, b, 0, 0}, {0, 0, c, 0}}}; }

/// Samples to R'G'B' of 0–1.
Affine to_rgb(const Samples& s) {
  Affine numbers = diagonal(1 / s.scale[0], 1 / s.scale[1], 1 / s.scale[2]);
  for (int c = 0; c < 3; ++c) numbers.m[c][3] = -s.offset[c] / s.scale[c];
  if (s.rgb) return numbers;
  if (s.gray) return Affine{{{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}}.after(numbers);
  const double kr = s.weights.red, kb = s.weights.blue, kg = 1 - kr - kb;
  const Affine rgb{{{1, 0, 2 * (1 - kr), 0}, {1, -2 * kb * (1 - kb) / kg, -2 * kr * (1 - kr) / kg, 0}, {1, 2 * (1 - kb), 0, 0}}};
  return rgb.after(numbers);
}

/// R'G'B' of 0–1 to samples.
Affine from_rgb(const Samples& s) {
  Affine samples = diagonal(s.scale[0], s.scale[1], s.scale[2]);
  for (int c = 0; c < 3; ++c) samples.m[c][3] = s.offset[c];
  if (s.rgb) return samples;
  const double kr = s.weights.red, kb = s.weights.blue, kg = 1 - kr - kb, cb = 2 * (1 - kb), cr = 2 * (1 - kr);
  const Affine yuv{{{kr, kg, kb, 0}, {-kr / cb, -kg / cb, (1 - kb) / cb, 0}, {(1 - kr) / cr, -kg / cr, -kb / cr, 0}}};
  return samples.after(yuv);
}

/// One format's samples to another's. Where no colours need to be mixed, none are: what is the same stays the same to the bit.
Affine conversion(const Samples& from, const Samples& to) {
  const auto same = [](const LumaWeights& a, const LumaWeights& b) { return a.red == b.red && a.blue == b.blue; };
  Affine result;
  if (from.rgb != to.rgb || (!from.rgb && !from.gray && !same(from.weights, to.weights))) {
    result = from_rgb(to).after(to_rgb(from));
  } else {
    for (int c = 0; c < 3; ++c) {
      result.m[c][c] = to.scale[c] / from.scale[c];
      result.m[c][3] = to.offset[c] - from.offset[c] * result.m[c][c];
    }
  }
  if (to.gray && !from.gray)  // what is not stored has no colour either
    for (int c = 1; c < 3; ++c) std::fill_n(result.m[c], 3, 0.0), result.m[c][3] = to.offset[c];
  return result;
}

/// Finds the components of a picture.
void find_channels(const Image& image, BlendChannel (&channels)[4], BlendChannel* padding) {
  const FormatInfo& format = info(image.geometry.format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    const Plane& plane = image.planes[set.plane];
    for (int c = 0; c < set.channels; ++c) {
      const BlendChannel channel{static_cast<std::uint8_t*>(plane.data) + c * format.sample_bytes(), plane.pitch,
                                 std::uint8_t(set.channels * format.sample_bytes()), set.shift_x, set.shift_y};
      if (const int component = detail::blend_component(set.roles[c]); component >= 0)
        channels[component] = channel;
      else if (set.roles[c] == Role::padding && padding)
        *padding = channel;
    }
  }
}

detail::BlendPacked find_packed(const Image& image) {
  const FormatInfo& format = info(image.geometry.format);
  const ChannelSet& set = format.sets[0];
  const Plane& plane = image.planes[0];
  const std::uintptr_t word = 4 * format.sample_bytes();
  detail::BlendPacked packed;
  if (set.channels != 4 || (reinterpret_cast<std::uintptr_t>(plane.data) | std::uintptr_t(plane.pitch)) % word != 0) return packed;
  packed.data = static_cast<std::uint8_t*>(plane.data);
  for (int c = 0; c < 4; ++c)
    packed.order[set.roles[c] == Role::padding ? 3 : detail::blend_component(set.roles[c])] = std::uint8_t(c);
  return packed;
}

void set_background(const Samples& out, const BlendBackground& background, BlendTarget& target) {
  using Kind = BlendBackground::Kind;
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

/// An axis of `place` pixels that shows `crop` of the picture's from `begin` on, in a plane subsampled by 2^shift.
BlendAxis find_axis(BlendSampling sampling, int place, int begin, int crop, int shift) {
  const int fraction = 32 - shift;
  const auto rounded_up = [&](std::int64_t n, std::int64_t d) { return ((n << fraction) + d - 1) / d; };
  BlendAxis axis{std::int64_t(begin) << fraction, rounded_up(crop, place), begin >> shift, (begin + crop - 1) >> shift, 0, 0};
  if (sampling == BlendSampling::area && crop > place) {
    axis.per = float(std::ldexp(double(place) / crop, shift));
    return axis;
  }
  axis.start += rounded_up(crop, std::int64_t(2) * place);  // the middle of the first pixel
  if (sampling != BlendSampling::point && crop != place) {
    axis.start -= std::int64_t(1) << 31;
    axis.weight = 0x1p-24f;
  }
  return axis;
}

/// Where a pad's samples come from, and what becomes of them. False: it does not show.
bool resolve(const BlendPad& pad, const Image& src, const Samples& out, const BlendTarget& target, BlendDivision division,
             BlendLayer& layer) {
  if (pad.alpha == 0 || pad.place.empty()) return false;
  const Geometry& geometry = pad.src.geometry;
  const Samples in(geometry.format, pad.color);
  const int in_max = in.format.max_value();
  layer = {};
  find_channels(src, layer.channels, nullptr);
  layer.packed = find_packed(src);
  layer.place = pad.place;
  layer.crop = pad.crop.empty() ? Rect{0, 0, geometry.width, geometry.height} : pad.crop;
  layer.visible = intersection(pad.place, {0, 0, target.width, target.height});
  if (layer.visible.empty()) return false;

  const Affine to_target = conversion(in, out);
  layer.to_target = to_target.rounded();
  layer.identity = true;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) layer.identity = layer.identity && to_target.m[r][c] == (r == c);
  layer.to_key = diagonal(255, 255, 255).after(to_rgb(in)).rounded();
  for (int c = 0; c < 3; ++c) layer.key[c] = float(pad.key.color[c] * 255);
  layer.keyed = pad.key.mode != BlendKey::Mode::none;
  layer.first_pixel = pad.key.mode == BlendKey::Mode::first_pixel;
  // A hard key's weight is 1 from a little beyond its tolerance on: what is rounded must not tell equal samples apart.
  const bool soft = layer.keyed && pad.key.softness > 0;
  const double scale = soft ? std::min(1 / pad.key.softness, 1e30) : 1e30;
  layer.key_scale = float(scale);
  layer.key_offset = float(scale * (soft ? pad.key.tolerance : pad.key.tolerance + 0.001));

  const bool average = pad.op == BlendOperator::average, whole = target.alpha || pad.op == BlendOperator::source;
  const double steps = std::floor(pad.alpha * target.max);
  layer.coverage = average || pad.alpha == 1 ? float(pad.alpha) : float(steps / (whole ? target.max : target.max + 1));
  layer.alpha_scale = target.max / float(in_max);
  layer.neutral = float(in.format.neutral_chroma());
  layer.opaque = float(in_max);
  layer.format = geometry.format;
  layer.sample_bytes = std::uint8_t(in.format.sample_bytes());
  layer.shift = in.format.shift;
  layer.max = std::uint16_t(in_max);
  layer.op = pad.op;
  layer.unscaled = layer.place.width == layer.crop.width && layer.place.height == layer.crop.height;
  layer.sampling =
      layer.unscaled || pad.interpolation == Interpolation::nearest ? BlendSampling::point
      : pad.interpolation == Interpolation::area && (layer.crop.width > layer.place.width || layer.crop.height > layer.place.height)
          ? BlendSampling::area
          : BlendSampling::linear;
  for (int shift = 0; shift < 2; ++shift) {
    layer.across[shift] =
        find_axis(layer.sampling, layer.place.width, layer.crop.x, layer.crop.width, shift * layer.channels[1].shift_x);
    layer.down[shift] =
        find_axis(layer.sampling, layer.place.height, layer.crop.y, layer.crop.height, shift * layer.channels[1].shift_y);
  }
  const bool over = pad.op == BlendOperator::over || pad.op == BlendOperator::add, opaque = target.background[3] == target.max;
  if (out.format.depth == 8 && !soft) {
    // compositor divides colours by 255 over an opaque background, in formats with alpha; other colours it rounds down.
    layer.rounding = detail::blend_rounding;
    layer.alpha_bias = division == BlendDivision::nearest ? 0 : detail::blend_down;
    layer.color_bias = target.alpha && opaque ? layer.alpha_bias : detail::blend_down;
    layer.rounds_samples = (over || pad.op == BlendOperator::source) && (!layer.unscaled || !layer.identity);
  }
  layer.opaque_below = opaque;
  layer.hides = !layer.keyed && (pad.op == BlendOperator::source ||
                                 (pad.alpha == 1 && (pad.op == BlendOperator::average || (over && !layer.channels[3].data))));
  const auto even = [](int offset, int shift) { return offset % (1 << shift) == 0; };
  layer.copies = layer.hides && layer.identity && layer.unscaled && geometry.format == out.format.format && in.format.shift == 0 &&
                 !target.padding.data && (!target.alpha || layer.coverage == 1) &&
                 even(layer.crop.x - layer.place.x, target.shift_x) && even(layer.crop.y - layer.place.y, target.shift_y);
  return true;
}

std::string side_text(const char* name, int width, int height, const char* allowed) {
  return std::string(name) + " is " + std::to_string(width) + "x" + std::to_string(height) + ": " + allowed;
}

}  // namespace

Status validate(const BlendPad& pad) {
  const auto unit = [](double v) { return v >= 0 && v <= 1; };  // not so for NaN
  const auto byte = [](double v) { return v >= 0 && v <= 255; };
  if (!unit(pad.alpha)) return out_of_range("alpha", pad.alpha, "0 to 1");
  for (double value : pad.key.color)
    if (!unit(value)) return out_of_range("key-color", value, "0 to 1 in each of red, green and blue");
  if (!byte(pad.key.tolerance)) return out_of_range("key-tolerance", pad.key.tolerance, "0 to 255");
  if (!byte(pad.key.softness)) return out_of_range("key-softness", pad.key.softness, "0 to 255");
  const Rect &place = pad.place, &crop = pad.crop;
  if (std::max(place.width, place.height) > blend_max_side)
    return Status::settings(side_text("the pad", place.width, place.height, "width and height must be at most 32768"));
  for (auto [name, value] : {std::pair("xpos", place.x), {"ypos", place.y}})
    if (std::abs(long(value)) > blend_max_position) return out_of_range(name, value, "-16777216 to 16777216");
  const Geometry& geometry = pad.src.geometry;
  if (std::min(geometry.width, geometry.height) < 1 || std::max(geometry.width, geometry.height) > 16384)
    return Status::settings(side_text("the pad's picture", geometry.width, geometry.height, "width and height must be 1 to 16384"));
  if (!crop.empty() && (crop.x < 0 || crop.y < 0 || crop.x > geometry.width - crop.width || crop.y > geometry.height - crop.height))
    return Status::settings("the crop is " + std::to_string(crop.width) + "x" + std::to_string(crop.height) + " at (" +
                            std::to_string(crop.x) + ", " + std::to_string(crop.y) + "): it must lie inside of the picture of " +
                            std::to_string(geometry.width) + "x" + std::to_string(geometry.height));
  return {};
}

Blend::Blend(const Geometry& geometry, const BlendColor& color, BlendDivision division, Backend backend)
    : geometry_(geometry), color_(color), division_(division), target_{}, backend_(backend), dst_(backend) {
  const Samples out(geometry.format, color);
  layers_.reserve(blend_max_pads);
  target_.width = geometry.width;
  target_.height = geometry.height;
  target_.sample_bytes = std::uint8_t(out.format.sample_bytes());
  target_.shift = out.format.shift;
  target_.gray = out.gray;
  target_.alpha = has_role(out.format, Role::alpha);
  target_.max = float(out.format.max_value());
  target_.per_max = 1 / target_.max;
  target_.to_rgb = to_rgb(out).rounded();
  target_.from_rgb = from_rgb(out).rounded();
}

Status Blend::submit(const Image& dst, const BlendBackground& background, const std::vector<BlendPad>& pads, Queue queue) {
  return guarded([&]() -> Status {
    const auto to = dst_.write(dst);
    if (!to.ok()) return to.error();
    const Status status = run(to.value(), background, pads, queue);
    return status.ok() ? dst_.finish(dst, queue) : status;
  });
}

/// A pad's picture, its samples at addresses where words may be read.
Result<Image> Blend::aligned_source(std::size_t pad, const Image& src, Queue queue) {
  if (sources_.size() <= pad) sources_.resize(pad + 1);
  Source& source = sources_[pad];
  const Geometry &was = source.geometry, &is = src.geometry;
  if (!source.picture || was.format != is.format || was.width != is.width || was.height != is.height)
    source = {is, std::make_unique<detail::AlignedPicture>(backend_)};
  return source.picture->read(src, queue);
}

Status Blend::run(const Image& dst, const BlendBackground& background, const std::vector<BlendPad>& pads, Queue queue) {
  if (pads.size() > blend_max_pads)
    return Status::settings("there are " + std::to_string(pads.size()) + " pads: at most " + std::to_string(blend_max_pads) +
                            " make a picture");
  const Samples out(geometry_.format, color_);
  find_channels(dst, target_.channels, &target_.padding);
  target_.packed = find_packed(dst);
  target_.shift_x = target_.channels[1].shift_x;
  target_.shift_y = target_.channels[1].shift_y;
  set_background(out, background, target_);
  layers_.clear();
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (Status status = validate(pads[i]); !status.ok())
      return Status::settings("sink_" + std::to_string(i) + ": " + status.message());
    const auto src = aligned_source(i, pads[i].src, queue);
    if (!src.ok()) return src.error();
    BlendLayer layer;
    if (cudavision::resolve(pads[i], src.value(), out, target_, division_, layer)) layers_.push_back(layer);
  }
  return compute(target_, layers_, queue);
}

Result<std::unique_ptr<Blend>> make_blend(const Geometry& geometry, const BlendColor& color, Backend backend,
                                          BlendDivision division) {
  if (std::min(geometry.width, geometry.height) < 1 || std::max(geometry.width, geometry.height) > 16384)
    return Status::settings(side_text("the output", geometry.width, geometry.height, "width and height must be 1 to 16384"));
  return guarded([&] {
    return detail::on_backend(
        backend, [&]() { return detail::make_blend_cuda(geometry, color, division); },
        [&]() { return detail::make_blend_cpu(geometry, color, division); });
  });
}

BlendFit fit(const Rect& box, int width, int height, double pixel_aspect, SizingPolicy policy) {
  const Rect all{0, 0, width, height};
  if (policy == SizingPolicy::none || box.empty() || all.empty() || !(pixel_aspect > 0)) return {box, all};
  const double aspect = width * pixel_aspect / height, of_box = double(box.width) / box.height;
  if (policy == SizingPolicy::keep_aspect_ratio) {
    // Rounded down in the steps in which compositor does it, so that not a pixel lies elsewhere.
    const double rounded = box.width / std::max(std::floor(box.width / aspect + 1e-9), 1.0);
    Rect place = box;
    if (rounded > of_box)
      place.height = std::max(int(box.width / rounded), 1);
    else if (rounded < of_box)
      place.width = std::max(int(box.height * rounded), 1);
    place.x += (box.width - place.width) / 2;
    place.y += (box.height - place.height) / 2;
    return {place, all};
  }
  // The part of an axis that is left, in the middle.
  const auto part = [](int begin, int length, double ratio) {
    const int less = std::clamp(int(std::lround(length * ratio)), 1, length);
    return std::pair(begin + (length - less) / 2, less);
  };
  BlendFit fitted{box, all};
  Rect& cut = fitted.crop;
  const double ratio = aspect / of_box;
  if (ratio > 1)
    std::tie(cut.x, cut.width) = part(cut.x, cut.width, 1 / ratio);
  else
    std::tie(cut.y, cut.height) = part(cut.y, cut.height, ratio);
  return fitted;
}

GridShape grid_shape(int count, int columns, int rows) {
  const auto ceil_div = [](int a, int b) { return (a + b - 1) / b; };
  if (columns <= 0) columns = rows > 0 ? ceil_div(count, rows) : int(std::ceil(std::sqrt(double(std::max(count, 0)))));
  columns = std::max(columns, 1);
  if (rows <= 0) rows = std::max(ceil_div(count, columns), 1);
  return {columns, rows};
}

std::vector<Rect> grid_layout(int count, int wanted_columns, int wanted_rows, int gap, int width, int height) {
  std::vector<Rect> cells(std::size_t(std::max(count, 0)));
  const auto [columns, rows] = grid_shape(count, wanted_columns, wanted_rows);
  const auto side = [](int length, int cells, int gap) { return int(std::max<long>((length - long(cells - 1) * gap) / cells, 0)); };
  gap = std::max(gap, 0);
  const int cell_width = side(width, columns, gap), cell_height = side(height, rows, gap);
  if (cell_width == 0 || cell_height == 0) return cells;
  for (int i = 0; i < count && i / columns < rows; ++i)
    cells[i] = {i % columns * (cell_width + gap), i / columns * (cell_height + gap), cell_width, cell_height};
  return cells;
}

namespace detail {

BlendChannel whole_plane(const FormatInfo& format, const ChannelSet& set, const BlendChannel (&channels)[4]) {
  int c = 0;
  while (blend_component(set.roles[c]) < 0) ++c;
  BlendChannel plane = channels[blend_component(set.roles[c])];
  plane.data -= c * format.sample_bytes();
  return plane;
}

}  // namespace detail
}  // namespace cudavision
