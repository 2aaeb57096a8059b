// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/blend.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

namespace cudavision::reference {
namespace {

using Triple = std::array<double, 3>;

enum class Family { gray, yuv, rgb };

/// Converts between samples and R'G'B' or Y'CbCr numbers.
struct Scale {
  Scale(const Definition& format, const blend::Color& color)
      : limited(color.limited), max(format.max_value()), step(1 << (format.depth - 8)) {
    middle = 128 * step;
    family = format.is_rgb() ? Family::rgb : format.find(Role::cb) ? Family::yuv : Family::gray;
    switch (color.matrix) {
      case LumaMatrix::bt601:
        kr = 0.299, kb = 0.114;
        break;
      case LumaMatrix::bt709:
        kr = 0.2126, kb = 0.0722;
        break;
      case LumaMatrix::bt2020:
        kr = 0.2627, kb = 0.0593;
        break;
      case LumaMatrix::smpte240m:
        kr = 0.212, kb = 0.087;
        break;
    }
  }

  double unit(double sample) const { return limited ? (sample - 16 * step) / (219 * step) : sample / max; }
  double sample(double unit) const { return limited ? 16 * step + 219 * step * unit : unit * max; }
  double chroma(double sample) const { return (sample - middle) / (limited ? 224 * step : max); }
  double chroma_sample(double value) const { return middle + value * (limited ? 224 * step : max); }

  Triple to_rgb(const Triple& s) const {
    if (family == Family::rgb) return {unit(s[0]), unit(s[1]), unit(s[2])};
    const double y = unit(s[0]);
    if (family == Family::gray) return {y, y, y};
    const double r = y + 2 * (1 - kr) * chroma(s[2]), b = y + 2 * (1 - kb) * chroma(s[1]);
    return {r, (y - kr * r - kb * b) / (1 - kr - kb), b};
  }
  Triple from_rgb(const Triple& rgb) const {
    if (family == Family::rgb) return {sample(rgb[0]), sample(rgb[1]), sample(rgb[2])};
    const double y = kr * rgb[0] + (1 - kr - kb) * rgb[1] + kb * rgb[2];
    return {sample(y), chroma_sample((rgb[2] - y) / (2 * (1 - kb))), chroma_sample((rgb[0] - y) / (2 * (1 - kr)))};
  }

  Family family;
  bool limited;
  double max, step, middle, kr = 0, kb = 0;
};

Triple convert(const Triple& s, const Scale& from, const Scale& to) {
  Triple out;
  if (from.family == Family::rgb || to.family == Family::rgb || (from.family == Family::yuv && from.kr != to.kr))
    out = to.from_rgb(from.to_rgb(s));
  else
    out = {to.sample(from.unit(s[0])), to.chroma_sample(from.family == Family::gray ? 0 : from.chroma(s[1])),
           to.chroma_sample(from.family == Family::gray ? 0 : from.chroma(s[2]))};
  for (double& v : out) v = std::clamp(v, 0.0, to.max);
  return out;
}

/// The weight of each sample on an axis for output pixel i. The plane is subsampled by 2^shift.
std::map<int, double> axis(blend::Interpolation interpolation, int i, int place, int begin, int crop, int shift) {
  const double ratio = double(crop) / place;
  const int low = begin >> shift, high = (begin + crop - 1) >> shift;
  std::map<int, double> weights;
  if (place == crop || interpolation == blend::Interpolation::nearest) {
    weights[int(begin + std::floor((i + 0.5) * crop / place)) >> shift] = 1;
  } else if (interpolation == blend::Interpolation::area && ratio > 1) {
    const double from = (begin + i * ratio) / (1 << shift), to = (begin + (i + 1) * ratio) / (1 << shift);
    for (int k = low; k <= high; ++k) {
      const double covered = std::min<double>(to, k + 1) - std::max<double>(from, k);
      if (covered > 0) weights[k] = covered / (to - from);
    }
  } else {
    const double at = (begin + (i + 0.5) * ratio) / (1 << shift) - 0.5, before = std::floor(at);
    weights[std::clamp(int(before), low, high)] += 1 - (at - before);
    weights[std::clamp(int(before) + 1, low, high)] += at - before;
  }
  return weights;
}

/// The components of a picture: Y, Cb, Cr or R, G, B, then alpha.
struct Source {
  explicit Source(const Picture& picture) {
    for (const Component& c : picture.format().components) {
      int at = -1;
      if (c.role == Role::luma || c.role == Role::red) at = 0;
      if (c.role == Role::cb || c.role == Role::green) at = 1;
      if (c.role == Role::cr || c.role == Role::blue) at = 2;
      if (c.role == Role::alpha) at = 3;
      if (at < 0) continue;
      grids[at] = picture.read(c);
      for (int& sample : grids[at]->values) sample = std::min(sample, picture.format().max_value());
      components[at] = c;
    }
  }
  std::array<std::optional<Grid>, 4> grids;
  std::array<Component, 4> components{};
};

double key_distance(const Triple& rgb, const Triple& key) {
  double most = 0;
  for (int c = 0; c < 3; ++c) most = std::max(most, std::abs(rgb[c] - key[c]) * 255);
  return most;
}

double operate(blend::Operator op, double d, double s) {
  switch (op) {
    case blend::Operator::subtract:
      return std::max(d - s, 0.0);
    case blend::Operator::multiply:
      return d * s;
    case blend::Operator::screen:
      return 1 - (1 - d) * (1 - s);
    case blend::Operator::difference:
      return std::abs(d - s);
    case blend::Operator::min:
      return std::min(d, s);
    default:
      return std::max(d, s);
  }
}

/// A pixel of the output before chroma is subsampled.
struct Pixel {
  Triple color;
  double alpha;
};

struct Output {
  Scale scale;
  bool alpha;
  bool opaque;  ///< whether the background is opaque
  blend::Division division;
  double nudge;  ///< see blend()
};

void lay_over(Pixel& below, Triple s, double own, double k, const blend::Pad& pad, const Output& out) {
  const double m = out.scale.max;
  const auto mix = [](double d, double s, double weight) { return d + (s - d) * weight; };
  const bool soft = pad.key.mode != blend::Key::Mode::none && pad.key.softness > 0, whole = m == 255 && !soft;
  const bool compositors = pad.op == blend::Operator::over || pad.op == blend::Operator::add;
  const auto nearest = [&](double v) { return whole ? std::nearbyint(v + out.nudge) : v; };
  // rounds as compositor does
  const auto down = [&](double v) { return std::floor(v + 0x1p-10 + out.nudge); };
  const auto divided = [&](double v) {
    return !whole ? v : out.division == blend::Division::nearest ? nearest(v) : down(v);
  };
  const auto color = [&](double v) {
    return !whole || !compositors ? v : out.alpha && out.opaque ? divided(v) : down(v);
  };
  if (compositors || pad.op == blend::Operator::source)
    for (double& v : s) v = nearest(v + 0x1p-10);
  const double steps = std::floor(pad.alpha * m);
  if (pad.op == blend::Operator::source || pad.op == blend::Operator::average) {
    const bool average = pad.op == blend::Operator::average;
    const double weight = average ? k * pad.alpha : k;
    for (int c = 0; c < 3; ++c) below.color[c] = mix(below.color[c], s[c], weight);
    below.alpha = mix(below.alpha, average ? own : divided(own * steps / m), weight);
    return;
  }
  Triple above = s;
  if (!compositors) {
    Triple a = out.scale.to_rgb(s), b = out.scale.to_rgb(below.color);
    for (int c = 0; c < 3; ++c) a[c] = operate(pad.op, std::clamp(b[c], 0.0, 1.0), std::clamp(a[c], 0.0, 1.0));
    const Triple mixed = out.scale.from_rgb(a);
    for (int c = 0; c < 3; ++c) above[c] = mix(s[c], std::clamp(mixed[c], 0.0, m), out.alpha ? below.alpha / m : 1);
  }
  if (!out.alpha) {
    const double weight = own / m * k * (pad.alpha == 1 ? 1 : steps / (m + 1));
    if (weight > 0)
      for (int c = 0; c < 3; ++c) below.color[c] = color(mix(below.color[c], above[c], weight));
    return;
  }
  const double under = compositors && out.opaque ? m : below.alpha;
  const double over = divided(own * k * steps / m), rest = divided(under * (m - over) / m), sum = over + rest;
  for (int c = 0; c < 3; ++c) {
    const double mixed = mix(below.color[c], above[c], sum > 0.5 ? over / sum : 0);
    below.color[c] = sum <= 0.5 ? m : over > 0 ? color(mixed) : mixed;
  }
  below.alpha = pad.op == blend::Operator::add ? std::min(m, under + over) : sum;
}

Pixel background_at(const blend::Background& background, const Scale& scale, int x, int y) {
  using Kind = blend::Background::Kind;
  const auto of_rgb = [&](double r, double g, double b) {
    Triple samples = scale.from_rgb({r, g, b});
    for (double& v : samples) v = std::clamp(std::nearbyint(v), 0.0, scale.max);
    return samples;
  };
  const auto byte = [&](int shift) { return (background.argb >> shift & 255) / 255.0; };
  const double gray = ((x / 8 + y / 8) % 2 ? 160 : 80) * scale.step;
  const double chroma = scale.family == Family::rgb ? gray : scale.middle;
  switch (background.kind) {
    case Kind::checker:
      return {{gray, chroma, chroma}, scale.max};
    case Kind::white:
      return {of_rgb(1, 1, 1), scale.max};
    case Kind::color:
      return {of_rgb(byte(16), byte(8), byte(0)), std::nearbyint(byte(24) * scale.max)};
    default:
      return {of_rgb(0, 0, 0), background.kind == Kind::transparent ? 0 : scale.max};
  }
}

class Placed {
 public:
  using Samples = std::array<double, 4>;  // as in Source; missing components are black, gray and opaque

  explicit Placed(const Pad& pad)
      : scale(pad.picture.format(), pad.params.color), params_(pad.params), source_(pad.picture) {
    const Geometry& size = pad.picture.geometry();
    crop_ = params_.crop.empty() ? Rect{0, 0, size.width, size.height} : params_.crop;
    key_ = params_.key.color;
    if (params_.key.mode == blend::Key::Mode::first_pixel) {
      const Samples first = read([&](int c) { return double(source_.grids[c]->at(0, 0)); });
      key_ = scale.to_rgb({first[0], first[1], first[2]});
    }
  }

  Samples at(int x, int y) {
    return read([&](int c) {
      const Component& component = source_.components[c];
      auto& across = columns_[{x, component.shift_x}];
      auto& down = rows_[{y, component.shift_y}];
      const Rect& place = params_.place;
      if (across.empty())
        across = axis(params_.interpolation, x - place.x, place.width, crop_.x, crop_.width, component.shift_x);
      if (down.empty())
        down = axis(params_.interpolation, y - place.y, place.height, crop_.y, crop_.height, component.shift_y);
      double sum = 0;
      for (const auto& [row, down_weight] : down)
        for (const auto& [column, weight] : across) sum += down_weight * weight * source_.grids[c]->at(column, row);
      return sum;
    });
  }

  /// The share of a pixel that the key keeps.
  double kept(const Triple& samples) const {
    const blend::Key& key = params_.key;
    if (key.mode == blend::Key::Mode::none) return 1;
    const double beyond = key_distance(scale.to_rgb(samples), key_) - key.tolerance;
    return key.softness > 0 ? std::clamp(beyond / key.softness, 0.0, 1.0) : beyond > 0.001;
  }

  const Scale scale;

 private:
  template <typename Of>
  Samples read(Of&& of) const {
    Samples samples{0, scale.middle, scale.middle, scale.max};
    for (int c = 0; c < 4; ++c)
      if (source_.grids[c]) samples[c] = of(c);
    return samples;
  }

  const blend::Pad& params_;
  const Source source_;
  Rect crop_;
  Triple key_;
  std::map<std::pair<int, int>, std::map<int, double>> columns_, rows_;  // by coordinate and shift
};

double sample_of(const Pixel& pixel, Role role, double max) {
  switch (role) {
    case Role::luma:
    case Role::red:
      return pixel.color[0];
    case Role::cb:
    case Role::green:
      return pixel.color[1];
    case Role::cr:
    case Role::blue:
      return pixel.color[2];
    case Role::alpha:
      return pixel.alpha;
    default:
      return max;
  }
}

}  // namespace

Picture blend(const Geometry& geometry, const blend::Color& color, const blend::Background& background,
              const std::vector<Pad>& pads, Layout layout, blend::Division division, double nudge) {
  using Kind = blend::Background::Kind;
  Picture result(geometry, layout);
  const Definition& format = result.format();
  Output out{{format, color},
             format.has_alpha(),
             background.kind != Kind::transparent && (background.kind != Kind::color || background.argb >> 24 == 255),
             division,
             nudge};
  std::vector<Pixel> pixels(std::size_t(geometry.width) * geometry.height);
  const auto pixel_at = [&](int x, int y) -> Pixel& { return pixels[std::size_t(y) * geometry.width + x]; };
  for (const auto& [x, y] : positions(geometry)) pixel_at(x, y) = background_at(background, out.scale, x, y);

  for (const Pad& pad : pads) {
    const Rect& place = pad.params.place;
    if (pad.params.alpha == 0 || place.empty()) continue;
    Placed placed(pad);
    for (const auto& [x, y] : positions(geometry)) {
      if (!contains(place, x, y)) continue;
      const Placed::Samples s = placed.at(x, y);
      const Triple samples{s[0], s[1], s[2]};
      lay_over(pixel_at(x, y), convert(samples, placed.scale, out.scale), s[3] / placed.scale.max * out.scale.max,
               placed.kept(samples), pad.params, out);
    }
  }

  for (const Component& c : format.components)
    result.change(c, [&](int x, int y, int) {
      double sum = 0;
      int count = 0;
      for (const auto& [px, py] : c.pixels(x, y, geometry))
        sum += sample_of(pixel_at(px, py), c.role, out.scale.max), ++count;
      return int(std::nearbyint(sum / count));
    });
  return result;
}

}  // namespace cudavision::reference
