// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the adaptive background of the CPU backend, which computes rows in vectors and skips what cannot matter,
// with the formulas of kernels/diff/adaptive*.hpp for single pixels: every bit must be equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/diff/adaptive_outline.hpp"
#include "kernels/diff/cpu_adaptive.hpp"
#include "kernels/diff/cpu_adaptive_outline.hpp"
#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

using namespace diff::adaptive;
using diff::enlarge_mask;
using diff::Learning;
using diff::MaskBytes;
using diff::adaptive::Job;  // harness.hpp has another Job

/// The state of a background of 8-bit samples at full size, and a frame.
struct Background {
  Job job;
  std::vector<float> state;
  std::vector<unsigned char> planes[3];
  std::vector<Learning> learning;
  cv::Mat changed;

  Background(int width, int height, int channels)
      : state((state_bytes(width, height, cpu_places) + 64) / sizeof(float)), changed(height, width, CV_8U) {
    job.width = job.whole_width = width, job.height = job.whole_height = height;
    job.pitch = pitch_of(width), job.channels = channels, job.black = 16;
    job.cells_x = cells_along(width), job.cells_y = cells_along(height);
    job.rate = 0.02f;
    set_state(job, state.data(), cpu_places);
    for (int c = 0; c < channels; ++c) {
      planes[c].resize(std::size_t(width) * height);
      job.inputs[c].data = planes[c].data(), job.inputs[c].pitch = width;
    }
  }
  template <typename T>
  bool equal(const T* ours, const T* theirs, int planes_of) const {  // without the numbers after the rows
    for (int y = 0; y < planes_of * job.height; ++y)
      if (std::memcmp(ours + y * job.pitch, theirs + y * job.pitch, sizeof(T) * std::size_t(job.width))) return false;
    return true;
  }
};

void measure_light(const Job& job) {
  for (int i = 0; i < job.cells_x * job.cells_y; ++i) {
    const int left = i % job.cells_x * cell, top = i / job.cells_x * cell;
    float gain = empty;
    for (int c = 0; c < job.channels; ++c) {
      unsigned histogram[bins] = {}, total = 0, pixels = 0;
      for (const auto& [x, y] :
           Positions(left, top, std::min(left + cell, job.width), std::min(top + cell, job.height))) {
        const std::size_t at = job.at(x, y), in = c * job.pixels() + at;
        ++pixels;
        if (!shows_light(int(job.recent[at]))) continue;
        const float value = value_of(job, c, at), mean = job.mean[in];
        ++total, ++histogram[c == 0 ? gain_bin(value, mean) : offset_bin(value, mean, gain)];
      }
      const bool known = enough_in_cell(total, pixels) && (c == 0 || gain != empty);
      const float middle = known ? median_of(histogram, total) : 0;
      job.light[c][i] = !known ? empty : c == 0 ? gain_of(middle) : offset_of(middle);
      if (c == 0) gain = job.light[0][i];
    }
  }
}

void settle(const Job& job, std::vector<float> (&light)[3]) {
  const int cells = job.cells_x * job.cells_y;
  if (std::count(job.light[0], job.light[0] + cells, empty) == cells) return settle_light(job, light);
  for (int c = 0; c < job.channels; ++c)
    while (std::count(job.light[c], job.light[c] + cells, empty) > 0) {
      const std::vector<float> before(job.light[c], job.light[c] + cells);
      for (int i = 0; i < cells; ++i)
        job.light[c][i] = filled(job, i % job.cells_x, i / job.cells_x,
                                 [&](int x, int y) { return before[std::size_t(y * job.cells_x + x)]; });
    }
  for (int c = 0; c < job.channels; ++c)
    for (int i = 0; i < cells; ++i) light[c].push_back(smooth(job, c, i % job.cells_x, i / job.cells_x));
}

/// Updates one pixel at a time, as CpuSteps::update() does for vectors. Returns the sum of the differences.
template <int channels>
std::uint64_t update(Background& background) {
  const Job& job = background.job;
  const int width = job.width, height = job.height;
  for (const auto& [x, y] : positions(width, height)) {
    float value[3] = {};
    for (int c = 0; c < channels; ++c) value[c] = mean_of_samples<std::uint8_t, 1>(job, job.inputs[c], x, y);
    to_background(job, value);
    for (int c = 0; c < channels; ++c) {
      const std::size_t at = c * job.pixels() + job.at(x, y);
      job.frame[at] = std::int16_t(to_fixed(value[c]));
      if (job.begin) job.next_mean[at] = value_of(job, c, job.at(x, y)), job.next_variance[at] = first_variance(c);
    }
    const std::size_t at = job.at(x, y);
    if (job.begin) job.recent[at] = 0, restart_counts(job, at);
  }
  if (job.begin) return 0;
  std::vector<float> light[3];
  measure_light(job);
  settle(job, light);
  const Rates rates = rates_of(job, job.number);
  const auto light_at = [&](int x, int y) {
    const Between across = between(x, job.cells_x), down = between(y, job.cells_y);
    const auto of = [&](int c) {
      const auto in = [&](int column) {
        return mixed(light[c][std::size_t(down.first * job.cells_x + column)],
                     light[c][std::size_t(down.second * job.cells_x + column)], down.weight);
      };
      return mixed(in(across.first), in(across.second), across.weight);
    };
    Light<float> here;
    here.gain = of(0);
    for (int c = 1; c < channels; ++c) here.offset[c] = of(c);
    return here;
  };
  const std::size_t count = std::size_t(width) * height;
  std::vector<Pixel<channels, float>> pixels(count);
  std::vector<Expected<channels, float>> expected(count);
  std::vector<int> evidence(count), luma(count), frame(count), levels(count), unlikeness(count), changed(count);
  std::uint64_t sum = 0;
  const auto index = [&](int x, int y) { return std::size_t(y) * width + x; };
  const auto each = [&](auto work) {
    for (const auto& [x, y] : positions(width, height)) work(x, y, index(x, y));
  };
  const auto around = [&](int radius, int x, int y, auto of) {  // the sum over the square around (x, y)
    int total = 0;
    for (int v = std::max(0, y - radius); v <= std::min(height - 1, y + radius); ++v)
      for (int u = std::max(0, x - radius); u <= std::min(width - 1, x + radius); ++u) total += of(index(u, v));
    return total;
  };
  each([&](int x, int y, std::size_t i) {
    for (int c = 0; c < channels; ++c) {
      const std::size_t at = c * job.pixels() + job.at(x, y);
      pixels[i].value[c] = value_of(job, c, job.at(x, y));
      pixels[i].mean[c] = job.mean[at], pixels[i].variance[c] = job.variance[at];
    }
    expected[i] = expect(pixels[i], light_at(x, y));
    evidence[i] = evidence_of(pixels[i], expected[i]);
    luma[i] = coarse_luma(expected[i].value[0]);
    frame[i] = coarse_luma_of(int(job.frame[job.at(x, y)]));
    job.expected[job.at(x, y)] = std::uint8_t(expected_byte(luma[i]));
    sum += std::uint64_t(largest_difference(pixels[i]));
  });
  each([&](int x, int y, std::size_t i) {
    levels[i] =
        level_of(rates, around(2, x, y, [&](std::size_t at) { return evidence[at]; }), count_around(job, 2, x, y));
  });
  const auto near = [&](const auto& of, int least, int x, int y) {
    return around(1, x, y, [&](std::size_t at) { return of[at] >= least; }) > 0;
  };
  each([&](int x, int y, std::size_t i) {
    if (near(levels, above, x, y))
      unlikeness[i] = unlike_shadow(job, pixels[i], expected[i], around(2, x, y, [&](auto at) { return frame[at]; }),
                                    around(2, x, y, [&](auto at) { return luma[at]; }), count_around(job, 2, x, y));
  });
  each([&](int x, int y, std::size_t i) {
    changed[i] = levels[i] >= above && (!job.drops_shadows || around(1, x, y, [&](auto at) { return unlikeness[at]; }) >
                                                                  unlike * count_around(job, 1, x, y));
    background.changed.ptr(y)[x] = changed[i] ? 255 : 0;
  });
  each([&](int x, int y, std::size_t i) {
    const Learning decision = job.learning.at(x, y);
    std::uint8_t& recent = job.recent[job.at(x, y)];
    const Seen<float> seen{levels[i],
                           recent,
                           near(levels, above, x, y),
                           near(changed, 1, x, y),
                           applies(Learning::hold, decision),
                           applies(Learning::take, decision),
                           applies(Learning::steady, decision)};
    recent = std::uint8_t(recent_after(seen));
    const bool turn = has_turn(job, y);
    Rival<channels, float> rival{};
    const std::size_t own = job.at(x, y), n = job.pixels();
    for (int c = 0; c < channels && rates.settles; ++c) rival.value[c] = from_fixed(int(job.rival[c * n + own]));
    if (rates.settles) rival.stays = job.stays[own], rival.own_stays = job.stays[n + own];
    const float gain = light_at(x, y).gain;
    Shown<channels, float> shown{};
    rates.settles ? learn<true>(pixels[i], rival, expected[i], gain, seen, rates, turn, shown)
                  : learn<false>(pixels[i], rival, expected[i], gain, seen, rates, turn, shown);
    if (rates.settles) settle_after(pixels[i], rival, shown, seen, rates, turn);
    for (int c = 0; c < channels && rates.settles && !rests(seen, rates, turn); ++c)
      job.rival[c * n + own] = std::int16_t(to_fixed(rival.value[c]));
    if (rates.settles && !rests(seen, rates, turn))
      job.stays[own] = std::int16_t(rival.stays), job.stays[n + own] = std::int16_t(rival.own_stays);
    for (int c = 0; c < channels; ++c) {
      const std::size_t at = c * job.pixels() + job.at(x, y);
      job.next_mean[at] = pixels[i].mean[c], job.next_variance[at] = pixels[i].variance[c];
    }
  });
  return sum;
}

/// Draws a scene under light that drifts, jumps and differs between left and right, with noise, clipped samples, and
/// boxes of any contrast.
void draw(Background& background, int frame, Random& random) {
  const Job& job = background.job;
  const double of_frame = frame % 40 == 20 ? 1.4 : 0.9 + 0.004 * (frame % 31);
  const int noise = frame % 23 < 12 ? 1 : 3;
  struct Box {
    int left, top, width, height, by;
  } boxes[6];
  for (Box& box : boxes)
    box = {random.below(job.width), random.below(job.height), 1 + random.below(30), 1 + random.below(20),
           random.between(-60, 60)};
  for (int c = 0; c < job.channels; ++c)
    for (const auto& [x, y] : positions(job)) {
      const double gain = of_frame * (1 + 0.2 * (frame % 2) * x / job.width);
      double value = c == 0 ? 16 + gain * (x > job.width * 3 / 4 ? 215 : 40 + (7 * x + 11 * y) % 90)
                            : 128 + gain * ((3 * x + 5 * y + 40 * c) % 60 - 30) + frame % 7;
      for (const Box& box : boxes)
        if (x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height && frame % 3)
          value += c == 0 ? box.by : box.by / 4;
      value += random.between(-noise, noise);
      background.planes[c][std::size_t(y) * job.width + x] = static_cast<unsigned char>(std::clamp(value, 0.0, 255.0));
    }
}

TEST(AdaptiveRows, EqualPixels) {
  for (const auto& [width, height, channels] :
       {std::tuple{83, 37, 3}, {149, 60, 3}, {16, 16, 1}, {31, 100, 3}, {5, 3, 3}, {130, 45, 1}}) {
    Background ours(width, height, channels), theirs(width, height, channels);
    CpuSteps steps;
    Random random{unsigned(width)};
    std::size_t found = 0;
    for (int frame = 0; frame < 130; ++frame) {
      for (Background* one : {&ours, &theirs}) {
        // The background settles in the first 100 frames. Later frames find it settled.
        one->job.number = std::uint64_t(frame) + (frame < 100 ? 0 : settling_frames), one->job.begin = frame == 0;
        one->job.drops_shadows = frame % 60 < 45, one->job.most_variance = frame % 50 < 25 ? 400.0f : 1e9f;
      }
      draw(ours, frame, random);
      for (int c = 0; c < channels; ++c)
        std::copy(ours.planes[c].begin(), ours.planes[c].end(), theirs.planes[c].begin());
      ours.learning.assign(std::size_t(divide_up(width, 16)) * divide_up(height, 16), Learning::usual);
      for (Learning& decision : ours.learning)
        if (frame % 5 == 0 && random.below(4) == 0)
          decision = Learning(1 + random.below(5));  // also together with `steady`
      for (Background* one : {&ours, &theirs}) one->job.learning = {ours.learning.data(), divide_up(width, 16), 16, 0};
      const std::uint64_t sum = steps.update(ours.job, true, 0, cv::Mat(), ours.changed);
      ASSERT_EQ(sum, channels == 1 ? update<1>(theirs) : update<3>(theirs)) << width << " " << frame;
      const Job &a = ours.job, &b = theirs.job;
      const std::string where = std::to_string(width) + ", frame " + std::to_string(frame);
      ASSERT_TRUE(ours.equal(a.frame, b.frame, channels)) << where;
      for (int c = 0; c < channels && frame > 0; ++c)
        ASSERT_TRUE(std::equal(a.light[c], a.light[c] + a.cells_x * a.cells_y, b.light[c])) << where << ", light " << c;
      ASSERT_TRUE(ours.equal(a.mean, b.mean, channels)) << where;
      ASSERT_TRUE(ours.equal(a.variance, b.variance, channels)) << where;
      ASSERT_TRUE(ours.equal(a.recent, b.recent, 1)) << where;
      ASSERT_TRUE(ours.equal(a.stays, b.stays, 2)) << where;
      if (frame == 0) continue;
      ASSERT_TRUE(ours.equal(a.expected, b.expected, 1)) << where;
      ASSERT_EQ(cv::countNonZero(ours.changed != theirs.changed), 0) << where;
      found += std::size_t(cv::countNonZero(ours.changed));
    }
    EXPECT_GT(found, 0u) << width;
  }
}

/// Refines the outline of a mask of `blocks` as cpu_adaptive_outline.cpp does, and pixel by pixel.
void expect_equal_outlines(Background& background, bool masked, Random& random) {
  Job& job = background.job;
  const int scale = 1 << job.log2_scale, width = job.width, height = job.height;
  // The last blocks lie partly outside the frame.
  job.whole_width = width * scale - random.below(scale), job.whole_height = height * scale - random.below(scale);
  for (int c = 0; c < job.channels; ++c) {
    background.planes[c].resize(std::size_t(job.whole_width) * job.whole_height);
    for (unsigned char& sample : background.planes[c])
      sample = static_cast<unsigned char>(random.between(100, random.below(3) ? 110 : 255));
    job.inputs[c].data = background.planes[c].data(), job.inputs[c].pitch = job.whole_width;
    for (std::size_t i = 0; i < job.pixels(); ++i)
      job.frame[c * job.pixels() + i] = std::int16_t(random.between(c ? -3000 : 9000, 14000));
  }
  cv::Mat mask(height, width, CV_8U), unmasked, whole(job.whole_height, job.whole_width, CV_8U);
  const int often = 2 + random.below(12);
  for (const auto& [x, y] : positions(width, height)) mask.ptr(y)[x] = random.below(often) ? 0 : 255;
  if (masked) {
    unmasked.create(height, width, CV_8U);
    for (const auto& [x, y] : positions(width, height)) unmasked.ptr(y)[x] = random.below(3) ? 255 : 0;
  }
  const MaskBytes shown = masked ? MaskBytes{16, 235} : MaskBytes();
  const auto byte_of = [&](bool changed) { return changed ? shown.changed : shown.unchanged; };
  for (const auto& [x, y] : positions(whole.cols, whole.rows))
    whole.ptr(y)[x] = byte_of(mask.ptr(y / scale)[x / scale] != 0);
  cv::Mat expected = whole.clone(), enlarged(whole.size(), CV_8U);
  enlarge_mask(mask, scale, shown, enlarged);
  ASSERT_EQ(cv::countNonZero(enlarged != expected), 0) << width << " × " << height << ", scale " << scale;
  const auto changed = [&](int x, int y) { return mask.ptr(y)[x] != 0; };
  for (const auto& [x, y] : positions(whole.cols, whole.rows))
    if (at_outline(job, x / scale, y / scale, changed) && (!masked || unmasked.ptr(y / scale)[x / scale]))
      expected.ptr(y)[x] = byte_of(pixel_changed<std::uint8_t>(job, x, y, changed));
  refine_outline(job, true, mask, unmasked, shown, whole);
  ASSERT_EQ(cv::countNonZero(whole != expected), 0) << width << " × " << height << ", scale " << scale;
}

TEST(AdaptiveRows, EqualOutlines) {
  Random random{5};
  for (int round = 0; round < 40; ++round)
    for (const int channels : {1, 3})
      for (const int log2_scale : {1, 2, 3}) {
        const bool narrow = round % 4 == 0;  // fewer blocks than a vector has lanes
        Background background(1 + random.below(narrow ? 18 : 70), 1 + random.below(12), channels);
        background.job.log2_scale = log2_scale;
        expect_equal_outlines(background, round % 2 == 1, random);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace cudavision::test
