// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests the causes of sudden changes (kernels/diff/camera.hpp): a camera that is moved, rotated or switched to
// infrared, and another scene, are not motion.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/adaptive.hpp"

namespace cudavision::test {
namespace {

using diff::Cause;

/// A wall without a repeating pattern: noise of several scales, 0 to 1. `scene` selects the wall.
double wall(unsigned scene, double x, double y) {
  double sum = 0;
  for (double size : {31.0, 13.0, 6.0}) {
    const auto corner = [&](int u, int v) {
      unsigned hash = scene * 2654435761u + unsigned(u) * 374761393u + unsigned(v) * 668265263u + unsigned(size);
      hash = (hash ^ hash >> 13) * 1274126177u;
      return double((hash ^ hash >> 16) & 1023) / 1023;
    };
    const int u = int(std::floor(x / size)), v = int(std::floor(y / size));
    const double a = x / size - u, b = y / size - v;
    sum += (1 - b) * ((1 - a) * corner(u, v) + a * corner(u + 1, v)) +
           b * ((1 - a) * corner(u, v + 1) + a * corner(u + 1, v + 1));
  }
  return sum / 3;
}

/// What the camera shows in one frame.
struct View {
  double x = 0, y = 0, turn = 0;  ///< the shift of the picture in pixels, and its rotation in radians
  unsigned scene = 1;
  bool infrared = false;
  Rect object{};     ///< in front of the wall
  bool dim = false;  ///< the object is like dark glass: the edges of the wall show through
};

Picture picture_of(const View& view, const Geometry& geometry, int frame) {
  Random random(unsigned(frame) + 1);
  Picture out(geometry);
  for (const Component& c : out.format().components) {
    const bool chroma = c.is_chroma();
    out.change(c, [&](int u, int v, int) {
      const int x = u << c.shift_x, y = v << c.shift_y;
      const double from_x = x - view.x - 80, from_y = y - view.y - 48;
      const double at_x = 580 + from_x * std::cos(view.turn) - from_y * std::sin(view.turn),
                   at_y = 548 + from_x * std::sin(view.turn) + from_y * std::cos(view.turn);
      double value =
          chroma ? 128 + 60 * (wall(view.scene + 7, at_x, at_y) - 0.5) : 20 + 210 * wall(view.scene, at_x, at_y);
      if (contains(view.object, x, y)) value = chroma ? 160 : view.dim ? 0.45 * value : 60 + (x + y) / 4 % 2 * 60;
      if (view.infrared) value = chroma ? 128 : 235 * std::pow(std::max(0.0, value) / 255, 0.6);
      return std::clamp(int(std::lround(value + random.between(-2, 2))), 0, 255);
    });
  }
  return out;
}

diff::Params params_with(int scale) {
  diff::Params params;
  params.reference = diff::Reference::background;
  params.threshold = 0;
  params.output = diff::Output::none;
  params.analysis_scale = scale;
  return params;
}

struct Step {
  Cause cause;
  int x, y;
  std::uint64_t changed;

  bool operator==(const Step& other) const {
    return cause == other.cause && x == other.x && y == other.y && changed == other.changed;
  }
};
std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "cause " << int(step.cause) << ", moved " << step.x << " " << step.y << ", changed " << step.changed;
}

/// Decisions that hold the cells in a rectangle.
std::vector<diff::Learning> holding(const Rect& rect, const diff::Cells& cells) {
  std::vector<diff::Learning> decisions;
  const int size = cells.cell_size;
  for (int y = 0; y < cells.frame_height; y += size)
    for (int x = 0; x < cells.frame_width; x += size)
      decisions.push_back(intersection(rect, {x, y, size, size}).empty() ? diff::Learning::usual
                                                                         : diff::Learning::hold);
  return decisions;
}

/// The first frame that differs from earlier ones.
constexpr int event = 20;
/// Returns what is found in each frame. `held`: the area where the background learns nothing, from frame 1 on.
std::vector<Step> steps_of(Backend backend, const diff::Params& params, const Geometry& geometry, int frames,
                           const std::function<View(int)>& view, const Rect& held = {}) {
  auto made = diff::make(params, geometry, backend);
  EXPECT_TRUE(made.ok()) << made.error().message();
  std::vector<Step> steps;
  for (int frame = 0; made.ok() && frame < frames; ++frame) {
    diff::Diff& plan = *made.value();
    if (frame > 0 && !held.empty()) plan.steer(holding(held, plan.result().cells));
    run_on(backend, picture_of(view(frame), geometry, frame),
           [&](const Image& image, Queue queue) { return plan.submit(image, {}, queue); });
    const diff::FrameResult& result = plan.result();
    steps.push_back({result.cause, result.moved_x, result.moved_y, result.changed});
  }
  return steps;
}
std::uint64_t changed_in(const std::vector<Step>& steps, int begin, int end) {
  std::uint64_t sum = 0;
  for (int i = begin; i < end; ++i) sum += steps[std::size_t(i)].changed;
  return sum;
}

class DiffCamera : public OnBackend {};

/// A single move of the camera is reported with its shift, without changed pixels. Later changes are found.
TEST_P(DiffCamera, SaysHowFarItWasMoved) {
  for (const auto& [x, y] : {std::pair{6, 0}, {0, -4}, {-10, 14}, {2, 2}, {36, -16}, {-38, -24}})
    for (const auto& [format, scale] :
         {std::pair{Format::GRAY8, 1}, {Format::NV12, 2}, {Format::RGBA, 1}, {Format::YUY2, 2}}) {
      const Geometry geometry{format, 160 * scale, 128 * scale};
      const auto steps = steps_of(backend, params_with(scale), geometry, event + 20, [&, x = x, y = y](int frame) {
        View view;
        if (frame >= event) view.x = x * scale, view.y = y * scale;
        if (frame >= event + 15) view.object = {40 * scale, 40 * scale, 30 * scale, 30 * scale};
        return view;
      });
      ASSERT_EQ(steps.size(), std::size_t(event + 20));
      EXPECT_EQ(steps[event], (Step{Cause::moved, x * scale, y * scale, 0})) << info(format).name;
      for (int i = event + 1; i <= event + 5; ++i)
        EXPECT_EQ(steps[std::size_t(i)], (Step{Cause::moved, 0, 0, 0})) << i - event << " frames later";
      for (int i = event + 6; i < event + 15; ++i)
        EXPECT_EQ(steps[std::size_t(i)], (Step{Cause::none, 0, 0, 0})) << i - event << " frames later";
      EXPECT_GT(steps[event + 15].changed, std::uint64_t(400 * scale * scale));
      EXPECT_EQ(steps[event + 15].cause, Cause::none);
    }
}

/// While a camera pans, fast or by fractions of a pixel, nothing changes. Nothing changes afterwards either.
TEST_P(DiffCamera, MovesOnAndOn) {
  for (double speed : {-12.0, -3.0, 1.0, 0.6, 2.5}) {
    const auto steps =
        steps_of(backend, params_with(1), {Format::NV12, 160, 128}, event + 60, [speed = speed](int frame) {
          View view;
          view.x = speed * std::clamp(frame - event + 1, 0, 25);
          view.y = view.x / 2;
          return view;
        });
    int moved = 0, x = 0;
    for (const Step& step : steps) moved += step.cause == Cause::moved, x += step.x;
    EXPECT_GT(moved, 15) << speed;
    EXPECT_NEAR(x, 25 * speed, 6) << speed;
    EXPECT_EQ(changed_in(steps, event + 30, event + 60), 0u) << speed;
    EXPECT_LT(changed_in(steps, event, event + 30), 160 * 128 / 5u) << speed;
  }
}

/// A rotated picture fits nowhere, but the reference still restarts.
TEST_P(DiffCamera, IsTurned) {
  for (double turn : {0.03, -0.1}) {
    const auto steps =
        steps_of(backend, params_with(1), {Format::I420, 160, 128}, event + 20, [turn = turn](int frame) {
          View view;
          if (frame >= event) view.turn = turn, view.x = 3;
          return view;
        });
    EXPECT_TRUE(steps[event].cause == Cause::moved || steps[event].cause == Cause::scene)
        << turn << ": " << steps[event];
    EXPECT_EQ(changed_in(steps, event, event + 20), 0u) << turn;
  }
}

/// Colours turn gray and the contrast changes, at once or within ten frames. The edges keep their positions.
TEST_P(DiffCamera, TurnsToInfrared) {
  for (Format format : {Format::NV12, Format::UYVY}) {
    const auto steps = steps_of(backend, params_with(1), {format, 160, 128}, event + 30, [](int frame) {
      View view;
      view.infrared = frame >= event;
      if (frame >= event + 20) view.object = {60, 30, 24, 60};
      return view;
    });
    EXPECT_EQ(steps[event].cause, Cause::light) << info(format).name;
    EXPECT_EQ(changed_in(steps, event, event + 20), 0u) << info(format).name;
    EXPECT_GT(steps[event + 21].changed, 24 * 60 / 2u) << info(format).name;
  }
}

/// The background behind an object does not restart with the object in it, and it follows the light.
TEST_P(DiffCamera, KeepsTheWallBehindAnObjectInAnotherLight) {
  struct Case {
    const char* name;
    bool dim, held;
    int frames;  ///< how long the object stays in the new light
  };
  for (const auto& [format, scale] : {std::pair{Format::NV12, 1}, {Format::GRAY8, 1}, {Format::RGBA, 2}})
    for (const Case& c : {Case{"held", false, true, 12}, Case{"with the edges of the wall, held", true, true, 12},
                          Case{"with other edges, passes", false, false, 3}}) {
      SCOPED_TRACE(std::string(info(format).name) + ", " + c.name);
      constexpr int event = 70;                                           // the background is established by then
      const Rect object{60 * scale, 43 * scale, 20 * scale, 63 * scale};  // three sectors
      const auto steps = steps_of(
          backend, params_with(scale), {format, 160 * scale, 128 * scale}, event + 20,
          [&](int frame) {
            View view;
            view.infrared = frame >= event, view.dim = c.dim;
            if (frame >= event - 8 && frame < event + c.frames) view.object = object;
            return view;
          },
          c.held ? object : Rect{});
      EXPECT_EQ(steps[event].cause, Cause::light);
      const auto least = c.held ? std::uint64_t(object.width * object.height / 2) : 0;
      EXPECT_GE(steps[event + 6].changed, least);
      EXPECT_EQ(changed_in(steps, event + c.frames + (c.held ? 2 : 8), event + 20), 0u)
          << "it left, and so did its mask";
    }
}

/// What was wrongly taken for an object does not stay in the mask.
TEST_P(DiffCamera, DoubtsTheWallWhereNoObjectIsCertain) {
  constexpr int event = 70;  // the background is established by then
  const Rect poster{60, 43, 20, 63};
  for (const bool only_infrared : {true, false}) {  // or it was background for a long time
    SCOPED_TRACE(only_infrared);
    const auto steps = steps_of(backend, params_with(1), {Format::NV12, 160, 128}, event + 60, [&](int frame) {
      View view;
      view.infrared = frame >= event;
      if (only_infrared ? frame >= event : frame >= event - 20 && frame < event + 2) view.object = poster;
      return view;
    });
    EXPECT_EQ(steps[event].cause, Cause::light);
    EXPECT_EQ(changed_in(steps, event + 15, event + 60), 0u);
  }
}

TEST_P(DiffCamera, ShowsAnotherScene) {
  const auto steps = steps_of(backend, params_with(1), {Format::NV12, 160, 128}, event + 10, [](int frame) {
    View view;
    view.scene = frame >= event ? 50 : 1;
    return view;
  });
  EXPECT_EQ(steps[event].cause, Cause::scene);
  EXPECT_EQ(changed_in(steps, event, event + 10), 0u);
}

/// Something that covers a third of the picture, suddenly or gradually, is an object.
TEST_P(DiffCamera, ObjectsAreNoReason) {
  for (int speed : {0, 9}) {
    const auto steps = steps_of(backend, params_with(1), {Format::NV12, 160, 128}, event + 12, [speed](int frame) {
      View view;
      if (frame >= event) view.object = {(frame - event) * speed - (speed ? 60 : 0), 20, 70, 90};
      return view;
    });
    for (const Step& step : steps) EXPECT_EQ(step.cause, Cause::none);
    EXPECT_GT(steps[event + (speed ? 9 : 1)].changed, 2000u) << speed;
  }
}

/// An object stands in front of a wall without edges, and then leaves. All edges of the picture move, as in a pan.
TEST_P(DiffCamera, MayHaveAllTheEdges) {
  const Geometry geometry{Format::GRAY8, 160, 120};
  const auto made = diff::make(params_with(1), geometry, backend);
  ASSERT_TRUE(made.ok());
  std::uint64_t changed = 0;
  for (int frame = 0; frame < event + 20; ++frame) {
    Picture src(geometry);
    const int at = 30 + 3 * std::max(0, frame - event);
    src.change(src.format().components[0], [&](int x, int y, int) {
      const double away = std::hypot(x - at, y - 60);
      return away < 25 ? int(220 - 4 * away) : 20;
    });
    run_on(backend, src, [&](const Image& image, Queue queue) { return made.value()->submit(image, {}, queue); });
    EXPECT_EQ(made.value()->result().cause, Cause::none) << frame;
    changed += made.value()->result().changed;
  }
  EXPECT_GT(changed, 5000u);
}

/// light_change_ratio=0 turns the search off. Very small pictures are not searched either.
TEST_P(DiffCamera, IsNotLookedAt) {
  diff::Params off = params_with(1);
  off.light_change_ratio = 0;
  for (const auto& [params, width] : {std::pair{off, 160}, {params_with(1), 60}}) {
    const auto steps = steps_of(backend, params, {Format::NV12, width, 96}, event + 2, [](int frame) {
      View view;
      if (frame >= event) view.x = 3;
      return view;
    });
    EXPECT_NE(steps[event].cause, Cause::moved) << width;
    EXPECT_TRUE(steps[event].changed > 0 || steps[event].cause == Cause::light) << width << ": " << steps[event];
  }
}

INSTANTIATE_FOR_BACKENDS(DiffCamera);

TEST(DiffCameraBackends, CudaEqualsCpu) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  SKIP_UNLESS_AVAILABLE(Backend::cuda);
  const auto view = [](int frame) {
    View view;
    view.x = frame < 20 ? 0 : frame < 30 ? 1.7 * (frame - 20) : 17;
    view.turn = frame < 45 ? 0 : 0.02;
    view.infrared = frame >= 60;
    view.scene = frame < 80 ? 1 : 9;
    if (frame % 20 > 10 || (frame > 50 && frame < 70)) view.object = {frame, 30, 40, 40};
    return view;
  };
  for (const auto& [format, scale, width] :
       {std::tuple{Format::NV12, 1, 163}, {Format::RGBA, 2, 331}, {Format::GRAY8, 1, 201}, {Format::YUY2, 8, 1290}})
    for (const Rect& held : {Rect{}, Rect{55 * scale, 30 * scale, 45 * scale, 40 * scale}}) {
      SCOPED_TRACE(std::string(info(format).name) + (held.empty() ? "" : ", held"));
      const Geometry geometry{format, width, 97 * scale};
      const auto cpu = steps_of(Backend::cpu, params_with(scale), geometry, 95, view, held),
                 cuda = steps_of(Backend::cuda, params_with(scale), geometry, 95, view, held);
      int causes = 0;
      for (std::size_t i = 0; i < cpu.size(); ++i) {
        ASSERT_EQ(cpu[i], cuda.at(i)) << "frame " << i;
        causes += cpu[i].cause != Cause::none;
      }
      EXPECT_GT(causes, 5);
    }
}

}  // namespace
}  // namespace cudavision::test
