// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/blend/blend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cuda_schedule.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/blend.hpp"

namespace cudavision::test {
namespace {

using blend::Division;
using blend::Interpolation;
using blend::Operator;
using blend::SizingPolicy;
using reference::Pad;
using Kind = blend::Background::Kind;

constexpr Operator operators[] = {Operator::source,   Operator::over,   Operator::add,        Operator::subtract,
                                  Operator::multiply, Operator::screen, Operator::difference, Operator::min,
                                  Operator::max,      Operator::average};
constexpr Division divisions[] = {Division::nearest, Division::down};
constexpr Interpolation interpolations[] = {Interpolation::nearest, Interpolation::bilinear, Interpolation::area};

/// One frame: output, background and pads.
struct Scene {
  Geometry geometry;
  blend::Color color;
  blend::Background background;
  std::vector<Pad> pads;
  Layout layout = {};
  Division division = Division::nearest;

  /// Adds a pad that covers the output and has the colours of the output.
  blend::Pad& add(Picture picture) {
    pads.push_back({std::move(picture), {}});
    blend::Pad& pad = pads.back().params;
    pad.color = color;
    pad.place = {0, 0, geometry.width, geometry.height};
    return pad;
  }
};

/// Two random pictures with the format and size of the output: one replaces the background, `op` blends the other over
/// it.
Scene two_pictures(const Geometry& geometry, Operator op, double alpha) {
  Scene scene{geometry, {}, {}, {}, {}};
  scene.add(make_picture(geometry, 1)).op = Operator::source;
  blend::Pad& above = scene.add(make_picture(geometry, 2));
  above.op = op;
  above.alpha = alpha;
  return scene;
}

std::string describe(const Scene& scene) {
  std::ostringstream text;
  text << info(scene.geometry.format).name << ' ' << scene.geometry.width << 'x' << scene.geometry.height << " matrix "
       << int(scene.color.matrix) << " limited " << scene.color.limited << " background " << int(scene.background.kind)
       << " argb " << std::hex << scene.background.argb << std::dec << " layout " << scene.layout.offset << ' '
       << scene.layout.padding << " division " << int(scene.division);
  for (const Pad& pad : scene.pads) {
    const blend::Pad& p = pad.params;
    const Geometry& size = pad.picture.geometry();
    text << "\n  " << info(size.format).name << ' ' << size.width << 'x' << size.height << " matrix "
         << int(p.color.matrix) << " limited " << p.color.limited;
    text << " place " << p.place << " crop " << p.crop << " alpha " << p.alpha << " op " << int(p.op)
         << " interpolation " << int(p.interpolation) << " key " << int(p.key.mode) << " color " << p.key.color[0]
         << ' ' << p.key.color[1] << ' ' << p.key.color[2] << " tolerance " << p.key.tolerance << " softness "
         << p.key.softness;
  }
  return text.str();
}

std::unique_ptr<blend::Blend> plan_for(Backend backend, const Geometry& geometry, const blend::Color& color,
                                       Division division = Division::nearest) {
  auto plan = blend::make(geometry, color, backend, division);
  EXPECT_TRUE(plan.ok()) << plan.error().message();
  return plan.ok() ? std::move(plan.value()) : nullptr;
}

Picture compose(blend::Blend& plan, Backend backend, const Scene& scene) {
  std::vector<std::unique_ptr<Bytes>> memory;
  std::vector<blend::Pad> pads;
  for (const Pad& pad : scene.pads) {
    memory.push_back(std::make_unique<Bytes>(backend, pad.picture.bytes()));
    pads.push_back(pad.params);
    pads.back().src = pad.picture.at(memory.back()->data());
  }
  const Picture none({Format::GRAY8, 1, 1});
  Job job(backend, none, Picture(scene.geometry, scene.layout).inverted());
  const Status status = job.submit(
      [&](const Image&, const Image& dst, Queue queue) { return plan.submit(dst, scene.background, pads, queue); });
  EXPECT_TRUE(status.ok()) << status.message();
  const Picture out = job.finish();
  for (std::size_t i = 0; i < pads.size(); ++i)
    EXPECT_TRUE(memory[i]->read() == scene.pads[i].picture.bytes()) << "pad " << i;
  return out;
}

Picture compose(Backend backend, const Scene& scene) {
  const auto plan = plan_for(backend, scene.geometry, scene.color, scene.division);
  return plan ? compose(*plan, backend, scene) : Picture(scene.geometry);
}

/// How a result differs from the reference. The alpha of a layer between two integers may be rounded to either one.
/// Where both alphas are small, the colours below it then differ by more than the tolerance.
std::string difference(const Scene& scene, const Picture& actual, int tolerance) {
  const auto rounded_by = [&](double nudge) {
    return reference::blend(scene.geometry, scene.color, scene.background, scene.pads, scene.layout, scene.division,
                            nudge);
  };
  Picture expected = rounded_by(0), filled = actual;
  filled.fill_padding();
  if (filled.bytes() != actual.bytes()) return "the padding of a row is not the last sample";
  if (expected.difference(actual, tolerance).empty()) return {};
  for (double nudge : {-0x1p-9, 0x1p-9}) {
    const Picture nudged = rounded_by(nudge);
    for (const Component& c : expected.format().components) {
      const Grid want = nudged.read(c), got = actual.read(c);
      for (const auto& [x, y] : positions(want))
        if (std::abs(want.at(x, y) - got.at(x, y)) <= tolerance) expected.copy(c, x, y, actual);
    }
  }
  return expected.difference(actual, tolerance);
}

void expect_reference(Backend backend, const Scene& scene, int tolerance = 1) {
  EXPECT_EQ(difference(scene, compose(backend, scene), tolerance), "") << describe(scene);
}

blend::Color random_color(Random& random) {
  return {random.pick<LumaMatrix>(
              {LumaMatrix::bt601, LumaMatrix::bt601, LumaMatrix::bt709, LumaMatrix::bt2020, LumaMatrix::smpte240m}),
          random.below(2) == 0};
}

blend::Background random_background(Random& random) {
  return {
      random.pick<Kind>({Kind::checker, Kind::black, Kind::white, Kind::transparent, Kind::transparent, Kind::color}),
      random.pick<std::uint32_t>({0xff112233, 0x80f0c000, 0x00ffffff, 0x01e07f3a})};
}

/// Random samples, with any layout in memory.
Picture any_picture(Random& random, const Geometry& geometry, Data data = Data::random) {
  return make_picture(geometry, unsigned(random.below(1 << 30)), data, random.pick(layouts));
}

/// A frame without pads, with random colours and layout.
Scene any_scene(Random& random, const Geometry& geometry, int round) {
  return {geometry, random_color(random), random_background(random), {}, random.pick(layouts), divisions[round % 2]};
}

/// `color`: the colours of the output. Half of the pads have the same ones.
Pad random_pad(Random& random, Format format, const Geometry& output, const blend::Color& color) {
  const Data data = random.pick<Data>(
      {Data::random, Data::random, Data::random, Data::faint, Data::flat, Data::checkerboard, Data::max});
  const Geometry geometry{format, random.between(1, 40), random.between(1, 40)};
  Pad pad{any_picture(random, geometry, data), {}};
  blend::Pad& p = pad.params;
  p.color = random.below(2) ? color : random_color(random);
  if (random.below(3) == 0) {
    p.crop.x = random.below(geometry.width), p.crop.y = random.below(geometry.height);
    p.crop.width = random.between(1, geometry.width - p.crop.x),
    p.crop.height = random.between(1, geometry.height - p.crop.y);
  }
  const bool own_size = random.below(3) == 0;
  p.place.width = own_size ? (p.crop.empty() ? geometry.width : p.crop.width) : random.between(0, 80);
  p.place.height = own_size ? (p.crop.empty() ? geometry.height : p.crop.height) : random.between(1, 80);
  p.place.x = random.between(-20, output.width), p.place.y = random.between(-20, output.height);
  if (random.below(3) == 0) p.place.x = p.place.y = 0;
  p.alpha = random.pick<double>({1, 1, 0, 0.5, 0.65, 0.999, 0.004, random.unit()});
  p.op = operators[random.below(10)];
  p.interpolation = interpolations[random.below(3)];
  if (random.below(3) == 0) {
    p.key.mode = random.below(2) ? blend::Key::Mode::first_pixel : blend::Key::Mode::color;
    p.key.color = {random.unit(), random.unit(), random.unit()};
    p.key.tolerance = random.pick<double>({0, 0, 2.5, 30, 100, 255});
    p.key.softness = random.pick<double>({0, 0, 10, 77.7, 255});
  }
  return pad;
}

Scene random_scene(Random& random, Format output, Format input, std::pair<int, int> size) {
  Scene scene{
      {output, size.first, size.second}, random_color(random), random_background(random), {}, random.pick(layouts),
      divisions[random.below(2)]};
  for (int pads = random.pick<int>({1, 1, 2, 3}); pads > 0; --pads)
    scene.pads.push_back(
        random_pad(random, random.below(2) ? input : Format(random.below(format_count)), scene.geometry, scene.color));
  return scene;
}

const std::vector<std::pair<int, int>> small_sizes = {{1, 1},  {2, 1},   {1, 2},   {3, 2},   {5, 7},
                                                      {17, 3}, {31, 33}, {64, 48}, {131, 67}};

class BlendFormats : public OnBackendWithFormat {};

TEST_P(BlendFormats, EqualTheReference) {
  Random random(unsigned(format) + 1);
  for (int round = 0; round < rounds(); ++round)
    for (const auto& size : small_sizes) {
      expect_reference(backend, random_scene(random, format, format, size));
      expect_reference(backend, random_scene(random, format, Format(random.below(format_count)), size));
      expect_reference(backend, random_scene(random, Format(random.below(format_count)), format, size));
    }
}

/// A picture in the format and colours of the output is not changed.
TEST_P(BlendFormats, SameColoursAreExact) {
  for (const auto& [width, height] : sizes) {
    const Geometry geometry{format, width, height};
    const Picture src = make_picture(geometry, 5, Data::random, {1, 3, 1});
    for (Operator op : {Operator::source, Operator::average, Operator::over}) {
      Scene scene{geometry, {LumaMatrix::bt709, true}, {}, {}, {3, 13, 4}};
      scene.add(src).op = op;
      const Picture out = compose(backend, scene);
      const bool own_alpha = op == Operator::over;  // the background shows through
      EXPECT_EQ(difference(scene, out, own_alpha), "") << describe(scene);
      for (const Component& c : src.format().components)
        EXPECT_TRUE(own_alpha || c.role == Role::padding || src.read(c).values == out.read(c).values);
    }
  }
}

/// With Interpolation::nearest, every sample of the output is a sample of the picture.
TEST_P(BlendFormats, NearestIsExact) {
  Random random{unsigned(format)};
  const bool subsampled = info(format).sets[info(format).color_sets() - 1].shift_x > 0;
  for (int round = 0; round < 10; ++round) {
    const Geometry geometry{format, random.between(1, 90), random.between(1, 90)};
    Scene scene{geometry, {}, {}, {}, {}};
    blend::Pad& pad = scene.add(make_picture({format, random.between(1, 60), random.between(1, 60)}, unsigned(round)));
    pad.place = {random.between(-9, 9), random.between(-9, 9), random.between(1, 100), random.between(1, 100)};
    pad.op = Operator::source;
    pad.interpolation = Interpolation::nearest;
    expect_reference(backend, scene, subsampled ? 1 : 0);  // the mean of chroma samples may be rounded up or down
  }
}

/// Unscaled pads in the format and colours of the output, at any position. With 8 bits each pad leaves integers, so the
/// result is exact.
TEST_P(BlendFormats, StacksAreExact) {
  Random random(unsigned(format) + 77);
  const bool exact = info(format).depth == 8;
  // CUDA's division is accurate to two units in the last place.
  const bool divides = backend == Backend::cuda && reference::definition(format).has_alpha();
  std::vector<std::pair<int, int>> all = small_sizes;
  all.insert(all.end(), {{1027, 18}, {1100, 3}, {40, 90}});  // wider and taller than a tile
  for (int round = 0; round < 4 * rounds(); ++round)
    for (const auto& [width, height] : all) {
      Scene scene = any_scene(random, {format, width, height}, round);
      const int grid = random.below(3) ? 2 : 1;  // 2: chroma samples of the pad and the output coincide
      for (int left = random.between(2, 6); left > 0; --left) {
        const bool covers = random.below(4) == 0;
        const Geometry geometry{format, covers ? width : random.between(1, 2 * width),
                                covers ? height : random.between(1, 2 * height)};
        blend::Pad& p =
            scene.add(any_picture(random, geometry, random.pick<Data>({Data::random, Data::random, Data::max})));
        if (!covers) {
          p.crop.x = random.below(geometry.width) / grid * grid, p.crop.y = random.below(geometry.height) / grid * grid;
          p.crop.width = random.between(1, geometry.width - p.crop.x),
          p.crop.height = random.between(1, geometry.height - p.crop.y);
          const auto place = [&](int size, int length) { return random.between(-length, size) / grid * grid; };
          p.place = {place(width, p.crop.width), place(height, p.crop.height), p.crop.width, p.crop.height};
        }
        p.alpha = random.pick<double>({1, 1, 0.5, 0.65, 0.999, 0.004, 0.003, random.unit()});
        p.op = random.pick<Operator>({Operator::over, Operator::over, Operator::add, Operator::source});
        if (left == 1 && random.below(4) == 0) p.op = Operator::average;
      }
      expect_reference(backend, scene, !exact || divides || scene.pads.back().params.op == Operator::average);
    }
}

/// One unscaled pad over another picture, at odd and even positions, with odd and even crops and sizes. Chroma samples
/// of the pad lie between samples of the output, and some belong only partly to the pad.
TEST_P(BlendFormats, OddPlacesAreExact) {
  Random random(unsigned(format) + 177);
  const bool divides = backend == Backend::cuda && reference::definition(format).has_alpha();
  const int tolerance = info(format).depth > 8 || divides;
  int index = 0;
  for (const auto& [width, height] : {std::pair{1, 1}, {2, 3}, {5, 4}, {40, 37}, {1031, 21}})
    for (int odd = 0; odd < 64; ++odd, ++index) {
      if (width > 1000 && odd % 8 != index / 64) continue;
      const Geometry geometry{format, width, height};
      Scene scene = any_scene(random, geometry, odd);
      const auto add = [&](const Geometry& size) -> blend::Pad& { return scene.add(any_picture(random, size)); };
      if (random.below(4)) add(geometry);
      blend::Pad& pad = add({format, width + 4, height + 4});
      const int length_x = std::max(1, width / 2 * 2 - (odd & 1)),
                length_y = std::max(1, height / 2 * 2 - (odd >> 1 & 1));
      pad.crop = {odd >> 2 & 1, odd >> 3 & 1, length_x, length_y};
      pad.place = {(odd >> 4 & 1) + 2 * random.between(-1, 1), (odd >> 5 & 1) + 2 * random.between(-1, 1), length_x,
                   length_y};
      pad.alpha = random.pick<double>({0.5, 0.5, 1, 0.003, random.unit()});
      pad.op = random.pick<Operator>({Operator::over, Operator::over, Operator::add, Operator::source});
      if (random.below(4) == 0) {
        blend::Pad& second = add({format, 7, 5});
        second.place = {random.between(-3, width), random.between(-3, height), 7, 5};
        second.alpha = 0.7;
        if (random.below(3) == 0) second.op = Operator::multiply;
      }
      expect_reference(backend, scene, scene.pads.back().params.op == Operator::multiply ? 1 : tolerance);
    }
}

/// Pads two to five times as wide and high as their place: each sample of the output is a sample of the pad, or a mean
/// of whole samples.
TEST_P(BlendFormats, WholeRatiosEqualTheReference) {
  Random random(unsigned(format) + 277);
  for (int round = 0; round < 16 * rounds(); ++round) {
    const Geometry geometry{format, random.between(1, 300), random.between(1, 90)};
    Scene scene = any_scene(random, geometry, round);
    for (int left = random.between(1, 2); left > 0; --left) {
      const int across = random.between(2, 5), down = random.below(3) ? across : random.between(2, 5);
      const Rect place{random.between(-3, geometry.width / 2), random.between(-3, geometry.height / 2),
                       random.between(1, geometry.width), random.between(1, geometry.height)};
      blend::Pad& pad = scene.add(make_picture({format, place.width * across, place.height * down},
                                               unsigned(random.below(1 << 30)), Data::random, random.pick(layouts)));
      pad.place = place;
      pad.op = random.below(2) ? Operator::over : Operator::source;
      pad.interpolation = interpolations[random.below(3)];
      if (random.below(3) == 0) pad.alpha = 0.5;
    }
    expect_reference(backend, scene);
  }
}

/// Pictures whose bytes are random or all ones, including bits above the depth, padding, alpha, and bytes between rows.
TEST_P(BlendFormats, TakesAnyBits) {
  Random random(unsigned(format) + 99);
  for (int round = 0; round < 6 * rounds(); ++round)
    for (const auto& [width, height] : small_sizes) {
      Scene scene =
          random_scene(random, random.below(2) ? format : Format(random.below(format_count)), format, {width, height});
      // These include pads that are copied or blended in place.
      if (random.below(2) && scene.geometry.format == format)
        for (Pad& pad : scene.pads) {
          pad.picture = Picture(scene.geometry, random.pick(layouts));
          pad.params.place = {0, 0, width, height};
          pad.params.crop = {};
          pad.params.color = scene.color;
          pad.params.key = {};
        }
      for (Pad& pad : scene.pads) {
        const bool ones = random.below(2) == 0;
        for (std::uint8_t& byte : pad.picture.bytes()) byte = ones ? 0xff : std::uint8_t(random.below(256));
      }
      expect_reference(backend, scene);
    }
}
INSTANTIATE_FOR_FORMATS(BlendFormats, all_formats());

class BlendPlans : public OnBackend {};

/// Pictures composed in place use integers. For every weight and every two samples they equal the float32 of
/// lay_pixel().
TEST_P(BlendPlans, EveryMixEqualsThePixels) {
  const Geometry geometry{Format::GRAY8, 256, 256};
  Picture below(geometry), above(geometry), expected(geometry);
  const Component& luma = below.format().components[0];
  below.change(luma, [](int, int y, int) { return y; });
  above.change(luma, [](int x, int, int) { return x; });
  Scene scene{geometry, {}, {}, {}, {}};
  scene.add(below).op = Operator::source;
  scene.add(above).op = Operator::over;
  blend::Target target{};
  target.max = 255, target.per_max = 1 / target.max;
  blend::Layer layer{};
  layer.rounding = blend::round_bias, layer.color_bias = blend::down_bias;
  for (int steps = 0; steps < 255; ++steps) {
    scene.pads[1].params.alpha = (steps + 0.5) / 255;
    layer.opacity = float(steps) / 256;
    expected.change(luma, [&](int x, int y, int) {
      float pixel[4] = {float(y), 0, 0, 255};
      blend::lay_pixel<Operator::over, 1>(target, layer, 1, {float(x), 0, 0, 255}, pixel);
      return int(pixel[0]);
    });
    ASSERT_EQ(expected.difference(compose(backend, scene), 0), "") << describe(scene);
  }
}

/// Two pictures with the format and size of the output, mostly aligned. Such frames have their own kernels.
TEST_P(BlendPlans, EqualSizes) {
  Random random(99);
  for (Format format : all_formats())
    for (int round = 0; round < 24; ++round) {
      const auto [width, height] = random.pick<std::pair<int, int>>({{128, 32}, {257, 19}, {16, 2}, {98, 8}});
      const Geometry geometry{format, width, height};
      const bool aligned = random.below(4) > 0;
      const auto layout = [&] { return aligned ? Layout{0, 0, 64} : random.pick(layouts); };
      Scene scene{geometry, random_color(random), random_background(random), {}, layout()};
      for (int i = random.below(4) == 0; i < 2; ++i) {
        blend::Pad& pad = scene.add(
            make_picture(geometry, unsigned(round * 2 + i), random.pick<Data>({Data::random, Data::faint}), layout()));
        pad.op = random.pick<Operator>({Operator::over, Operator::average, Operator::source, Operator::add});
        pad.alpha = random.pick<double>({1, 0.65, 0.25});
        if (i == 0 && random.below(4)) pad.op = Operator::source, pad.alpha = 1;
        if (i == 1 && random.below(2)) {
          pad.key.mode = random.below(2) ? blend::Key::Mode::first_pixel : blend::Key::Mode::color;
          pad.key.color = {0.5, 0.49, 0.51};
          pad.key.tolerance = random.pick<double>({0, 1.5, 40});
          pad.key.softness = random.pick<double>({0, 0, 20});
        }
      }
      expect_reference(backend, scene);
    }
}

/// GStreamer's compositor has integer formulas: `over` and `add` on a transparent background (overlay), and `over` on
/// an opaque one.
TEST_P(BlendPlans, OverIsTheCompositors) {
  for (Format format : {Format::RGBA, Format::BGRA, Format::ARGB, Format::RGB, Format::I420, Format::NV12})
    for (Division division : divisions)
      for (Kind background : {Kind::transparent, Kind::black})
        for (double alpha : {1.0, 0.65, 0.1, 0.99, 0.5})
          for (Operator op : {Operator::over, Operator::add, Operator::source}) {
            // ORC computes (v · 0x8081) >> 23 from 0.4.39 on, and the other expression in older versions.
            const auto div255 = [&](int v) {
              return division == Division::down ? int(v * 0x8081u >> 23) : (v + 128 + ((v + 128) >> 8)) >> 8;
            };
            const Geometry geometry{format, 256, 64};
            const bool has_alpha = reference::definition(format).has_alpha();
            const bool opaque = background != Kind::transparent;
            const Picture below = make_picture(geometry, 11), above = make_picture(geometry, 12);
            Scene scene{geometry, {}, {background}, {}, {}, division};
            scene.add(below).op = Operator::source;
            scene.add(above).op = op;
            scene.pads[1].params.alpha = alpha;
            Picture expected(geometry);
            const int steps = int(alpha * 255);
            const auto& components = below.format().components;
            const Component& own_alpha = has_alpha ? *below.format().find(Role::alpha) : components[0];
            const Grid own = above.read(own_alpha), under = below.read(own_alpha);
            for (const Component& c : components) {
              const Grid upper = above.read(c), lower = below.read(c);
              const bool of_alpha = c.role == Role::alpha;
              expected.change(c, [&](int x, int y, int) {
                const int s = upper.at(x, y), d = lower.at(x, y);
                if (!has_alpha) return steps < 255 && op != Operator::source ? (d * 256 + (s - d) * steps) >> 8 : s;
                const int a = div255(own.at(x, y) * steps), b = div255(under.at(x, y) * (255 - a));
                if (op == Operator::source) return of_alpha ? a : s;
                if (opaque) return of_alpha ? 255 : div255(s * a + d * (255 - a));
                if (of_alpha) return op == Operator::add ? std::min(255, under.at(x, y) + a) : a + b;
                return a + b == 0 ? 255 : std::min(255, (s * a + d * b) / (a + b));
              });
            }
            const bool exact = backend == Backend::cpu || opaque || !has_alpha;  // CUDA's division is not exact
            EXPECT_EQ(expected.sample_difference(compose(backend, scene), exact ? 0 : 1), "") << describe(scene);
          }
}

/// A wall of 64 overlapping pads of all formats, followed by few pads and no pads in the same plan.
TEST_P(BlendPlans, SixtyFourPads) {
  Random random(64);
  for (Format format : {Format::RGBA, Format::NV12, Format::P010_10LE, Format::YUY2}) {
    const Geometry geometry{format, 301, 203};
    const auto plan = plan_for(backend, geometry, {});
    for (int count : {64, 3, 0, 17}) {
      Scene scene{geometry, {}, {}, {}, {1, 3, 4}};
      const auto cells = blend::grid_layout(count, 0, 0, 3, geometry.width, geometry.height);
      for (int i = 0; i < count; ++i) {
        blend::Pad& pad = scene.add(
            make_picture({Format((i * 7) % format_count), random.between(1, 60), random.between(1, 60)}, unsigned(i)));
        pad.place = {cells[i].x - 2, cells[i].y - 1, cells[i].width + 7, cells[i].height + 5};
        pad.alpha = i % 3 ? 1 : 0.6;
        pad.interpolation = interpolations[i % 3];
      }
      EXPECT_EQ(difference(scene, compose(*plan, backend, scene), 1), "") << count << " pads, " << describe(scene);
    }
  }
}

/// A pad at odd addresses needs an aligned copy. The copy must have room for each format and size of the pad.
TEST_P(BlendPlans, PadAtOddAddressesGrows) {
  const Layout odd{0, 0, 1, 1, 0};
  const Geometry geometry{Format::RGBA, 301, 203};
  const auto plan = plan_for(backend, geometry, {});
  for (const Geometry& size :
       {Geometry{Format::GRAY16_LE, 5, 3}, {Format::RGBA64_LE, 300, 200}, {Format::P010_10LE, 40, 30}}) {
    Scene scene{geometry, {}, {}, {}, {}};
    scene.add(make_picture(size, 6, Data::random, odd)).place = {0, 0, size.width, size.height};
    EXPECT_EQ(difference(scene, compose(*plan, backend, scene), 1), "") << describe(scene);
  }
}

/// Sizes and positions at the limits.
TEST_P(BlendPlans, FarOutsideAndVeryLarge) {
  for (Interpolation interpolation : interpolations) {
    const Picture wide = make_picture({Format::NV12, 16384, 3}, 3), tiny = make_picture({Format::RGB, 3, 2}, 4);
    Scene scene{{Format::I420, 129, 37}, {}, {}, {{wide, {}}, {tiny, {}}, {tiny, {}}, {wide, {}}, {tiny, {}}}, {}};
    scene.pads[0].params.place = {0, 0, 128, 20};
    scene.pads[1].params.place = {-32700, -32740, 32768, 32768};
    scene.pads[2].params.place = {blend::max_position, -blend::max_position, 32768, 32768};
    scene.pads[3].params.place = {-20000, 28, 32768, 4};
    scene.pads[3].params.crop = {16000, 1, 384, 2};
    scene.pads[4].params.place = {20, 33, 1, 1};
    for (Pad& pad : scene.pads) pad.params.interpolation = interpolation;
    expect_reference(backend, scene);
  }
}

/// Output of the largest height: blocks compose several strips.
TEST_P(BlendPlans, ManyTiles) {
  for (Format format : {Format::NV12, Format::RGBA}) {
    const Geometry geometry{format, 131, 16379};
    Scene scene{geometry, {}, {}, {}, {}};
    blend::Pad& high = scene.add(make_picture({format, 131, 9000}, 1));
    high.place = {0, 1, 131, 9000};
    high.op = Operator::source;
    blend::Pad& above = scene.add(make_picture({format, 90, 70}, 2));
    above.place = {30, 8000, 99, 8370};
    above.alpha = 0.6;
    expect_reference(backend, scene);
  }
}

/// Rows so far apart that offsets do not fit in 32 bits.
TEST_P(BlendPlans, RowsFarApart) {
  const Picture src = make_picture({Format::GRAY8, 100, 35}, 9);
  const auto plan = plan_for(backend, src.geometry(), {});
  for (int width : {100, 80})
    for (double alpha : {1.0, 0.5}) {
      Pad pad{src, {}};
      pad.params.place = {0, 0, width, 35};
      pad.params.alpha = alpha;
      const Picture expected = reference::blend(src.geometry(), {}, {}, {pad});
      const auto work = [&](const Image& from, const Image& to, Queue queue) {
        pad.params.src = from;
        return plan->submit(to, {}, {pad.params}, queue);
      };
      EXPECT_EQ(expected.sample_difference(run_far_apart(backend, work, src), 1), "") << width << ' ' << alpha;
    }
}

/// A picture that hides everything leaves no trace of hidden pictures, in this frame or the next, to the last bit.
TEST_P(BlendPlans, WhatIsHiddenLeavesNothing) {
  for (Format format : {Format::GRAY16_LE, Format::Y444_16LE, Format::RGBA64_LE, Format::RGBA, Format::NV12}) {
    const Geometry geometry{format, 1000, 2};
    const auto plan = plan_for(backend, geometry, {});
    const auto shown = [&](Format of, unsigned seed, Operator op) {
      Pad pad{make_picture({of, 437, 3}, seed), {}};
      pad.params.place = {0, 0, geometry.width, geometry.height};
      pad.params.op = op;
      return pad;
    };
    for (Operator op : {Operator::source, Operator::over, Operator::add, Operator::average}) {
      const bool opaque = op == Operator::over || op == Operator::add;
      const Format above = opaque && format == Format::RGBA64_LE ? Format::Y444_16LE
                           : opaque && format == Format::RGBA    ? Format::RGB
                                                                 : format;
      const Scene scene{geometry, {}, {Kind::black}, {shown(above, 3, op)}, {}};
      Scene other{geometry, {}, {Kind::white}, {shown(format, 1, Operator::average), shown(above, 3, op)}, {}};
      const Picture first = compose(*plan, backend, scene);
      EXPECT_EQ(first.sample_difference(compose(*plan, backend, other), 0), "") << describe(other);
      other.pads.pop_back();
      (void)compose(*plan, backend, other);
      EXPECT_EQ(first.sample_difference(compose(*plan, backend, scene), 0), "")
          << "after another frame: " << describe(scene);
    }
  }
}

/// An average of weight 1 is the pad itself. Fractions of alpha between its pixels are rounded to the nearest integer,
/// even where compositor's division rounds down.
TEST_P(BlendPlans, WholeAveragesRoundAlphaToNearest) {
  for (Division division : divisions) {
    Pad pad{make_picture({Format::RGBA, 2, 1}, 1, Data::flat), {}};
    const Component& alpha = *pad.picture.format().find(Role::alpha);
    pad.picture.change(alpha, [](int x, int, int) { return 100 + x; });
    pad.params.place = {0, 0, 8, 1};
    pad.params.op = Operator::average;
    const Scene scene{{Format::RGBA, 8, 1}, {}, {}, {pad}, {}, division};
    EXPECT_EQ(compose(backend, scene).read(alpha).values, std::vector<int>({100, 100, 100, 100, 101, 101, 101, 101}))
        << describe(scene);
  }
}

/// All kernels give the same bits. A small pad on top selects the kernel for any layers; rows that the pad does not
/// touch keep every bit. Two pictures with an operator on R', G' and B' have their own kernel.
TEST_P(BlendPlans, OthersChangeNothingBeside) {
  Random random(21);
  for (Format format : all_formats())
    for (Operator op : {Operator::average, Operator::over, Operator::subtract, Operator::multiply, Operator::screen,
                        Operator::difference, Operator::min, Operator::max})
      for (double alpha : {1.0, random.unit()}) {
        Scene scene = two_pictures({format, int(op) % 2 ? 218 : 64, 100}, op, alpha);
        blend::Pad& below = scene.pads[0].params;
        if (op == Operator::average || op == Operator::over) {  // prevents the kernels for planes and pixels
          below.place.height = 99;
          below.crop = {0, 0, below.place.width, 99};
        }
        const Picture alone = compose(backend, scene);
        scene.add(make_picture({format, 3, 5}, 3)).place = {20, 92, 8, 2};
        const Picture beside = compose(backend, scene);
        for (const Component& c : alone.format().components) {
          std::vector<int> before = alone.read(c).values, after = beside.read(c).values;
          before.resize(before.size() * 9 / 10), after.resize(before.size());
          EXPECT_TRUE(before == after) << describe(scene);
        }
      }
}

/// Walls and insets in the output's format have their own kernel, which must give the bits of the kernel for any
/// layers. A pad on top that matches its key everywhere changes nothing, but selects that kernel.
TEST_P(BlendPlans, WallsGiveTheSameBits) {
  Random random(23);
  for (Format format : all_formats())
    for (int round = 0; round < 6 * rounds(); ++round) {
      const Geometry geometry{format, random.between(130, 300), random.between(70, 140)};
      Scene scene = any_scene(random, geometry, round);
      const auto add = [&](int width, int height) -> blend::Pad& {
        return scene.add(any_picture(random, {format, width, height}));
      };
      if (random.below(2)) add(geometry.width, geometry.height);
      const Operator op = random.below(2) ? Operator::source : Operator::over;
      const Interpolation interpolation = interpolations[round % 3];
      const auto cells =
          blend::grid_layout(random.between(1, 12), 0, 0, random.below(3), geometry.width, geometry.height);
      for (const Rect& cell : cells) {
        const bool whole = random.below(3) > 0;  // each pixel takes a whole number of samples
        blend::Pad& pad = whole ? add(cell.width * random.between(1, 4), cell.height * random.between(1, 4))
                                : add(random.between(1, 200), random.between(1, 100));
        pad.place = cell;
        pad.op = op;
        pad.alpha = random.below(4) ? 1 : 0.7;
        pad.interpolation = interpolation;
      }
      if (random.below(2)) {
        blend::Pad& inset = add(random.between(2, 300), random.between(2, 200));
        inset.place = {random.between(-9, 130), random.between(-9, 70), random.between(1, 150), random.between(1, 90)};
        inset.interpolation = interpolation;
      }
      expect_reference(backend, scene);
      const Picture direct = compose(backend, scene);
      blend::Pad& none = scene.add(make_picture({format, 4, 4}, 1, Data::flat));
      none.op = Operator::average;
      none.key.mode = blend::Key::Mode::first_pixel;
      EXPECT_EQ(direct.sample_difference(compose(backend, scene), 0), "") << describe(scene);
    }
}

/// Each error is one sentence that names the wrong parameter. Nothing is written.
TEST_P(BlendPlans, RefusesBadPads) {
  const auto plan = plan_for(backend, {Format::NV12, 16, 16}, {});
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const auto refused = [&](const std::vector<blend::Pad>& pads, const char* what) {
    const Status status = plan->submit({{Format::NV12, 16, 16}, {}}, {}, pads, {});
    EXPECT_EQ(status.code(), Status::Code::settings) << what;
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
  };
  const auto expect = [&](const char* what, const std::vector<double>& values, void (*spoil)(blend::Pad&, double)) {
    for (double value : values) {
      blend::Pad pad;
      pad.src.geometry = {Format::RGB, 8, 8};
      spoil(pad, value);
      refused({pad}, what);
      EXPECT_FALSE(validate(pad).ok());
    }
  };
  expect("alpha", {-0.1, 1.1, nan, infinity}, [](blend::Pad& p, double v) { p.alpha = v; });
  expect("key-color", {-0.1, 1.1, nan}, [](blend::Pad& p, double v) { p.key.color[1] = v; });
  expect("key-tolerance", {-1, 256, nan}, [](blend::Pad& p, double v) { p.key.tolerance = v; });
  expect("key-softness", {-1, 256, nan}, [](blend::Pad& p, double v) { p.key.softness = v; });
  expect("32768", {32769}, [](blend::Pad& p, double v) { p.place = {0, 0, int(v), 4}; });
  expect("xpos", {-2147483648.0, 2147483647.0}, [](blend::Pad& p, double v) { p.place = {int(v), 0, 4, 4}; });
  expect("xpos is 16777217: it must be -16777216 to 16777216", {16777217}, [](blend::Pad& p, double v) {
    p.place = {int(v), 0, 4, 4};
  });
  expect("ypos", {-16777217.0}, [](blend::Pad& p, double v) { p.place = {0, int(v), 4, 4}; });
  expect("crop", {-1, 1, 2147483647.0}, [](blend::Pad& p, double v) { p.crop = {int(v), 0, 8, 8}; });
  expect("16384", {0, 16385}, [](blend::Pad& p, double v) { p.src.geometry.width = int(v); });
  blend::Pad hidden;
  hidden.src.geometry = {Format::RGB, 8, 8};
  refused(std::vector<blend::Pad>(65, hidden), "65 pads");
  for (int side : {0, 16385}) {
    const auto made = blend::make({Format::RGB, side, 8}, {}, backend);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message().find("16384"), std::string::npos) << made.error().message();
  }
}
INSTANTIATE_FOR_BACKENDS(BlendPlans);

TEST(BlendLayout, GridIsAsSquareAsFits) {
  for (int count = 1; count <= 64; ++count)
    for (const auto& [columns, rows] : {std::pair{0, 0}, {3, 0}, {0, 2}, {8, 8}}) {
      const auto cells = blend::grid_layout(count, columns, rows, 5, 1920, 1080);
      ASSERT_EQ(cells.size(), std::size_t(count));
      int across = 1;
      while (across < count && cells[across].y == cells[0].y) ++across;
      const int square = int(std::ceil(std::sqrt(count)));
      EXPECT_EQ(across, std::min(count, columns > 0 ? columns : rows > 0 ? (count + rows - 1) / rows : square));
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(cells[i].width, cells[0].width);
        EXPECT_EQ(cells[i].x, i % across * (cells[0].width + 5));
        EXPECT_EQ(cells[i].y, i / across * (cells[0].height + 5));
        EXPECT_LE(cells[i].x + cells[i].width, 1920);
        EXPECT_LE(cells[i].y + cells[i].height, 1080);
      }
    }
  EXPECT_EQ(blend::grid_layout(5, 2, 2, 0, 100, 50)[3], (Rect{50, 25, 50, 25}));
  EXPECT_TRUE(blend::grid_layout(5, 2, 2, 0, 100, 50)[4].empty());
  EXPECT_TRUE(blend::grid_layout(4, 2, 2, 100, 100, 50)[0].empty());  // the gaps leave no room
  EXPECT_TRUE(blend::grid_layout(0, 0, 0, 0, 100, 50).empty());
}

TEST(BlendLayout, FitKeepsTheAspectRatio) {
  const Rect box{10, 20, 160, 90};
  const auto place = [&](int w, int h, double aspect, blend::SizingPolicy policy) {
    return fit(box, w, h, aspect, policy).place;
  };
  const auto crop = [&](int w, int h, double aspect, blend::SizingPolicy policy) {
    return fit(box, w, h, aspect, policy).crop;
  };
  EXPECT_EQ(place(7, 9, 1, SizingPolicy::none), box);
  EXPECT_EQ(crop(7, 9, 1, SizingPolicy::none), (Rect{0, 0, 7, 9}));
  EXPECT_EQ(place(1920, 1080, 1, SizingPolicy::keep_aspect_ratio), box);
  EXPECT_EQ(place(100, 100, 1, SizingPolicy::keep_aspect_ratio), (Rect{45, 20, 90, 90}));
  EXPECT_EQ(place(400, 100, 1, SizingPolicy::keep_aspect_ratio), (Rect{10, 45, 160, 40}));
  EXPECT_EQ(place(100, 100, 2, SizingPolicy::keep_aspect_ratio), (Rect{10, 25, 160, 80}));
  EXPECT_EQ(crop(400, 100, 1, SizingPolicy::keep_aspect_ratio), (Rect{0, 0, 400, 100}));
  EXPECT_EQ(place(400, 100, 1, SizingPolicy::fill), box);
  EXPECT_EQ(crop(400, 100, 1, SizingPolicy::fill), (Rect{111, 0, 178, 100}));
  EXPECT_EQ(crop(90, 160, 1, SizingPolicy::fill), (Rect{0, 54, 90, 51}));
  EXPECT_EQ(crop(3, 16384, 1, SizingPolicy::fill), (Rect{0, 8191, 3, 2}));
  EXPECT_EQ(crop(1, 16384, 1, SizingPolicy::fill), (Rect{0, 8191, 1, 1}));
  EXPECT_EQ(place(16384, 1, 1, SizingPolicy::keep_aspect_ratio), (Rect{10, 64, 160, 1}));
  EXPECT_EQ(place(100, 80, 1, SizingPolicy::keep_aspect_ratio), (Rect{34, 20, 112, 90}));  // rounded down
  EXPECT_EQ(fit({0, 0, 80, 20}, 32, 24, 1, SizingPolicy::keep_aspect_ratio).place, (Rect{27, 0, 26, 20}));
}

/// The tiles cover the output. Small pictures get small tiles; large ones get several strips per tile.
TEST(BlendSchedule, TilesCoverTheOutput) {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{1, 1}, {64, 16}, {65, 17}, {1920, 1080}, {7680, 4320}})
    for (const blend::TileGrid& grid : {blend::tile_grid(width, height), blend::direct_tile_grid(width, height)}) {
      EXPECT_EQ(grid.tile_width % blend::tile_width, 0);
      EXPECT_EQ(grid.tile_height % blend::strip_height, 0);
      EXPECT_TRUE(just_cover(grid.across, grid.tile_width, width) && just_cover(grid.down, grid.tile_height, height));
    }
  EXPECT_EQ(blend::tile_grid(640, 360).tile_height, blend::strip_height);
  EXPECT_EQ(blend::tile_grid(16384, 16384).tile_height, blend::tuning.most_strips * blend::strip_height);
  EXPECT_LE(blend::tile_grid(16384, 16384).down, 65535);
  EXPECT_EQ(blend::direct_tile_grid(640, 360).tile_height, blend::strip_height);
  EXPECT_EQ(blend::direct_tile_grid(16384, 16384).tile_height, blend::tuning.direct_strips * blend::strip_height);
}

/// Pads of the output's size at invented addresses that are never read.
struct PairScene {
  PairScene(Format format, int width, int height) : geometry{format, width, height} {
    pads.resize(2);
    for (std::size_t i = 0; i < pads.size(); ++i) {
      pads[i].src = image(i + 1);
      pads[i].place = {0, 0, width, height};
    }
    pads[0].op = Operator::source;
  }
  Image image(std::size_t index) const {
    Image image{geometry, {}};
    for (std::size_t p = 0; p < max_planes; ++p)
      image.planes[p] = {reinterpret_cast<void*>((index << 32) + (p << 28)), (geometry.width * 4 + 15) / 16 * 16};
    return image;
  }
  template <typename F>
  auto resolved(Division division, F&& f) const {
    const ColorCoding out(geometry.format, LumaMatrix::bt601, false);
    blend::Target target = blend::make_target(geometry, out);
    blend::set_frame(image(3), out, {}, target);
    std::vector<blend::Layer> layers(pads.size());
    for (std::size_t i = 0; i < pads.size(); ++i)
      EXPECT_TRUE(blend::resolve(pads[i], pads[i].src, out, target, division, layers[i]));
    return f(target, layers);
  }
  std::optional<blend::PairLaunch> schedule(Division division = Division::nearest) const {
    return resolved(division,
                    [&](auto& target, auto& layers) { return blend::schedule_pair(geometry, target, layers); });
  }
  blend::ComposeLaunch schedule_tiles() const {
    return resolved(Division::nearest,
                    [](auto& target, auto& layers) { return blend::schedule_compose(target, layers); });
  }

  /// The parts that compose_direct_tiles computes, and the layers.
  blend::Parts schedule_parts(std::vector<blend::Layer>& resolved_layers) const {
    return resolved(Division::nearest, [&](auto& target, auto& layers) {
      blend::Parts parts;
      blend::schedule_parts(target, layers, blend::schedule_compose(target, layers), parts);
      resolved_layers = layers;
      return parts;
    });
  }

  Geometry geometry;
  std::vector<blend::Pad> pads;
};

/// Kernels for pairs, for pixels and for half-size chroma run only for formats with a suitable layout. They never run
/// for alpha planes, whatever the number of planes.
TEST(BlendSchedule, PairsFitTheLayout) {
  using Kernel = blend::PairLaunch::Kernel;
  for (Format format : all_formats()) {
    const FormatInfo& row = info(format);
    if (row.packing) continue;
    const bool pixels = row.sets[0].channels == 4, halved = row.is_semi_planar() && row.is_420();
    for (Operator op : {Operator::over, Operator::average, Operator::multiply})
      for (bool keyed : {false, true}) {
        PairScene scene(format, 64, 48);
        scene.pads[1].op = op;
        if (keyed) scene.pads[1].key.mode = blend::Key::Mode::first_pixel;
        const auto launch = scene.schedule();
        if (!launch) continue;
        EXPECT_EQ(row.depth, 8) << row.name;
        EXPECT_LT(row.alpha_set(), 0) << row.name;
        const Kernel kernel = launch->kernel;
        EXPECT_TRUE(halved || (kernel != Kernel::keyed_420 && kernel != Kernel::operate_420)) << row.name;
        EXPECT_TRUE(pixels || (kernel != Kernel::pixels && kernel != Kernel::operate_pixels)) << row.name;
      }
    PairScene scaled(format, 64, 48);
    scaled.pads[1].place = {8, 8, 20, 20};
    scaled.resolved(Division::nearest, [&](auto&, auto& layers) {
      const bool quarters = row.sets[1].shift_x > 1, whole_pairs = row.is_semi_planar() && row.sets[1].shift_x == 0;
      EXPECT_FALSE(layers[1].direct && (quarters || whole_pairs || row.alpha_set() >= 0)) << row.name;
    });
  }
}

/// Walls and insets in the output's format need one kernel. Small other pads need both kernels; large ones need the
/// other.
TEST(BlendSchedule, TilesOfDirectLayers) {
  for (Format format : {Format::GRAY8, Format::NV12, Format::I420, Format::RGB, Format::BGRx, Format::RGBA}) {
    PairScene scene(format, 1920, 1080);
    for (int odd : {0, 1}) {
      scene.pads[1].place = {100 + odd, 100 + odd, 640, 360};
      const blend::ComposeLaunch launch = scene.schedule_tiles();
      EXPECT_GT(launch.direct.across, 0);
      EXPECT_EQ(launch.pixels.across, 0);
    }
    scene.pads[1].key.mode = blend::Key::Mode::first_pixel;
    blend::ComposeLaunch launch = scene.schedule_tiles();
    EXPECT_GT(launch.direct.across, 0);
    EXPECT_GT(launch.pixels.across, 0);
    EXPECT_EQ(launch.direct.tile_height % launch.pixels.tile_height, 0);
    scene.pads[1].place = {0, 0, 1900, 1080};
    launch = scene.schedule_tiles();
    EXPECT_EQ(launch.direct.across, 0);
    EXPECT_GT(launch.pixels.across, 0);
  }
  // Only formats with alpha accept a faded pad. Chroma in pairs must be aligned.
  for (Format format : {Format::GRAY8, Format::NV12, Format::I420, Format::BGRx, Format::RGBA}) {
    PairScene faded(format, 1920, 1080);
    faded.pads[1].place = {100, 100, 640, 360};
    faded.pads[1].alpha = 0.5;
    EXPECT_EQ(faded.schedule_tiles().pixels.across > 0, format != Format::RGBA) << info(format).name;
  }
  for (int odd : {0, 1}) {
    PairScene pairs(Format::NV12, 1920, 1080);
    pairs.pads[1].place = {100, 100, 640, 360};
    pairs.pads[1].src.planes[1].pitch += odd;
    EXPECT_EQ(pairs.schedule_tiles().pixels.across > 0, odd);
  }
  PairScene deep(Format::GRAY16_LE, 1920, 1080);  // a scaled upper pad has no direct kernel with 16 bits
  deep.pads[1].place = {100, 100, 640, 360};
  EXPECT_GT(deep.schedule_tiles().direct.across, 0);
  EXPECT_GT(deep.schedule_tiles().pixels.across, 0);
  deep.pads.pop_back();
  EXPECT_EQ(deep.schedule_tiles().pixels.across, 0);
}

/// Each pixel of each plane is in exactly one part, which knows the layers that show there. Parts begin and end between
/// chroma samples.
TEST(BlendSchedule, PartsAreTheOutput) {
  Random random(5);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    const Format format = random.pick<Format>({Format::GRAY8, Format::NV12, Format::I420, Format::RGBA});
    PairScene scene(format, random.between(40, 400), random.between(20, 200));
    const Geometry& size = scene.geometry;
    scene.pads.resize(std::size_t(random.between(1, 6)));
    for (std::size_t i = 0; i < scene.pads.size(); ++i) {
      scene.pads[i].src = scene.image(i + 1);
      const bool fills = i == 0 && random.below(2);
      scene.pads[i].place = fills ? Rect{0, 0, size.width, size.height}
                                  : Rect{random.between(-9, size.width - 1), random.between(-9, size.height - 1),
                                         random.between(10, 300), random.between(10, 150)};
    }
    std::vector<blend::Layer> layers;
    const blend::Parts parts = scene.schedule_parts(layers);
    if (parts.part[0].kind == blend::OutputPart::Kind::searched) continue;
    ++found;
    const bool subsampled = format == Format::NV12 || format == Format::I420;
    std::vector<int> luma(std::size_t(size.width) * size.height), chroma(luma.size());
    int blocks = 0;
    for (int i = 0; i < parts.count; ++i) {
      const blend::OutputPart& part = parts.part[i];
      const Rect& r = part.rect;
      const int tiles = (r.x + r.width - first_tile(part) + part.tile_width - 1) / part.tile_width,
                rows = (r.height + part.tile_height - 1) / part.tile_height;
      if (i == parts.simple) {
        EXPECT_EQ(blocks, parts.blocks);
        blocks = 0;
      }
      EXPECT_TRUE(part.column > 0 || part.begin == blocks);
      EXPECT_LE(part.column + tiles, part.across);
      blocks += tiles * rows;
      const bool has_chroma = subsampled && part.planes != blend::Planes::luma;
      EXPECT_TRUE(!has_chroma || (r.x % 2 == 0 && (r.width % 2 == 0 || r.x + r.width == size.width)));
      for (const auto& [x, y] : positions(r)) {
        luma[std::size_t(y) * size.width + x] += part.planes != blend::Planes::chroma;
        chroma[std::size_t(y) * size.width + x] += part.planes != blend::Planes::luma;
        std::uint64_t shows = 0;
        for (std::size_t l = 0; l < layers.size(); ++l) {
          const Rect& v = layers[l].visible;
          if (x < v.x || y < v.y || x >= v.x + v.width || y >= v.y + v.height) continue;
          shows = layers[l].hides && part.whole >> l & 1 ? 0 : shows;
          shows |= std::uint64_t(1) << l;
        }
        ASSERT_EQ(shows & ~part.layers, 0u) << x << ' ' << y;
        ASSERT_EQ(part.whole & ~shows, 0u) << x << ' ' << y;
      }
    }
    EXPECT_EQ(parts.simple < parts.count ? parts.other_blocks : parts.blocks, blocks);
    EXPECT_EQ(std::count(luma.begin(), luma.end(), 1), std::ptrdiff_t(luma.size()));
    EXPECT_EQ(std::count(chroma.begin(), chroma.end(), 1), std::ptrdiff_t(chroma.size()));
  }
  EXPECT_GT(found, 40);
}

/// Tiles with a scaled pad start first. Blocks search for their part if there are too many parts, or pads for
/// compose_tiles.
TEST(BlendSchedule, PartsOfInsetsAndWalls) {
  std::vector<blend::Layer> layers;
  PairScene inset(Format::RGBA, 1920, 1080);
  inset.pads[1].place = {640, 360, 640, 360};
  blend::Parts parts = inset.schedule_parts(layers);
  EXPECT_EQ(parts.count, 5);
  EXPECT_EQ(parts.part[0].layers, 3u);
  EXPECT_EQ(parts.part[4].layers, 1u);
  inset.pads[1].key.mode = blend::Key::Mode::first_pixel;
  parts = inset.schedule_parts(layers);
  EXPECT_EQ(parts.count, 1);
  EXPECT_EQ(parts.part[0].kind, blend::OutputPart::Kind::searched);

  PairScene odd(Format::NV12, 1920, 1080);
  odd.pads[1].place = {641, 361, 640, 360};
  parts = odd.schedule_parts(layers);
  EXPECT_EQ(parts.other_blocks, 0);  // blocks of compose_simple_parts also compose chroma at the edges
  EXPECT_EQ(std::count_if(parts.part, parts.part + parts.count,
                          [](auto& part) { return part.kind == blend::OutputPart::Kind::edges; }),
            4);
  odd.pads[0].place.width = 1000;  // the background shows
  parts = odd.schedule_parts(layers);
  EXPECT_GT(parts.other_blocks, 0);

  const auto wall = [&](int width, int height, int cells) {
    PairScene scene(Format::NV12, width, height);
    scene.pads.resize(std::size_t(cells) + 1, scene.pads[0]);
    const std::vector<Rect> places = blend::grid_layout(cells, 0, 0, 0, width, height);
    for (int i = 0; i < cells; ++i) scene.pads[std::size_t(i) + 1].place = places[std::size_t(i)];
    return scene.schedule_parts(layers);
  };
  EXPECT_EQ(wall(1920, 1080, 9).count, 18);  // luma and chroma of nine pads
  EXPECT_NE(wall(1920, 1080, 63).part[0].kind, blend::OutputPart::Kind::searched);
  EXPECT_EQ(wall(1912, 1080, 63).part[0].kind, blend::OutputPart::Kind::searched);
}

TEST(BlendSchedule, Matrices) {
  for (LumaMatrix matrix : luma_matrices)
    for (bool limited : {false, true})
      for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
        const blend::Target target = blend::make_target({format, 8, 8}, ColorCoding(format, matrix, limited));
        EXPECT_EQ(blend::matrices_of(target),
                  format == Format::RGBA ? blend::Matrices::equal : blend::Matrices::bounded);
      }
  blend::Target target = blend::make_target({Format::NV12, 8, 8}, ColorCoding(Format::NV12, LumaMatrix::bt601, false));
  target.from_rgb.m[0][3] = 1;
  EXPECT_EQ(blend::matrices_of(target), blend::Matrices::any);
}

TEST(BlendSchedule, PairsOfPlanes) {
  using Kernel = blend::PairLaunch::Kernel;
  PairScene scene(Format::NV12, 1920, 1080);
  scene.pads[1].alpha = 0.5;
  auto launch = scene.schedule();
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->kernel, Kernel::planes);
  EXPECT_TRUE(launch->down);  // `over` rounds down
  EXPECT_EQ(launch->job.plane_count, 2);
  EXPECT_EQ(launch->job.total, 120 * (1080 + 540));  // chunks of 16 bytes
  EXPECT_EQ(launch->job.planes[1].begin, 120 * 1080);
  EXPECT_FLOAT_EQ(launch->job.weight, 127 / 256.0f);
  EXPECT_EQ(launch->job.planes[0].above, scene.pads[1].src.planes[0].data);
  EXPECT_EQ(launch->job.planes[0].below, scene.pads[0].src.planes[0].data);

  scene.pads[1].key.mode = blend::Key::Mode::color;
  launch = scene.schedule();
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->kernel, Kernel::keyed_420);
  EXPECT_EQ(launch->job.total, 120 * 540);  // one thread for each chunk of chroma
  EXPECT_FALSE(launch->job.swapped);

  for (Format format : {Format::I420, Format::YUY2, Format::RGB}) {  // these formats have no kernel for a key
    PairScene keyed(format, 64, 8);
    EXPECT_TRUE(keyed.schedule());
    keyed.pads[1].key.mode = blend::Key::Mode::color;
    EXPECT_FALSE(keyed.schedule());
  }
  EXPECT_TRUE(PairScene(Format::NV21, 64, 8).schedule()->job.swapped);
}

TEST(BlendSchedule, PairsOfPixels) {
  using blend::PixelMix;
  const auto mix = [](Format format, Operator op, Division division = Division::nearest) {
    PairScene scene(format, 64, 8);
    scene.pads[1].op = op;
    scene.pads[1].alpha = 0.5;
    const auto launch = scene.schedule(division);
    EXPECT_TRUE(launch && launch->kernel == blend::PairLaunch::Kernel::pixels);
    return launch ? launch->mix : PixelMix::all;
  };
  EXPECT_EQ(mix(Format::RGBA, Operator::average), PixelMix::all);
  EXPECT_EQ(mix(Format::RGBA, Operator::source), PixelMix::source);
  EXPECT_EQ(mix(Format::RGBA, Operator::over), PixelMix::on_opaque);
  EXPECT_EQ(mix(Format::RGBA, Operator::over, Division::down), PixelMix::on_opaque_down);
  EXPECT_EQ(mix(Format::RGBx, Operator::over), PixelMix::padded_down);
  EXPECT_EQ(mix(Format::RGBx, Operator::average), PixelMix::padded);

  PairScene argb(Format::ARGB, 64, 8);
  argb.pads[1].key.mode = blend::Key::Mode::color;
  argb.pads[1].key.color = {1, 0.5, 0};
  const auto launch = argb.schedule();
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->fourth, 0);
  EXPECT_TRUE(launch->keyed);
  EXPECT_FLOAT_EQ(launch->job.layer.key[0], 255);
  EXPECT_FLOAT_EQ(launch->job.layer.key[1], 127.5f);
}

TEST(BlendSchedule, PairsWithOperators) {
  using Kernel = blend::PairLaunch::Kernel;
  const auto kernel = [](Format format, Operator op, bool keyed = false) {
    PairScene scene(format, 64, 8);
    scene.pads[1].op = op;
    if (keyed) scene.pads[1].key.mode = blend::Key::Mode::color;
    const auto launch = scene.schedule();
    return launch ? std::optional(launch->kernel) : std::nullopt;
  };
  for (Operator op : {Operator::subtract, Operator::max}) {
    EXPECT_EQ(kernel(Format::GRAY8, op), Kernel::operate_gray);
    EXPECT_EQ(kernel(Format::ARGB, op), Kernel::operate_pixels);
    EXPECT_EQ(kernel(Format::BGRx, op), Kernel::operate_pixels);
    EXPECT_EQ(kernel(Format::NV21, op), Kernel::operate_420);
    for (Format format : {Format::I420, Format::RGB, Format::P010_10LE}) EXPECT_FALSE(kernel(format, op));
    EXPECT_FALSE(kernel(Format::GRAY8, op, true));
  }
}

TEST(BlendSchedule, OtherFramesAreNoPairs) {
  const auto pair = [](Format format, void (*spoil)(PairScene&)) {
    PairScene scene(format, 63, 8);
    EXPECT_TRUE(scene.schedule());
    spoil(scene);
    return scene.schedule().has_value();
  };
  EXPECT_FALSE(pair(Format::NV12, [](PairScene& s) { s.pads[1].place.x = 2; }));
  EXPECT_FALSE(pair(Format::NV12, [](PairScene& s) { s.pads[1].place.width = 62; }));
  EXPECT_FALSE(pair(Format::NV12, [](PairScene& s) { s.pads[1].color.limited = true; }));
  EXPECT_FALSE(
      pair(Format::NV12, [](PairScene& s) { s.pads[1].alpha = s.pads[0].alpha = 0.5, s.pads[0].op = Operator::over; }));
  EXPECT_FALSE(pair(Format::NV12, [](PairScene& s) { s.pads[1].op = Operator::multiply; }));  // the width must be even
  EXPECT_FALSE(pair(Format::RGBA, [](PairScene& s) { s.pads[1].op = Operator::add; }));
  EXPECT_FALSE(pair(Format::RGBA, [](PairScene& s) { s.pads[0].alpha = 0.5; }));
  EXPECT_FALSE(pair(Format::NV12, [](PairScene& s) { s.pads[1].src.planes[1].pitch += 4; }));
  EXPECT_FALSE(pair(Format::NV12, [](PairScene& s) { s.pads.erase(s.pads.begin()), s.pads[0].alpha = 0.5; }));
  EXPECT_TRUE(pair(Format::NV12, [](PairScene& s) { s.pads.pop_back(); }));  // one picture, blended with itself
  EXPECT_FALSE(PairScene(Format::YUY2, 63, 8).schedule());
  EXPECT_FALSE(PairScene(Format::P010_10LE, 64, 8).schedule());
}

}  // namespace
}  // namespace cudavision::test
