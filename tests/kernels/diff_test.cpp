// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#if CUDAVISION_TEST_MOG2
#include <opencv2/video/background_segm.hpp>
#endif
#include <sstream>

#include "kernels/diff/cuda_schedule.hpp"
#include "tests/kernels/diff_params.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"
#include "tests/kernels/reference/diff.hpp"

namespace cudavision::test {
namespace {

std::string describe(const diff::Params& p) {
  std::ostringstream text;
  const char* references[] = {"previous", "first", "background", "mog2", "median", "adaptive"};
  const char* outputs[] = {"difference", "mask", "overlay", "none"};
  const char* modes[] = {"absolute", "signed", "squared"};
  const char* looks[] = {"none", "extents", "all"};
  text << "diff reference=" << references[int(p.reference)] << " interval=" << p.interval << " rate=" << p.learning_rate
       << " history=" << p.history << " variance=" << p.variance_threshold << " output=" << outputs[int(p.output)]
       << " mode=" << modes[int(p.mode)] << " threshold=" << p.threshold << " scale=" << p.analysis_scale
       << " compensate=" << p.light_compensation << " noise=" << p.noise_limit << " shadows=" << !p.drop_shadows << "/"
       << p.shadow_threshold << " light=" << p.light_change_ratio << " gain=" << p.gain << " luma_only=" << p.luma_only
       << " open=" << p.open_radius << " cell=" << p.cell_size << " looks=" << looks[int(p.looks)] << "/"
       << p.cell_threshold << " masked";
  for (const Rect& rect : p.mask_regions) text << ' ' << rect;
  return text.str();
}

/// Casts a shadow on part of a picture: the remaining light is `factor`.
void shade(Picture& picture, const Rect& part, double factor) {
  const reference::Definition& format = picture.format();
  const int max = format.max_value();
  for (const Component& c : format.components) {
    if (!c.is_color()) continue;
    const bool yuv = format.find(Role::cb);
    const int black = !yuv ? 0 : c.role == Role::luma ? (max + 1) / 16 : (max + 1) / 2;
    picture.change(c, [&](int x, int y, int value) {
      const bool inside = x >= part.x >> c.shift_x && x < (part.x + part.width) >> c.shift_x &&
                          y >= part.y >> c.shift_y && y < (part.y + part.height) >> c.shift_y;
      return inside ? std::clamp(black + int(std::lround((value - black) * factor)), 0, max) : value;
    });
  }
}

/// A later picture: blocks with large or small changes, a shadow, and specks.
Picture later(const Picture& before, unsigned seed, Layout layout = {}) {
  Random random(seed);
  Picture after(before.geometry(), layout);
  const int max = before.format().max_value();
  for (const Component& c : before.format().components) {
    Grid grid = before.read(c);
    const auto change = [&](int width, int height, int most) {
      const int x0 = random.below(grid.width), y0 = random.below(grid.height), by = random.between(-most, most);
      for (const auto& [x, y] : Positions(x0, y0, std::min(grid.width, x0 + width), std::min(grid.height, y0 + height)))
        grid.at(x, y) = std::clamp(grid.at(x, y) + by, 0, max);
    };
    for (int i = random.below(4); i > 0; --i)
      change(grid.width / 4 + 1, grid.height / 4 + 1, max / random.pick<int>({1, 4, 12, 30}));
    for (int i = random.below(40); i > 0; --i) change(random.between(1, 4), random.between(1, 3), max);
    after.write(c, grid);
  }
  const int width = before.geometry().width, height = before.geometry().height;
  if (random.below(3) == 0)
    shade(after, {random.below(width), random.below(height), width / 3 + 1, height / 3 + 1},
          random.pick<double>({0.45, 0.6, 0.8, 0.95}));
  return after;
}

/// The same samples, with random bits in the unused bits below them.
Picture with_unused_bits(Picture picture, Random& random) {
  const int shift = picture.format().shift;
  for (const Component& c : picture.format().components) {
    const Grid grid = picture.read(c);
    for (const auto& [x, y] : positions(shift > 0 ? grid : Grid(0, 0)))
      picture.write_word(c, x, y, grid.at(x, y) << shift | random.below(1 << shift));
  }
  return picture;
}

/// Returns an empty string if a result equals the reference.
std::string wrong_result(const diff::FrameResult& result, const reference::Diff::Step& step, int depth) {
  std::ostringstream text;
  std::uint64_t changed = 0, unmasked = 0;
  for (std::uint32_t n : step.cells_changed) changed += n;
  for (std::uint32_t n : step.cells_unmasked) unmasked += n;
  const double mean = unmasked ? double(step.sum) / double(step.analysed) / (1 << (depth - 8)) : 0;
  if (result.compared != step.compared) text << "compared " << result.compared;
  if ((result.cause != diff::Cause::none) != step.light) text << " cause " << int(result.cause);
  if (result.changed != changed) text << " changed " << result.changed << ", expected " << changed;
  if (result.unmasked != unmasked) text << " counted " << result.unmasked << ", expected " << unmasked;
  if (result.mean_difference != mean) text << " mean " << result.mean_difference << ", expected " << mean;
  if (result.changed_ratio != (unmasked ? double(changed) / double(unmasked) : 0))
    text << " ratio " << result.changed_ratio;
  if (result.cells.changed != step.cells_changed) text << " cells differ";
  if (result.cells.unmasked != step.cells_unmasked) text << " counted cells differ";
  if (changed > 0 && result.cells.looks.size() != step.cells_looks.size())
    return text.str() + " has looks of " + std::to_string(result.cells.looks.size()) + " cells";
  for (std::size_t i = 0; i < step.cells_looks.size(); ++i)
    if (step.cells_changed[i] > 0 && !(step.cells_looks[i] == result.cells.looks[i]))
      text << " looks of cell " << i << " differ";
  return text.str();
}

/// Compares a sequence of frames, each in different memory, with the reference.
void expect_reference(Backend backend, const diff::Params& params, const Geometry& geometry, unsigned seed, int frames,
                      bool random_layouts = true) {
  Random random(seed);
  const auto plan = plan_for(backend, params, geometry);
  if (!plan) return;
  reference::Diff expected(params, geometry);
  Picture src = make_picture(geometry, seed, random.pick<Data>({Data::random, Data::faint, Data::flat}));
  for (int i = 0; i < frames; ++i) {
    const Layout layout = random_layouts ? random.pick(layouts) : Layout{};
    src = random.below(6) ? later(src, seed + unsigned(i) * 77, layout)
                          : make_picture(geometry, seed + unsigned(i), Data::random, layout);
    if (random.below(12) == 0) plan->reset(), expected.reset();
    const auto step = expected.submit(src, random_layouts ? random.pick(layouts) : Layout{});
    Job job(backend, with_unused_bits(src, random), step.out.inverted());
    const Status status = job.submit(work_of(*plan));
    ASSERT_TRUE(status.ok()) << status.message();
    const Picture out = job.finish();
    const std::string where = reference::definition(geometry.format).name + (" " + std::to_string(geometry.width)) +
                              "x" + std::to_string(geometry.height) + " frame " + std::to_string(i) + "\n" +
                              describe(params);
    if (params.output == Output::none)
      ASSERT_TRUE(out.bytes() == step.out.inverted().bytes()) << "the destination was written to: " << where;
    else
      ASSERT_EQ(step.out.difference(out, 0), "") << where;
    ASSERT_EQ(wrong_result(plan->result(), step, info(geometry.format).depth), "") << where;
  }
}

class DiffSweep : public OnBackendWithFormat {};

TEST_P(DiffSweep, EqualsReference) {
  Random random(unsigned(format) + 300);
  for (int i = 0; i < rounds() * int(sizes.size()); ++i) {
    const auto [width, height] = sizes[std::size_t(i) % sizes.size()];
    expect_reference(backend, random_params(random, width, height), {format, width, height},
                     unsigned(i) * 1000 + unsigned(format), 4);
    if (HasFatalFailure()) return;
  }
}

/// The usual settings at a size of many tiles: each reference with each output, with and without opening. Each format
/// takes every second combination, and the next format takes the others.
TEST_P(DiffSweep, CommonSettings) {
  int settings = 0;
  for (Reference reference : {Reference::previous, Reference::first, Reference::background, Reference::median})
    for (Output output : {Output::difference, Output::mask, Output::overlay, Output::none})
      for (const auto& [radius, scale] : {std::pair{0, 1}, {1, 1}, {1, 2}, {0, 4}}) {
        const int at = settings++;
        if ((at + at / 4 + at / 16 + int(format)) % 2) continue;
        diff::Params params = params_of(reference, output);
        params.open_radius = radius;
        params.analysis_scale = scale;
        expect_reference(backend, params, {format, 641, 117}, unsigned(format) + 9, 3, false);
        if (HasFatalFailure()) return;
      }
}
INSTANTIATE_FOR_FORMATS(DiffSweep, all_formats());

class DiffPlans : public OnBackend {};

/// Large frames, frames with so many pixels that a warp opens wide parts, and rows and columns of the maximum length.
TEST_P(DiffPlans, LargeFrames) {
  struct Case {
    Geometry geometry;
    Output output;
    int scale, radius;
  };
  std::vector<Case> cases{{{Format::GRAY8, 7680, 4320}, Output::difference, 1, 0},
                          {{Format::GRAY8, 3840, 1600}, Output::mask, 1, 1},
                          {{Format::NV12, 3850, 1600}, Output::mask, 2, 1},
                          {{Format::GRAY8, 3853, 1590}, Output::overlay, 1, 2}};
  static_assert(3853 * 1590 >= diff::tuning.wide_pixels);
  for (Format format : {Format::NV12, Format::RGBA, Format::GRAY8, Format::P010_10LE})
    for (int scale : {1, 2, 8}) cases.push_back({{format, 1920, 1080}, Output::mask, scale, 1});
  for (const Geometry& geometry : longest_frames)
    for (int radius : {0, 2}) cases.push_back({geometry, Output::overlay, 1, radius});
  for (const Case& c : cases) {
    diff::Params params = params_of(c.output);
    params.analysis_scale = c.scale;
    params.open_radius = c.radius;
    expect_reference(backend, params, c.geometry, 4, 2);
  }
}

TEST_P(DiffPlans, RowsMayLieFarApart) {
  for (int radius : {0, 1}) {
    diff::Params params = reference::without_light();
    params.open_radius = radius;
    params.output = radius ? Output::overlay : Output::difference;
    const Geometry geometry{Format::GRAY8, 90, 50};
    const auto plan = plan_for(backend, params, geometry);
    reference::Diff expected(params, geometry);
    for (unsigned i = 0; i < 2; ++i) {
      const Picture src = make_picture(geometry, i);
      EXPECT_EQ(expected.submit(src).out.sample_difference(run_far_apart(backend, work_of(*plan), src), 0), "");
    }
  }
}

/// Compares frames 64 apart, and never across a reset.
TEST_P(DiffPlans, LongIntervalAndReset) {
  diff::Params params = reference::without_light();
  params.interval = 64;
  expect_reference(backend, params, {Format::NV12, 50, 22}, 3, 140);

  for (Reference reference :
       {Reference::previous, Reference::first, Reference::background, Reference::mog2, Reference::median}) {
    params = {};
    params.reference = reference;
    const Geometry geometry{Format::GRAY8, 70, 40};
    const auto plan = plan_for(backend, params, geometry);
    for (int i = 0; i < 6; ++i) {
      const bool begins = i % 3 == 0;
      if (i == 3) plan->reset();
      const Picture src = make_picture(geometry, unsigned(i));
      const Picture out = run(backend, *plan, src);
      const diff::FrameResult result = plan->result();
      EXPECT_EQ(result.compared, !begins) << describe(params);
      EXPECT_EQ(result.unmasked, 70u * 40u);
      EXPECT_EQ(make_picture(geometry, 0, Data::zero).sample_difference(out, 0).empty(), begins) << describe(params);
      EXPECT_EQ(result.mean_difference > 0, !begins) << describe(params);
      EXPECT_TRUE(!begins || result.changed == 0);
    }
  }
}

/// A second plan that finishes a sequence gives the results of a plan that ran from the start.
TEST_P(DiffPlans, ContinuesFromAnother) {
  Random random(17);
  const Geometry sizes[] = {{Format::GRAY8, 131, 75},    {Format::NV12, 131, 75}, {Format::RGBA, 64, 48},
                            {Format::P010_10LE, 70, 33}, {Format::YUY2, 65, 40},  {Format::GBR, 45, 33}};
  for (const Geometry& geometry : sizes) {
    const bool rgb = geometry.format == Format::RGBA || geometry.format == Format::GBR;
    for (Reference reference :
         {Reference::previous, Reference::first, Reference::background, Reference::mog2, Reference::median}) {
      // The frames that the earlier plan compares. After 0 or 1, there is less to take over.
      for (int frames : {0, 1, 5}) {
        diff::Params before = random_params(random, geometry.width, geometry.height);
        before.reference = reference;
        diff::Params after = random_params(random, geometry.width, geometry.height);
        after.reference = reference;
        after.interval = before.interval;
        after.learning_rate = before.learning_rate;
        after.analysis_scale = before.analysis_scale;
        after.light_change_ratio = before.light_change_ratio = 0;  // it would restart at different frames
        if (geometry.format != Format::GRAY8 && (!rgb || reference == Reference::mog2))
          after.luma_only = before.luma_only;
        if (reference == Reference::background)  // threshold 0 is another model
          before.threshold = std::max(before.threshold, 1), after.threshold = std::max(after.threshold, 1);
        after.in_flight = 2;
        SCOPED_TRACE(info(geometry.format).name + (" before: " + describe(before)) + "\nafter: " + describe(after));

        const auto whole = plan_for(backend, after, geometry), second = plan_for(backend, after, geometry);
        auto first = plan_for(backend, before, geometry);
        Picture src = make_picture(geometry, 3, Data::faint);
        for (int i = 0; i < frames + 4; ++i) {
          if (i == frames) {
            ASSERT_TRUE(second->continue_from(*first));
            first.reset();
            EXPECT_EQ(second->ticket(), 0u);
          }
          src = later(src, unsigned(i));
          const Picture expected = run(backend, *whole, src), got = run(backend, first ? *first : *second, src);
          if (first) continue;
          ASSERT_TRUE(expected.bytes() == got.bytes()) << "frame " << i;
          const diff::FrameResult x = whole->result(), y = second->result();
          ASSERT_EQ(x.compared, y.compared) << "frame " << i;
          ASSERT_EQ(x.cells.changed, y.cells.changed) << "frame " << i;
          ASSERT_EQ(x.cells.unmasked, y.cells.unmasked) << "frame " << i;
          ASSERT_EQ(x.mean_difference, y.mean_difference) << "frame " << i;
        }
      }
    }
  }
}

TEST_P(DiffPlans, ContinuesAtAnotherRate) {
  diff::Params params = params_of(Reference::background, Output::difference);
  const Geometry geometry{Format::NV12, 70, 40};
  const auto plan = plan_for(backend, params, geometry);  // its first frame is the background of the other plan
  params.learning_rate = 1;
  const auto fast = plan_for(backend, params, geometry);
  params.learning_rate = 0.02;
  const auto slow = plan_for(backend, params, geometry);
  const auto submit = [&](diff::Diff& diff, unsigned seed) { return run(backend, diff, make_picture(geometry, seed)); };
  for (unsigned seed : {1, 2, 3}) submit(*fast, seed);
  submit(*plan, 3);
  ASSERT_TRUE(slow->continue_from(*fast));
  for (unsigned seed : {4, 5, 6}) EXPECT_TRUE(submit(*plan, seed).bytes() == submit(*slow, seed).bytes()) << seed;
}

/// The smallest step of a median is one unit of its fixed point: 256 frames for one step of 8-bit samples. The sweeps
/// test larger steps.
TEST_P(DiffPlans, AMedianMovesAtAnyRateAboveZero) {
  diff::Params params = params_of(Reference::median, Output::none);
  params.learning_rate = 1e-9;
  const Geometry geometry{Format::GRAY8, 16, 16};
  const auto plan = plan_for(backend, params, geometry);
  for (int frame = 0; frame < 400; ++frame) {
    Picture src(geometry);
    src.change(src.format().components[0], [&](int, int, int) { return frame == 0 ? 100 : 103; });
    run(backend, *plan, src);
    // Rounding moves the background by a step after 127 steps of 1/256.
    EXPECT_EQ(plan->result().mean_difference, frame == 0 ? 0 : frame < 129 ? 3 : frame < 385 ? 2 : 1) << frame;
  }
}

/// A still picture with noise that becomes brighter at frame `cut`.
Picture before_and_after(const Geometry& geometry, int frame, int cut) {
  Picture picture = make_picture(geometry, 5, Data::checkerboard);
  Random random(unsigned(frame) + 1);
  const int max = picture.format().max_value(), step = std::max(1, max / 128);
  for (const Component& c : picture.format().components)
    picture.change(c, [&](int, int, int value) {
      return std::clamp(value / 2 + (frame < cut ? 0 : max / 2) + random.between(-1, 1) * step, 0, max);
    });
  return picture;
}

/// After a switch of the light, a mixture equals a mixture that starts with that frame. The sweeps test the other
/// references.
TEST_P(DiffPlans, MixturesRestartWhenLightIsSwitched) {
  constexpr int cut = 5;
  for (Format format :
       {Format::GRAY8, Format::NV12, Format::RGBA, Format::P010_10LE, Format::YUY2, Format::GBR, Format::RGBA64_LE})
    for (Output output : {Output::mask, Output::overlay, Output::difference, Output::none}) {
      diff::Params params = params_of(Reference::mog2, output);
      params.open_radius = int(output) % 2;
      params.light_change_ratio = 0.6;
      params.analysis_scale = int(output) / 2 + 1;
      SCOPED_TRACE(info(format).name + (" " + describe(params)));
      const Geometry geometry{format, 131, 75};
      const auto whole = plan_for(backend, params, geometry), fresh = plan_for(backend, params, geometry);
      for (int frame = 0; frame < cut + 6; ++frame) {
        const Picture src = before_and_after(geometry, frame, cut), out = run(backend, *whole, src);
        const diff::FrameResult result = whole->result();
        EXPECT_EQ(result.cause, frame == cut ? diff::Cause::light : diff::Cause::none) << frame;
        if (frame < cut) continue;
        const Picture expected = run(backend, *fresh, src);
        const diff::FrameResult other = fresh->result();
        EXPECT_EQ(result.changed, other.changed) << frame;
        EXPECT_EQ(result.cells.changed, other.cells.changed) << frame;
        EXPECT_TRUE((frame == cut && output == Output::difference) || out.bytes() == expected.bytes()) << frame;
        EXPECT_TRUE(result.compared) << frame;
        if (frame == cut) {
          EXPECT_EQ(result.changed, 0u);
          EXPECT_GT(result.mean_difference, 20);
        } else {
          EXPECT_EQ(result.mean_difference, other.mean_difference) << frame;
        }
      }
    }
}

/// The second plan knows when the reference began, even if it does not look for changes of the light itself.
TEST_P(DiffPlans, ContinuesAfterASwitchOfTheLight) {
  constexpr int cut = 4;
  for (Reference reference : {Reference::previous, Reference::mog2}) {
    diff::Params params = params_of(reference, Output::difference);
    params.interval = 4;
    params.light_change_ratio = 0.6;
    const Geometry geometry{Format::GRAY8, 70, 40};
    const auto first = plan_for(backend, params, geometry);
    params.light_change_ratio = 0;
    const auto second = plan_for(backend, params, geometry), fresh = plan_for(backend, params, geometry);
    const auto submit = [&](diff::Diff& plan, int frame) {
      return run(backend, plan, before_and_after(geometry, frame, cut));
    };
    for (int frame = 0; frame < cut + 2; ++frame) submit(*first, frame);
    ASSERT_TRUE(second->continue_from(*first));
    for (int frame = cut; frame < cut + 2; ++frame) submit(*fresh, frame);
    for (int frame = cut + 2; frame < cut + 8; ++frame) {
      EXPECT_TRUE(submit(*second, frame).bytes() == submit(*fresh, frame).bytes()) << frame;
      EXPECT_EQ(second->result().compared, fresh->result().compared) << frame;
      EXPECT_EQ(second->result().compared, reference == Reference::mog2 || frame >= cut + 4) << frame;
    }
    second->reset();
    submit(*second, 0);
    EXPECT_FALSE(second->result().compared);
  }
}

/// A plan restarts if its data differ in kind from the data of the previous plan.
TEST_P(DiffPlans, DoesNotContinueFromAnUnlikePlan) {
  struct Change {
    const char* what;
    Geometry geometry;
    Reference reference;
    std::function<void(diff::Params&, Geometry&)> make;
    bool other_backend = false;
  };
  const Geometry nv12{Format::NV12, 70, 40}, rgba{Format::RGBA, 70, 40};
  std::vector<Change> changes{
      {"reference", nv12, Reference::previous, [](diff::Params& p, Geometry&) { p.reference = Reference::first; }},
      {"model", nv12, Reference::background, [](diff::Params& p, Geometry&) { p.reference = Reference::mog2; }},
      {"how the background follows", nv12, Reference::background,
       [](diff::Params& p, Geometry&) { p.reference = Reference::median; }},
      {"interval", nv12, Reference::previous, [](diff::Params& p, Geometry&) { p.interval = 2; }},
      {"scale", nv12, Reference::background, [](diff::Params& p, Geometry&) { p.analysis_scale = 2; }},
      {"luma of NV12", nv12, Reference::background, [](diff::Params& p, Geometry&) { p.luma_only = true; }},
      {"luma of RGBA's mixture", rgba, Reference::mog2, [](diff::Params& p, Geometry&) { p.luma_only = true; }},
      {"width", nv12, Reference::previous, [](diff::Params&, Geometry& g) { g.width = 71; }},
      {"height", nv12, Reference::previous, [](diff::Params&, Geometry& g) { g.height = 41; }},
      {"format", rgba, Reference::previous, [](diff::Params&, Geometry& g) { g.format = Format::BGRA; }},
  };
  const Backend other = backend == Backend::cpu ? Backend::cuda : Backend::cpu;
  if (!unavailable(other))
    changes.push_back({"backend", nv12, Reference::previous, [](diff::Params&, Geometry&) {}, true});
  for (const Change& change : changes) {
    diff::Params params = params_of(change.reference, Output::difference);
    Geometry geometry = change.geometry;
    const Backend before = change.other_backend ? other : backend;
    const auto first = plan_for(before, params, geometry);
    const auto submit = [](Backend at, diff::Diff& plan) {
      run(at, plan, make_picture(plan.geometry(), 1));
      return plan.result().compared;
    };
    for (int i = 0; i < 3; ++i) EXPECT_EQ(submit(before, *first), i > 0);
    change.make(params, geometry);
    const auto second = plan_for(backend, params, geometry);
    EXPECT_FALSE(second->continue_from(*first)) << change.what;
    EXPECT_FALSE(submit(backend, *second)) << change.what;
    EXPECT_TRUE(submit(before, *first)) << change.what << ": the plan before is as it was";
  }
}

/// Results of frames in flight do not affect each other.
TEST_P(DiffPlans, ResultsInFlight) {
  diff::Params params = reference::without_light();
  params.in_flight = 4;
  params.open_radius = 1;
  params.looks = Looks::all;
  const Geometry geometry{Format::I420, 200, 90};
  const auto plan = plan_for(backend, params, geometry);
  EXPECT_EQ(plan->ticket(), 0u);
  EXPECT_FALSE(plan->result().compared);
  reference::Diff expected(params, geometry);
  std::vector<std::pair<std::uint64_t, reference::Diff::Step>> steps;
  Picture src = make_picture(geometry, 1, Data::faint);
  for (unsigned i = 0; i < 11; ++i) {
    src = later(src, i);
    run(backend, *plan, src);
    steps.emplace_back(plan->ticket(), expected.submit(src));
    for (std::size_t back = 0; back < 4 && back < steps.size(); ++back) {
      const auto& [ticket, step] = steps[steps.size() - 1 - back];
      EXPECT_EQ(wrong_result(plan->result(ticket), step, 8), "") << i << ", " << back << " back";
    }
  }
}

/// A plan may get the memory of an earlier plan, which still holds old results.
TEST_P(DiffPlans, ResultsDoNotComeFromAnEarlierPlan) {
  diff::Params params = reference::without_light();
  params.in_flight = 4;
  params.looks = Looks::all;
  const Geometry geometry{Format::GRAY8, 320, 240};
  for (int round = 0; round < 4; ++round) {
    const auto plan = plan_for(backend, params, geometry);
    const bool still = round % 2 == 1;
    for (unsigned i = 0; i < 6; ++i) {
      run(backend, *plan, make_picture(geometry, 0, !still && i % 2 ? Data::max : Data::zero));
      EXPECT_EQ(plan->result().changed, still || i == 0 ? 0u : 320u * 240u) << "round " << round << ", frame " << i;
    }
  }
}

/// Compares with OpenCV's absdiff, threshold and morphologyEx.
TEST_P(DiffPlans, EqualsOpenCV) {
  const Geometry geometry{Format::GRAY8, 333, 211};
  for (int radius : {0, 1, 2, 5, 16}) {
    diff::Params params = params_of(Output::mask);
    params.open_radius = radius;
    const auto plan = plan_for(backend, params, geometry);
    Picture frames[] = {make_picture(geometry, 1, Data::faint), make_picture(geometry, 1, Data::faint)};
    for (unsigned i = 0; i < 12; ++i) frames[1] = later(frames[1], i + unsigned(radius));
    cv::Mat mats[2], difference, mask;
    Picture out = frames[0];
    for (int i = 0; i < 2; ++i) {
      mats[i] = mat_of(frames[i]).clone();
      Job job(backend, frames[i], frames[i].inverted());
      ASSERT_TRUE(job.submit(work_of(*plan)).ok());
      out = job.finish();
    }
    cv::absdiff(mats[0], mats[1], difference);
    cv::threshold(difference, mask, params.threshold, 255, cv::THRESH_BINARY);
    if (radius > 0)
      cv::morphologyEx(mask, mask, cv::MORPH_OPEN,
                       cv::getStructuringElement(cv::MORPH_RECT, {2 * radius + 1, 2 * radius + 1}));
    EXPECT_EQ(cv::countNonZero(mat_of(out) != mask), 0) << "radius " << radius;
    EXPECT_EQ(plan->result().changed, std::uint64_t(cv::countNonZero(mask)));
    EXPECT_EQ(plan->result().mean_difference, cv::sum(difference)[0] / double(difference.total()));
  }
}

TEST_P(DiffPlans, BoxesAreDrawn) {
  for (Format format : all_formats())
    for (const auto& [width, height] : {std::pair{1, 1}, {45, 33}, {1500, 901}}) {
      const Geometry geometry{format, width, height};
      diff::Params params = params_of(Output::none);
      const auto plan = plan_for(backend, params, geometry);
      Random random{unsigned(format)};
      std::vector<diff::MotionRegion> regions;
      for (int i = 0; i < 23; ++i) {  // more than fit in one launch
        Rect box{random.below(width), random.below(height), 1, 1};
        box.width = random.between(1, width - box.x);
        box.height = random.between(1, height - box.y);
        regions.push_back({box, 1, 1});
      }
      const Picture before = make_picture(geometry, 3, Data::random, {1, 3, 4});
      Job job(backend, before, before);
      ASSERT_TRUE(
          job.submit([&](const Image&, const Image& dst, Queue queue) { return plan->draw_boxes(dst, regions, queue); })
              .ok());
      EXPECT_EQ(reference::with_boxes(before, regions).sample_difference(job.finish(), 0), "") << info(format).name;
      EXPECT_TRUE(plan->draw_boxes({}, {}, {}).ok());
    }
}

/// Shadows on walls of any colour must be dropped by all models. A dark object of another colour is kept.
TEST_P(DiffPlans, DropsShadows) {
  for (Format format :
       {Format::NV12, Format::RGBA, Format::Y444, Format::YUY2, Format::P010_10LE, Format::GBR, Format::UYVY})
    for (Reference reference : {Reference::background, Reference::mog2, Reference::median})
      for (int scale : {1, 2}) {
        diff::Params params = params_of(reference, Output::none);
        params.analysis_scale = scale;
        params.shadow_threshold = 0.5;
        SCOPED_TRACE(info(format).name + (" " + describe(params)));
        const Geometry geometry{format, 160, 96};
        const auto kept = plan_for(backend, params, geometry);
        params.drop_shadows = true;
        const auto dropped = plan_for(backend, params, geometry);
        const Rect part{32, 16, 64, 48};
        Picture wall(geometry), object(geometry);
        for (const Component& c : wall.format().components) {
          const int unit = (wall.format().max_value() + 1) / 32;
          const bool first = &c == &wall.format().components[0], last = &c == &wall.format().components[2];
          const auto of_wall = [&](int x, int y, int) { return (first ? 24 + (x / 8 + y / 8) % 2 * 4 : 20) * unit; };
          wall.change(c, of_wall);
          object.change(c, [&](int x, int y, int) {  // less light, and another colour
            const bool inside = contains(part, x << c.shift_x, y << c.shift_y);
            return inside ? (first ? 16 : last ? 24 : 12) * unit : of_wall(x, y, 0);
          });
        }
        const auto shaded = [&](double factor) {
          Picture frame = wall;
          shade(frame, part, factor);
          return frame;
        };
        const auto changed = [&](diff::Diff& plan, const Picture& src) {
          run(backend, plan, src);
          return plan.result().changed;
        };
        constexpr std::uint64_t area = 64 * 48;
        for (diff::Diff* plan : {kept.get(), dropped.get()}) {
          for (int i = 0; i < 20; ++i) changed(*plan, wall);
          EXPECT_EQ(changed(*plan, shaded(0.6)), plan == dropped.get() ? 0 : area);
          EXPECT_EQ(changed(*plan, shaded(0.4)), area) << "too dark";
          EXPECT_EQ(changed(*plan, shaded(1.3)), area) << "bright";
          EXPECT_EQ(changed(*plan, object), area) << "an object";
        }
      }
}
INSTANTIATE_FOR_BACKENDS(DiffPlans);

/// A scene for the mixture: noise around a picture, and a block that moves through it.
Picture scene(Picture picture, int frame) {
  Random random(unsigned(frame) + 1);
  const int max = picture.format().max_value(), step = std::max(1, max / 128);
  for (const Component& c : picture.format().components) {
    const Grid grid = picture.read(c);
    const int side = grid.height / 3, left = frame * 3 % grid.width;
    picture.change(c, [&](int x, int y, int still) {
      const int value = std::clamp(still + random.between(-2, 2) * step, 0, max);
      return x >= left && x < left + side && y >= side && y < 2 * side ? max - value : value;
    });
  }
  return picture;
}

class MixtureBackends : public testing::TestWithParam<Format> {};

TEST_P(MixtureBackends, CudaEqualsCpu) {
  SKIP_UNLESS_AVAILABLE(Backend::cpu);
  SKIP_UNLESS_AVAILABLE(Backend::cuda);
  for (bool luma_only : {false, true})
    for (Output output : {Output::mask, Output::difference}) {
      diff::Params params = params_of(Reference::mog2, output);
      params.luma_only = luma_only;
      params.open_radius = int(luma_only);
      params.analysis_scale = output == Output::mask ? 1 : 4;
      params.mask_regions = {{4, 5, 20, 30}};
      params.drop_shadows = luma_only == (output == Output::mask);
      const Geometry geometry{GetParam(), 131, 75};
      const Picture still = make_picture(geometry, 5);
      SCOPED_TRACE(describe(params));
      expect_equal_backends(params, geometry, 0, 25, [&](int frame) {
        Picture src = scene(still, frame);
        if (frame >= 15) shade(src, {30, 20, 60, 40}, 0.6);
        return src;
      });
      if (HasFatalFailure()) return;
    }
}
INSTANTIATE_FOR_EACH_FORMAT(MixtureBackends);

class Mixture : public OnBackend {};

/// Noise becomes background; the block remains foreground.
TEST_P(Mixture, FindsWhatMoves) {
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA, Format::YUY2, Format::P010_10LE, Format::GBR}) {
    diff::Params params = params_of(Reference::mog2, Output::none);
    const Geometry geometry{format, 160, 96};
    const auto plan = plan_for(backend, params, geometry);
    const Picture still = make_picture(geometry, 5, Data::checkerboard);
    diff::FrameResult result;
    for (int i = 0; i < 40; ++i) {
      run(backend, *plan, scene(still, i));
      result = plan->result();
    }
    EXPECT_GT(result.changed, 32u * 32u / 2) << info(format).name;
    EXPECT_LT(result.changed, 32u * 32u * 2) << info(format).name;
  }
}

#if CUDAVISION_TEST_MOG2
/// Compares with OpenCV's MOG2 if its library is installed.
TEST_P(Mixture, EqualsOpenCV) {
  struct Case {
    Format format;
    int type, history;
    double variance_threshold, learning_rate;
    double shadow_threshold = 0;  ///< 0: shadows are kept
  };
  for (const auto& [format, type, history, variance_threshold, learning_rate, shadow_threshold] :
       {Case{Format::GRAY8, CV_8UC1, 500, 16, -1}, Case{Format::RGB, CV_8UC3, 500, 16, -1},
        Case{Format::GRAY8, CV_8UC1, 20, 16, -1}, Case{Format::RGB, CV_8UC3, 500, 4, -1},
        Case{Format::GRAY8, CV_8UC1, 500, 40, 0.05}, Case{Format::GRAY8, CV_8UC1, 1, 9, -1},
        Case{Format::RGB, CV_8UC3, 500, 16, 0}, Case{Format::RGB, CV_8UC3, 500, 16, -1, 0.5},
        Case{Format::RGB, CV_8UC3, 500, 30, -1, 0.8}, Case{Format::GRAY8, CV_8UC1, 500, 16, -1, 0.5},
        Case{Format::GRAY8, CV_8UC1, 500, 16, 0.9}}) {  // at 1, OpenCV forgets everything before each frame
    diff::Params params = params_of(Reference::mog2, Output::mask);
    params.open_radius = 0;
    params.history = history;
    params.variance_threshold = variance_threshold;
    params.learning_rate = learning_rate;
    params.drop_shadows = shadow_threshold > 0;
    params.shadow_threshold = shadow_threshold;
    SCOPED_TRACE(describe(params));
    const Geometry geometry{format, 160, 96};
    const auto plan = plan_for(backend, params, geometry);
    const auto mixture = cv::createBackgroundSubtractorMOG2(history, variance_threshold, params.drop_shadows);
    mixture->setShadowThreshold(shadow_threshold);
    mixture->setShadowValue(127);
    std::int64_t shadows = 0;
    const Picture still = make_picture(geometry, 5);
    std::int64_t foreground = 0, unlike = 0;
    for (int i = 0; i < 120; ++i) {
      Picture src = scene(still, i);
      if (i >= 60) shade(src, {i, 66, 40, 30}, 0.6), shade(src, {i + 50, 66, 30, 30}, 0.9);
      Picture out = run(backend, *plan, src);
      cv::Mat mask, got;
      mixture->apply(mat_of(src, type), mask, learning_rate);
      shadows += cv::countNonZero(mask == 127);
      mask.setTo(0, mask == 127);
      if (i == 0) continue;  // OpenCV's first mask is all foreground; cudadiff has nothing to compare with yet
      cv::extractChannel(mat_of(out, type), got, 0);
      foreground += cv::countNonZero(mask);
      unlike += cv::countNonZero(mask != got);
    }
    std::printf("%s: %ld of %ld foreground pixels unlike OpenCV's\n", info(format).name, long(unlike),
                long(foreground));
    EXPECT_GT(foreground, 10000);
    EXPECT_LE(unlike, foreground / 10000);
    EXPECT_EQ(shadows > 10000, params.drop_shadows) << shadows;
  }
}
#endif
INSTANTIATE_FOR_BACKENDS(Mixture);

TEST(DiffErrors, NameThePropertyAndItsRange) {
  using Params = diff::Params;
  const auto expect = [](const char* property, const std::vector<double>& values, auto member) {
    expect_refused(reference::without_light(), property, values, member);
  };
  expect("interval", {0, -1, 65}, &Params::interval);
  expect("history", {0, -1, 1000001}, &Params::history);
  expect("variance-threshold", {-0.1, 100001, not_a_number, infinite}, &Params::variance_threshold);
  expect("learning-rate", {-1.1, 1.1, not_a_number, infinite}, &Params::learning_rate);
  expect("analysis-scale", {0, -1, 3, 5, 16}, &Params::analysis_scale);
  expect("threshold", {-1, 256}, &Params::threshold);
  expect("noise-limit", {-0.1, 255.1, not_a_number}, &Params::noise_limit);
  expect("shadow-threshold", {-0.1, 1.1, not_a_number}, &Params::shadow_threshold);
  expect("light-change-ratio", {-0.1, 1.1, not_a_number}, &Params::light_change_ratio);
  expect("gain", {-1, 257, not_a_number, infinite}, &Params::gain);
  expect("open-radius", {-1, 17}, &Params::open_radius);
  expect("cell-size", {0, 3, 1025}, &Params::cell_size);
  expect("flight", {0, 17}, &Params::in_flight);
}

}  // namespace
}  // namespace cudavision::test
