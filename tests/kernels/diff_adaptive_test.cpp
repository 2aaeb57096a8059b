// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the background with threshold 0 (kernels/diff/adaptive.hpp) with tests/kernels/reference/adaptive.cpp.
#include <algorithm>
#include <cmath>
#include <opencv2/core/utility.hpp>

#include "kernels/diff/adaptive_settle.hpp"
#include "tests/kernels/diff_params.hpp"
#include "tests/kernels/reference/adaptive.hpp"
#include "tests/kernels/reference/diff.hpp"

namespace cudavision::test {
namespace {

using Mask = reference::Adaptive::Mask;

diff::Params automatic() {
  diff::Params params = reference::without_light();
  params.looks = Looks::all;
  params.cell_threshold = 0;
  params.reference = Reference::background;
  params.threshold = 0;
  params.output = Output::mask;
  params.open_radius = 0;
  return params;
}

diff::Params without_compensation() {
  diff::Params params = automatic();
  params.light_compensation = false;
  return params;
}

/// How a scene is lit: the brightness factor at a position.
using Light = double (*)(int frame, int x, int width);
double steady(int, int, int) { return 1; }
double flickering(int frame, int, int) { return 1 + 0.08 * std::sin(2.1 * frame); }
double clouded(int frame, int x, int width) {
  return 1 - 0.25 / (1 + std::exp(0.2 * (x - width * (frame - 60) / 30.0)));
}

struct Scene {
  Light light = steady;
  double noise = 2;     ///< approximate standard deviation in 8-bit steps
  Rect object, shadow;  ///< from frame 60 on; both move by 1 pixel per frame
  double sky = 0;       ///< what the sky adds to Cb in the shadow, and subtracts from Cr
};

Picture picture_of(const Scene& scene, const Geometry& geometry, int frame) {
  Random random(unsigned(frame) + 1);
  Picture out(geometry);
  const auto& components = out.format().components;
  const bool rgb = out.format().is_rgb();
  const int max = out.format().max_value(), shift = out.format().depth - 8;
  const auto inside = [&](Rect rect, int x, int y) {
    rect.x += frame - 60;
    return frame >= 60 && contains(rect, x, y);
  };
  for (const Component& c : components) {
    const bool luma = c.role == Role::luma, chroma = c.is_chroma();
    const double zero = chroma ? 128 : luma && components.size() > 1 ? 16 : 0;
    out.change(c, [&](int x, int y, int) {
      const int px = x << c.shift_x, py = y << c.shift_y, brick = (px / 12 * 7 + py / 8 * 3) % 5;
      double value = chroma ? (c.role == Role::cb ? 20 : -25) + 2 * brick
                     : rgb  ? 70 + 12 * brick + 30 * int(c.role == Role::red)
                            : 80 + 15 * brick;
      if (inside(scene.object, px, py))
        value = chroma ? -value : (px + py) % 6 * 8 + (c.role == Role::blue ? 170 : 20);
      else if (inside(scene.shadow, px, py))
        value = 0.65 * value + (c.role == Role::cb ? scene.sky : c.role == Role::cr ? -scene.sky : 0);
      value *= scene.light(frame, px, geometry.width);
      const double grain =
          scene.noise * (random.between(-100, 100) + random.between(-100, 100) + random.between(-100, 100)) / 100.0;
      return std::clamp(int(std::lround((zero + value + grain) * (1 << shift))), 0, max);
    });
  }
  return out;
}

Mask mask_in(const Picture& picture) {
  for (const Component& c : picture.format().components) {
    if (!c.is_color()) continue;
    Mask mask;
    for (int value : picture.read(c).values) mask.push_back(value > picture.format().max_value() / 2);
    return mask;
  }
  return {};
}

/// The size of most frames below.
const Geometry usual_size{Format::NV12, 160, 96};

const Scene still{}, everything{flickering, 2, {30, 20, 24, 30}, {80, 30, 30, 24}},
    dark{steady, 7, {30, 20, 24, 30}, {}}, cloud{clouded, 2, {30, 50, 24, 24}, {}};

class DiffAdaptive : public OnBackend {};

TEST_P(DiffAdaptive, EqualsReference) {
  int number = 0;
  for (Format format :
       {Format::GRAY8, Format::NV12, Format::RGBA, Format::P010_10LE, Format::YUY2, Format::Y41B, Format::GBR})
    for (const Scene* scene : {&everything, &dark, &cloud}) {
      diff::Params params = automatic();
      params.drop_shadows = ++number % 2;
      params.light_compensation = number % 5 != 0;
      params.luma_only = number % 4 == 0;
      params.learning_rate = number % 3 ? -1 : 0.03;
      params.noise_limit = number % 4 == 1 ? 2.5 : 0;
      const Geometry geometry{format, 149, 85};
      const auto plan = plan_for(backend, params, geometry);
      reference::Adaptive expected(params, geometry);
      std::size_t changed = 0, unlike = 0;
      for (int frame = 0; frame < 90; ++frame) {
        const Picture src = picture_of(*scene, geometry, frame);
        const Mask mask = expected.submit(src), got = mask_in(run(backend, *plan, src));
        for (std::size_t i = 0; i < mask.size(); ++i) changed += mask[i], unlike += mask[i] != got[i];
      }
      EXPECT_GT(changed, 10000u) << info(format).name << " " << number;
      EXPECT_LE(unlike, changed / 500) << info(format).name << " " << number << ", of " << changed;
    }
}

/// Sizes of one pixel and one row, sizes below and above a cell, and strides.
TEST_P(DiffAdaptive, OddSizes) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 40}, {70, 1}, {17, 16}, {33, 65}, {600, 20}})
    for (int scale : {1, 2, 8}) {
      diff::Params params = automatic();
      params.drop_shadows = true;
      params.analysis_scale = scale;
      params.mask_regions = {{0, 0, width / 3, height / 2}};
      const Geometry geometry{Format::NV12, width, height};
      const auto plan = plan_for(backend, params, geometry);
      for (int frame = 52; frame < 66; ++frame) {
        const Picture out = run(backend, *plan, picture_of({flickering, 2, {0, 0, 5, 5}, {}}, geometry, frame));
        EXPECT_EQ(plan->result().compared, frame > 52);
        const auto mask = mask_in(out);
        const diff::FrameResult& result = plan->result();
        EXPECT_TRUE(frame >= 60 || result.changed == 0) << width << "x" << height << " " << frame << ": only the light";
        EXPECT_TRUE(scale > 1 || result.changed == std::uint64_t(std::count(mask.begin(), mask.end(), 1)));
        // The box of a cell bounds its changed pixels. With a scale it bounds blocks, whose outline is finer in the
        // mask.
        const int finer = scale > 1 ? scale : 0;
        for (int i = 0; i < int(result.cells.changed.size()); ++i) {
          if (result.cells.changed[std::size_t(i)] == 0) continue;
          ASSERT_FALSE(result.cells.looks.empty());
          const int cell_x = i % result.cells.width, cell_y = i / result.cells.width;
          const Rect box = result.cells.box(cell_x, cell_y);
          Rect expected;
          for (const auto& [x, y] : positions(box))
            if (mask[std::size_t(y) * width + x]) expected = diff::around(expected, {x, y, 1, 1});
          const Rect got = result.cells.box(cell_x, cell_y, result.cells.looks[std::size_t(i)]);
          const Rect grown{got.x - finer, got.y - finer, got.width + 2 * finer, got.height + 2 * finer};
          EXPECT_EQ(diff::around(grown, expected), grown);
          EXPECT_TRUE(scale > 1 || got == expected) << got << " is not " << expected;
        }
      }
    }
}

/// The frames of `everything`, except for another picture in frame `other`.
std::function<Picture(int)> wall_with_a_break(const Geometry& geometry, int other) {
  return
      [=](int frame) { return frame == other ? make_picture(geometry, 3) : picture_of(everything, geometry, frame); };
}

class DiffAdaptiveBackends : public testing::TestWithParam<Format> {};

TEST_P(DiffAdaptiveBackends, CudaEqualsCpu) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  SKIP_UNLESS_AVAILABLE(Backend::cuda);
  // CUDA reads rows of 204 bytes as words.
  for (const auto& [scale, width] : {std::pair{1, 203}, {4, 203}, {4, 204}, {8, 204}})
    for (Output output : {Output::mask, Output::difference}) {
      diff::Params params = automatic();
      params.output = output;
      params.looks = output == Output::mask ? Looks::all : Looks::extents;
      params.analysis_scale = scale;
      params.drop_shadows = scale == 1;
      params.noise_limit = scale == 4 ? 2.5 : 0;
      params.light_change_ratio = 0.6;
      params.mask_regions = {{4, 5, 20, 30}};
      const Geometry geometry{GetParam(), width, 117};
      expect_equal_backends(params, geometry, 45, 70, wall_with_a_break(geometry, 67), true);
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_FOR_EACH_FORMAT(DiffAdaptiveBackends);

/// The background settles in its first frames, and again after a change of the light. Both backends must agree while it
/// settles and afterwards.
TEST(DiffAdaptiveSettled, CudaEqualsCpu) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  SKIP_UNLESS_AVAILABLE(Backend::cuda);
  for (const Format format : {Format::GRAY8, Format::NV12, Format::RGBA}) {
    diff::Params params = automatic();
    params.light_change_ratio = 0.6;
    const Geometry geometry{format, 83, 53};
    const int end = int(diff::adaptive::settling_frames) + 60;
    expect_equal_backends(params, geometry, 0, end, wall_with_a_break(geometry, end - 10), true);
    if (HasFatalFailure()) return;
  }
}

/// A wall, optionally with an object standing in front of it.
Picture standing(bool stands) { return picture_of({steady, 2, {60, 30, 24, 40}, {}}, usual_size, stands ? 60 : 0); }

struct Seen {
  std::uint64_t changed = 0;
  diff::Structure structure{};
};
Seen seen_by(const diff::FrameResult& result) {
  Seen seen{result.changed, {}};
  for (std::size_t i = 0; i < result.cells.changed.size(); ++i)
    if (result.cells.changed[i] > 0) seen.structure.add(result.cells.looks.at(i).structure);
  return seen;
}

/// Held pixels are not learned, so a long-standing object leaves nothing behind. Pixels to take become background
/// immediately.
TEST_P(DiffAdaptive, LearnsWhatItMay) {
  for (int scale : {1, 2}) {
    diff::Params params = automatic();
    params.open_radius = 1;
    params.analysis_scale = scale;
    // Shows 60 frames of the first state, `frames` of the other state, which `decision` learns, and 3 of the first one.
    const auto seen_after = [&](bool stood_first, Learning decision, int frames, bool at_last) {
      const auto plan = plan_for(backend, params, usual_size);
      for (int frame = 0; frame < 60; ++frame) run(backend, *plan, standing(stood_first));
      plan->steer(std::vector<Learning>(plan->result().cells.changed.size(), decision));
      for (int frame = 0; frame < frames; ++frame) run(backend, *plan, standing(!stood_first));
      for (int frame = 0; at_last && frame < 3; ++frame) run(backend, *plan, standing(stood_first));
      return seen_by(plan->result());
    };
    const Seen object = seen_after(false, Learning::usual, 2, false),
               ghost = seen_after(true, Learning::usual, 2, false);
    EXPECT_GT(std::min(object.changed, ghost.changed), 500u);
    EXPECT_GT(object.structure.edges, 2 * object.structure.reference_edges);
    EXPECT_GT(ghost.structure.reference_edges, 2 * ghost.structure.edges);
    EXPECT_EQ(seen_after(false, Learning::hold, 300, true).changed, 0u);
    EXPECT_GT(seen_after(false, Learning::usual, 300, true).changed, 300u) << "the background has learned a part of it";
    EXPECT_EQ(seen_after(false, Learning::take, 3, false).changed, 0u);
    EXPECT_EQ(seen_after(true, Learning::take, 3, false).changed, 0u);
  }
}

/// A gray picture with the 8-bit values value(x, y).
template <typename Value>
Picture gray_of(const Geometry& geometry, Value value) {
  Picture src(geometry);
  src.change(src.format().components[0],
             [&](int x, int y, int) { return int(std::lround(value(x, y) * (1 << (src.format().depth - 8)))); });
  return src;
}

/// The mask of gray_of(geometry, value) after 40 frames of uniform gray.
template <typename Value>
Mask mask_after_gray(Backend backend, const diff::Params& params, const Geometry& geometry, Value value) {
  const auto plan = plan_for(backend, params, geometry);
  for (int frame = 0; frame < 40; ++frame) run(backend, *plan, gray_of(geometry, [](int, int) { return 100.0; }));
  return mask_in(run(backend, *plan, gray_of(geometry, value)));
}

void cover(Picture& src, int colour) {
  for (const Component& c : src.format().components) {
    const Grid grid = src.read(c);
    src.change(c, [&](int x, int y, int value) {
      const bool inside = y >= grid.height / 4 && y < grid.height * 3 / 4 && x >= grid.width / 3 && x < grid.width / 2;
      return inside ? 40 + (colour + (c.role == Role::cb ? 90 : 0)) % 170 : value;
    });
  }
}

/// The background of a pixel is what stays longest: neither the content of the first frames nor the mean of everything
/// that passes. A surface that is visible in two fifths of the frames, between changing objects, is background.
TEST_P(DiffAdaptive, LearnsWhatStaysLongest) {
  const auto busy = [&](int frame) {
    Picture src = standing(false);
    if (frame % 10 < 6) cover(src, frame / 10 * 61);
    return src;
  };
  const auto leaves = [&](int frame) { return standing(frame < 20); };
  const auto changed_after = [&](int frames, const auto& picture) {
    const auto plan = plan_for(backend, automatic(), usual_size);
    for (int frame = 0; frame < frames; ++frame) run(backend, *plan, picture(frame));
    return plan->result().changed;
  };
  EXPECT_GT(changed_after(22, leaves), 500u) << "a ghost";
  EXPECT_EQ(changed_after(70, leaves), 0u);
  EXPECT_GT(changed_after(115, busy), 500u);
  EXPECT_LT(changed_after(120, busy), 20u);
}

/// A held object does not become background, even if it stays longer than the background was visible.
TEST_P(DiffAdaptive, KeepsTheBackgroundBehindWhatIsHeld) {
  for (const Learning decision : {Learning::hold, Learning::usual}) {
    const auto plan = plan_for(backend, automatic(), usual_size);
    for (int frame = 0; frame < 20; ++frame) run(backend, *plan, standing(false));
    plan->steer(std::vector<Learning>(plan->result().cells.changed.size(), decision));
    for (int frame = 0; frame < 60; ++frame) run(backend, *plan, standing(true));
    const std::uint64_t there = plan->result().changed;
    run(backend, *plan, standing(false));
    if (decision == Learning::hold) {
      EXPECT_GT(there, 500u);
      EXPECT_EQ(plan->result().changed, 0u);
    } else {
      EXPECT_EQ(there, 0u) << "it stayed longer than the background";
      EXPECT_GT(plan->result().changed, 500u);
    }
  }
}

/// What passes in the first frames becomes neither background nor noise: a faint object is found there soon afterwards.
TEST_P(DiffAdaptive, LearnsNoNoiseFromWhatPassesFirst) {
  const Geometry geometry{Format::GRAY8, 160, 96};
  const auto plan = plan_for(backend, automatic(), geometry);
  const auto submit = [&](int colour) {
    Picture src = gray_of(geometry, [](int, int) { return 100; });
    if (colour >= 0) cover(src, colour);
    run(backend, *plan, src);
    return plan->result().changed;
  };
  for (int frame = 0; frame < 20; ++frame) submit(-1);
  for (int frame = 0; frame < 4; ++frame) submit(150);
  for (int frame = 0; frame < 9; ++frame) submit(-1);
  EXPECT_GT(submit(85), 26u * 48 * 9 / 10);
}

/// If an object passes in every third of the first frames, it counts as noise, and later ones are missed. A noise limit
/// prevents this, and so does a lane.
TEST_P(DiffAdaptive, LimitsTheNoise) {
  const auto changed = [&](double limit, Learning decision = Learning::usual) {
    diff::Params params = automatic();
    params.noise_limit = limit;
    const auto plan = plan_for(backend, params, usual_size);
    plan->steer(std::vector<Learning>(plan->result().cells.changed.size(), decision));
    for (int frame = 0; frame <= 90; ++frame) run(backend, *plan, standing(frame % 3 == 0));
    return plan->result().changed;
  };
  EXPECT_LT(changed(0), 50u);
  EXPECT_LT(changed(255), 50u);
  EXPECT_GT(changed(17), 500u);
  EXPECT_GT(changed(0, Learning::steady), 500u);
  EXPECT_GT(changed(9), 500u);
  EXPECT_GT(changed(9, Learning::steady), 500u) << "a limit that is set holds everywhere";
}

/// Bars cover more than half of each cell, and then the light becomes stronger. No cell has enough pixels to measure
/// it, but the frame has.
TEST_P(DiffAdaptive, TakesTheGainOfTheFrameWhereNoCellHasOne) {
  const diff::Params params = automatic();
  const Geometry geometry{Format::GRAY8, 160, 96};
  const auto plan = plan_for(backend, params, geometry);
  reference::Adaptive expected(params, geometry);
  const auto bar = [](int x) { return x % 16 >= 2 && x % 16 < 14; };
  const Scene scene{[](int frame, int, int) { return frame < 62 ? 1.0 : 1.3; }, 1, {}, {}};
  for (int frame = 30; frame < 64; ++frame) {
    Picture src = picture_of(scene, geometry, frame);
    src.change(src.format().components[0], [&](int x, int y, int value) {
      if (frame < 60 || !bar(x)) return value;
      return (x + y) % 2 ? 20 : 230;
    });
    const Mask mask = expected.submit(src), got = mask_in(run(backend, *plan, src));
    std::size_t changed = 0, unlike = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) changed += got[i], unlike += mask[i] != got[i];
    EXPECT_LE(unlike, mask.size() / 500) << frame;
    EXPECT_EQ(changed > 0, frame >= 60) << frame;
    EXPECT_LT(changed, mask.size() * 31 / 32) << frame << ": what is between bars is as before";
  }
}

/// The same bars in colour. Nothing is known about the colour of the light, so it gets no offset.
TEST_P(DiffAdaptive, TakesNoOffsetsWhereNoCellHasAGain) {
  const Geometry geometry{Format::Y444, 64, 48};
  const auto plan = plan_for(backend, automatic(), geometry);
  for (int frame = 0; frame < 63; ++frame) {
    Picture src(geometry);
    for (const Component& c : src.format().components) {
      const bool luma = c.role == Role::luma;
      src.change(c, [&](int x, int y, int) {
        if (luma && frame >= 60 && x % 16 >= 5) return (x + y) % 2 ? 20 : 230;
        // In frame 62 the light is much stronger and slightly greener.
        return frame == 62 ? (luma ? 196 : 126) : (luma ? 76 : 128);
      });
    }
    const Mask mask = mask_in(run(backend, *plan, src));
    std::size_t between = 0, bars = 0;  // pixels in the middle of each
    for (std::size_t i = 0; i < mask.size(); ++i) between += mask[i] && i % 16 == 2, bars += mask[i] && i % 16 == 10;
    EXPECT_EQ(between, 0u) << frame;
    EXPECT_EQ(bars, frame < 60 ? 0 : mask.size() / 16) << frame;
  }
}

/// The light becomes evenly stronger across the frame, and the light of a pixel is interpolated between the centres of
/// cells. A difference slightly below the threshold is found nowhere in a cell, and one slightly above it everywhere.
TEST_P(DiffAdaptive, MixesTheLightOfCellsEvenly) {
  const Geometry geometry{Format::GRAY16_LE, 80, 80};  // exact to 1/256 of a step
  const auto changed = [&](double darker) {            // darkens a cell in the middle by this many steps
    const auto mask = mask_after_gray(backend, automatic(), geometry, [&](int x, int y) {
      const double gain = 0.2 + 0.4 * (x + 0.5) / 16;
      return gain * 104 - 4 - (x / 16 == 2 && y / 16 == 2 ? darker : 0);
    });
    std::size_t inside = 0;
    for (const auto& [x, y] : Positions(34, 34, 46, 46)) inside += mask[std::size_t(y) * 80 + x];
    return inside;
  };
  EXPECT_EQ(changed(6.7), 0u);
  EXPECT_EQ(changed(7.5), 12 * 12u);
}

/// A shadow surrounds a black object. The darkness of a shadow is measured in 5 × 5 pixels, so the two rows beside the
/// black object look darker than a shadow.
TEST_P(DiffAdaptive, LooksForShadowsInFiveRows) {
  diff::Params params = without_compensation();
  params.drop_shadows = true;
  const auto mask = mask_after_gray(backend, params, {Format::GRAY8, 96, 96}, [](int, int y) {
    return y < 20 || y >= 80 ? 100.0 : y < 40 || y >= 60 ? 65.0 : 0.0;
  });
  for (int y = 22; y < 78; ++y) EXPECT_EQ(mask[std::size_t(y) * 96 + 48], y >= 38 && y < 62) << y;
}

/// Flipping the input flips the mask: pixels above a change are treated like pixels below it.
TEST_P(DiffAdaptive, KnowsNeitherUpNorDown) {
  const auto on_its_head = [](const Picture& picture) {
    Picture out(picture.geometry());
    for (const Component& c : picture.format().components) {
      const Grid from = picture.read(c);
      out.change(c, [&](int x, int y, int) { return from.at(x, from.height - 1 - y); });
    }
    return out;
  };
  for (Format format : {Format::GRAY8, Format::NV12}) {
    const Geometry geometry{format, 150, 96};
    diff::Params params = automatic();
    params.drop_shadows = true;
    const auto upright = plan_for(backend, params, geometry), other = plan_for(backend, params, geometry);
    std::size_t changed = 0;
    for (int frame = 40; frame < 100; ++frame) {
      const Picture src = picture_of(everything, geometry, frame);
      const Picture mask = run(backend, *upright, src), turned = run(backend, *other, on_its_head(src));
      ASSERT_EQ(mask.sample_difference(on_its_head(turned), 0), "") << info(format).name << " frame " << frame;
      changed += upright->result().changed;
    }
    EXPECT_GT(changed, 5000u) << info(format).name;
  }
}

TEST(LearningMap, KnowsWhereAColumnOfCellsEnds) {
  for (int log2_scale : {0, 1, 2, 3})
    for (int cell_size : {4, 8, 12, 13, 33}) {
      std::vector<Learning> cells(100, Learning::usual);
      for (int column = 0; column < 6; ++column) {
        cells.assign(cells.size(), Learning::usual);
        cells[std::size_t(column)] = Learning::hold;
        const diff::LearningMap map{cells.data(), 100, cell_size, log2_scale};
        const int begin = column == 0 ? 0 : map.first_beyond(column - 1), end = map.first_beyond(column);
        if (begin >= end) continue;
        EXPECT_EQ(map.at(begin, 0), Learning::hold) << log2_scale << " " << cell_size;
        EXPECT_EQ(map.at(end - 1, 0), Learning::hold) << log2_scale << " " << cell_size;
        EXPECT_EQ(map.at(end, 0), Learning::usual) << log2_scale << " " << cell_size;
      }
    }
}

TEST_P(DiffAdaptive, KnowsTheStructureOfLight) {
  diff::Params params = without_compensation();
  const auto plan = plan_for(backend, params, usual_size);
  for (int frame = 0; frame < 62; ++frame)
    run(backend, *plan, picture_of({steady, 1, {}, {20, 15, 100, 60}}, usual_size, frame));
  const Seen seen = seen_by(plan->result());
  EXPECT_GT(seen.changed, 1000u);
  EXPECT_GT(seen.structure.same, 3 * seen.structure.other);
  EXPECT_TRUE(diff::find_regions(plan->result().cells, {0, 1, 1}).kept.empty());
}

/// Threads share the rows of a frame. This does not change results.
TEST(DiffAdaptiveThreads, DoNotChangeResults) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  const int threads = cv::getNumThreads();
  diff::Params params = automatic();
  params.drop_shadows = true;
  const Geometry geometry{Format::NV12, 149, 131};
  const auto one = plan_for(Backend::cpu, params, geometry), several = plan_for(Backend::cpu, params, geometry);
  std::uint64_t changed = 0;
  for (int frame = 50; frame < 80; ++frame) {
    const Picture src = picture_of(everything, geometry, frame);
    cv::setNumThreads(1);
    const Picture mask = run(Backend::cpu, *one, src);
    cv::setNumThreads(5);
    ASSERT_EQ(mask.sample_difference(run(Backend::cpu, *several, src), 0), "") << frame;
    ASSERT_EQ(one->result().mean_difference, several->result().mean_difference) << frame;
    changed += one->result().changed;
  }
  cv::setNumThreads(threads);
  EXPECT_GT(changed, 1000u);
}

/// Light and noise are not changes; moving objects are, and so are shadows if they are kept.
TEST_P(DiffAdaptive, FindsWhatMoves) {
  struct Case {
    Scene scene;
    bool drop_shadows, compensates;
    double least, most;  ///< changed pixels, relative to the pixels of the object
  };
  const Scene object{steady, 2, {30, 20, 24, 30}, {}}, shadow{steady, 2, {}, {30, 20, 24, 30}},
      flicker{flickering, 2, {}, {}}, overcast{clouded, 2, {}, {}}, grain{steady, 7, {}, {}},
      bluish{steady, 2, {}, {30, 20, 24, 30}, 6}, reddish{steady, 2, {}, {30, 20, 24, 30}, -9};
  for (Format format : {Format::NV12, Format::RGB, Format::P010_10LE}) {
    int number = 0;
    for (const Case& c :
         {Case{still, false, true, 0, 0}, Case{grain, false, true, 0, 0.01}, Case{object, true, true, 0.8, 1.2},
          Case{dark, true, true, 0.5, 1.3}, Case{shadow, false, true, 0.8, 1.2}, Case{shadow, true, true, 0, 0.5},
          Case{flicker, false, true, 0, 0.01}, Case{overcast, false, true, 0, 0.1},
          Case{overcast, false, false, 0.1, 100}, Case{everything, true, true, 0.8, 1.6},
          Case{bluish, false, true, 0.8, 1.2}, Case{bluish, true, true, 0, 0.5}, Case{reddish, true, true, 0.8, 1.2}}) {
      if (format == Format::RGB && c.scene.sky != 0) continue;  // the scene has no sky in RGB
      diff::Params params = automatic();
      params.output = Output::none;
      params.drop_shadows = c.drop_shadows;
      params.light_compensation = c.compensates;
      const Geometry geometry{format, 160, 96};
      const auto plan = plan_for(backend, params, geometry);
      std::uint64_t changed = 0;
      for (int frame = 0; frame < 80; ++frame) {
        run(backend, *plan, picture_of(c.scene, geometry, frame));
        if (frame >= 60) changed += plan->result().changed;
      }
      const double objects = double(changed) / (20 * 24 * 30);
      EXPECT_GE(objects, c.least) << info(format).name << " case " << number;
      EXPECT_LE(objects, c.most) << info(format).name << " case " << number;
      ++number;
    }
  }
}

/// A wall. From frame 60 on it has a bright square whose sides are 10 pixels wide, around a hole of `hole` pixels. An
/// open square has no lower side.
Picture ring_of(const Geometry& geometry, int frame, int hole, bool open) {
  Random random(unsigned(frame) + 1);
  Picture out(geometry);
  for (const Component& c : out.format().components)
    out.change(c, [&](int x, int y, int) {
      const int left = (x << c.shift_x) - 20, top = (y << c.shift_y) - 10, outer = hole + 20;
      const bool inside = left >= 10 && top >= 10 && left < hole + 10 && top < hole + (open ? 20 : 10);
      const bool ring = left >= 0 && top >= 0 && left < outer && top < outer && !inside && frame >= 60;
      return (ring ? 180 : 100) + random.between(-2, 2);
    });
  return out;
}

/// Changed pixels also fill the area that they enclose, up to four cells away.
TEST_P(DiffAdaptive, FillsWhatIsEnclosed) {
  struct Case {
    int hole;
    bool open, masked, filled;
  };
  for (int scale : {1, 2})
    for (const Case& c : {Case{24, false, false, true}, Case{24, true, false, false}, Case{24, false, true, false},
                          Case{60, false, false, false}}) {
      diff::Params params = without_compensation();
      params.open_radius = 1;
      params.analysis_scale = scale;
      params.cell_size = 6;
      if (c.masked) params.mask_regions = {{38, 28, 8, 8}};
      const Geometry geometry{Format::NV12, 150, 112};
      const auto plan = plan_for(backend, params, geometry);
      Mask mask;
      for (int frame = 0; frame <= 60; ++frame)
        mask = mask_in(run(backend, *plan, ring_of(geometry, frame, c.hole, c.open)));
      const auto changed = [&](int x, int y) { return mask[std::size_t(y) * geometry.width + x] != 0; };
      const int middle = 10 + c.hole / 2;
      EXPECT_TRUE(changed(20 + 5, 10 + middle)) << "the ring";
      EXPECT_FALSE(changed(10, 5)) << "beside it";
      EXPECT_EQ(changed(20 + middle, 10 + middle), c.filled) << "hole of " << c.hole << ", scale " << scale;
    }
}

/// The outline of the mask shown follows the pixels of the frame, so it is closer to the object than blocks are.
TEST_P(DiffAdaptive, ShowsAFinerOutline) {
  for (Format format : {Format::NV12, Format::GRAY8, Format::RGBA, Format::P010_10LE, Format::YUY2})
    for (int scale : {4, 8}) {
      diff::Params params = automatic();
      params.open_radius = 1;
      params.analysis_scale = params.cell_size = scale;  // a cell is a block
      params.mask_regions = {{0, 0, 64, 64}};
      const Geometry geometry{format, 331, 205};
      const Rect object{80, 43, 90, 101};
      const auto plan = plan_for(backend, params, geometry);
      const reference::Adaptive reference(params, geometry);
      std::size_t shown = 0, unlike = 0, wrong = 0, wrong_blocks = 0;
      for (int frame = 5; frame < 66; ++frame) {  // learning takes 50 frames
        const Picture src = picture_of({steady, 2, object, {}}, geometry, frame);
        const Mask mask = mask_in(run(backend, *plan, src));
        const diff::CellGrid& cells = plan->result().cells;
        Mask blocks, unmasked;
        for (std::size_t i = 0; i < cells.changed.size(); ++i)
          blocks.push_back(cells.changed[i] > 0), unmasked.push_back(cells.unmasked[i] > 0);
        const Mask expected = reference.refined(src, scale, blocks, unmasked);
        for (std::size_t i = 0; i < mask.size() && frame >= 61; ++i) {
          const int x = int(i) % geometry.width, y = int(i) / geometry.width, left = object.x + frame - 60;
          const bool there = contains({left, object.y, object.width, object.height}, x, y);
          if (x < 64 && y < 64) continue;
          shown += mask[i], unlike += mask[i] != expected[i], wrong += mask[i] != there;
          wrong_blocks += blocks[std::size_t(y / scale * cells.width + x / scale)] != there;
        }
      }
      EXPECT_GT(shown, 30000u) << info(format).name << " " << scale;
      EXPECT_LE(unlike, shown / 500) << info(format).name << " " << scale;
      EXPECT_LT(10 * wrong, 8 * wrong_blocks) << info(format).name << " " << scale;
    }
}

/// A pixel follows blocks up to two blocks away. More distant blocks look like it, but do not count.
TEST_P(DiffAdaptive, AsksNearBlocksForTheOutline) {
  diff::Params params = without_compensation();
  params.analysis_scale = params.cell_size = 8;
  // A black object with a bright margin of two blocks. The pixels beside it are alternately bright and black.
  const auto mask = mask_after_gray(backend, params, {Format::GRAY8, 160, 160}, [](int x, int y) {
    if (x == 44 && y % 8 == 4) return y / 8 % 2 ? 0.0 : 200.0;
    return x < 48 || x >= 136 || y < 32 || y >= 128 ? 100.0 : x < 64 ? 200.0 : 0.0;
  });
  for (int y = 68; y < 92; y += 8) EXPECT_EQ(mask[std::size_t(y) * 160 + 44], y / 8 % 2 ? 0 : 1) << y;
}

/// A difference of a single frame is a change at first, and noise after it has occurred a few times. A longer one is a
/// change every time. Stripes differ by 9 steps, as in the key frames of a compressed stream.
TEST_P(DiffAdaptive, LearnsWhatLastsForOneFrame) {
  const auto changed_by_stripes = [&](int length) {  // in each of 121 frames; `length` of every 12 frames have stripes
    const auto plan = plan_for(backend, automatic(), usual_size);
    std::vector<std::uint64_t> changed;
    for (int frame = 0; frame < 121; ++frame) {
      Picture src = picture_of(still, usual_size, frame);
      if (frame >= 60 && frame % 12 < length)
        src.change(src.format().components[0], [](int x, int, int luma) { return luma + (x / 3 % 2 ? 9 : -9); });
      run(backend, *plan, src);
      changed.push_back(plan->result().changed);
    }
    return changed;
  };
  const auto once = changed_by_stripes(1), longer = changed_by_stripes(2);
  EXPECT_GT(once[60], 160 * 96 / 2u);
  EXPECT_EQ(once[96] + once[108] + once[120], 0u);
  for (int frame : {60, 61, 96, 97, 108, 109, 120}) EXPECT_GT(longer[std::size_t(frame)], 160 * 96 / 2u) << frame;
}

/// Reports changes of the light without compensating them.
diff::Params noticing_light() {
  diff::Params params = without_compensation();
  params.light_change_ratio = 0.6;
  return params;
}

/// The noise of the single frame with which the means restart is not a change.
TEST_P(DiffAdaptive, BeginsAnewInNoise) {
  const auto plan = plan_for(backend, noticing_light(), usual_size);
  const Scene switched{[](int frame, int, int) { return frame < 60 ? 0.4 : 1.0; }, 7, {}, {}};
  for (int frame = 0; frame < 70; ++frame) {
    run(backend, *plan, picture_of(switched, usual_size, frame));
    if (frame < 50) continue;
    EXPECT_EQ(plan->result().cause, frame == 60 ? diff::Cause::light : diff::Cause::none) << frame;
    EXPECT_LT(plan->result().changed, 160 * 96 / 500u) << frame;
  }
}

/// At half size, NV12 of twice the size is Y444: luma is the mean of four samples, and chroma is copied.
TEST_P(DiffAdaptive, ComparesMeansAtAPartOfTheSize) {
  diff::Params params = automatic();
  params.drop_shadows = true;
  params.cell_size = 4;
  const Geometry small{Format::Y444, 131, 75}, large{Format::NV12, 262, 150};
  const auto whole = plan_for(backend, params, small);
  params.analysis_scale = 2;
  params.cell_size = 8;
  const auto scaled = plan_for(backend, params, large);
  std::size_t changed = 0;
  for (int frame = 45; frame < 70; ++frame) {
    const Picture src = picture_of(everything, small, frame);
    Picture twice(large);
    for (const Component& c : twice.format().components) {
      const Grid values = src.read(*src.format().find(c.role));
      twice.change(c, [&](int x, int y, int) { return values.at(x >> (1 - c.shift_x), y >> (1 - c.shift_y)); });
    }
    run(backend, *whole, src), run(backend, *scaled, twice);
    const std::vector<std::uint32_t>&of_whole = whole->result().cells.changed,
          &of_scaled = scaled->result().cells.changed;
    ASSERT_EQ(of_whole.size(), of_scaled.size());
    for (std::size_t i = 0; i < of_whole.size(); ++i)
      ASSERT_EQ(of_scaled[i], 4 * of_whole[i]) << frame << ": cell " << i;
    changed += scaled->result().changed;
  }
  EXPECT_GT(changed, 10000u);
}

/// The difference shown, and its mean, are relative to the mean of each unmasked pixel.
TEST_P(DiffAdaptive, ShowsTheDifferenceFromTheMean) {
  for (int scale : {1, 2})
    for (int masked : {0, 30}) {  // columns, which change more
      diff::Params params = without_compensation();
      params.output = Output::difference;
      params.analysis_scale = scale;
      if (masked > 0) params.mask_regions = {{0, 0, masked, 50}};
      const Geometry geometry{Format::GRAY8, 90, 50};
      const auto plan = plan_for(backend, params, geometry);
      const int unmasked = (90 - masked) * 50;
      for (int frame = 0; frame < 4; ++frame) {
        const Picture src = gray_of(geometry, [&](int x, int) { return frame < 3 ? 100 : x < masked ? 240 : 140; });
        const Component& gray = src.format().components[0];
        const std::vector<int> shown = run(backend, *plan, src).read(gray).values;
        EXPECT_EQ(std::count(shown.begin(), shown.end(), 0), frame < 3 ? 90 * 50 : masked * 50) << scale << frame;
        EXPECT_EQ(std::count(shown.begin(), shown.end(), 40), frame < 3 ? 0 : unmasked) << scale << ", frame " << frame;
        EXPECT_EQ(plan->result().mean_difference, frame < 3 ? 0 : 40) << masked;
        EXPECT_EQ(plan->result().changed, frame < 3 ? 0u : unsigned(unmasked)) << masked;
      }
    }
}

/// After a switch of the light, the means restart with the frame. The switch must not count as a disturbance of single
/// frames, which becomes noise, so a faint object is found soon afterwards.
TEST_P(DiffAdaptive, FindsFaintThingsAfterASwitchOfTheLight) {
  const auto plan = plan_for(backend, noticing_light(), usual_size);
  const Scene switched{[](int frame, int, int) { return frame < 60 ? 0.6 : 1.0; }, 2, {}, {}};
  for (int frame = 0; frame < 63; ++frame) {
    Picture src = picture_of(switched, usual_size, frame);
    src.change(src.format().components[0], [&](int x, int y, int luma) {
      return luma + (frame == 62 && x >= 50 && x < 90 && y >= 30 && y < 60 ? 12 : 0);
    });
    run(backend, *plan, src);
    EXPECT_EQ(plan->result().cause, frame == 60 ? diff::Cause::light : diff::Cause::none) << frame;
    EXPECT_EQ(plan->result().changed > 0, frame == 62) << frame;
  }
  EXPECT_NEAR(double(plan->result().changed), 30 * 40, 300);
}

/// Means do not restart within 3 frames of their start. The difference is reported as a change, and the switch of the
/// light is found later.
TEST_P(DiffAdaptive, DoesNotBeginAnewTooSoon) {
  const auto plan = plan_for(backend, noticing_light(), usual_size);
  const Scene switched{[](int frame, int, int) { return frame < 60 ? 0.6 : frame < 62 ? 1.0 : 0.7; }, 2, {}, {}};
  for (int frame = 0; frame < 70; ++frame) {
    run(backend, *plan, picture_of(switched, usual_size, frame));
    EXPECT_EQ(plan->result().cause, frame == 60 || frame == 63 ? diff::Cause::light : diff::Cause::none) << frame;
    EXPECT_EQ(plan->result().changed > 0, frame == 62) << frame;
  }
}

/// A plan that continues from another one finds what the earlier plan would have found.
TEST_P(DiffAdaptive, ContinuesFromAnother) {
  diff::Params params = automatic();
  const Geometry geometry{Format::I420, 131, 75};
  const auto whole = plan_for(backend, params, geometry);
  auto first = plan_for(backend, params, geometry), second = plan_for(backend, params, geometry);
  params.threshold = 1;
  EXPECT_FALSE(plan_for(backend, params, geometry)->continue_from(*first)) << "another model";
  for (int frame = 50; frame < 70; ++frame) {
    if (frame == 62) {
      ASSERT_TRUE(second->continue_from(*first));
      first.reset();
    }
    const Picture src = picture_of(everything, geometry, frame);
    EXPECT_TRUE(run(backend, *whole, src).bytes() == run(backend, first ? *first : *second, src).bytes()) << frame;
  }
}
INSTANTIATE_FOR_BACKENDS(DiffAdaptive);

}  // namespace
}  // namespace cudavision::test
