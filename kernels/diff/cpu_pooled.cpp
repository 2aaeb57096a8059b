// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_pooled.hpp"

#include <algorithm>
#include <atomic>
#include <opencv2/imgproc.hpp>

namespace cudavision::diff::pooled {
namespace {

template <typename Work>
void for_rows(const Job& job, Work work) {
  cv::parallel_for_({0, job.height}, [&](const cv::Range& range) {
    for (int y = range.start; y < range.end; ++y) work(y);
  });
}

template <typename T>
void prepare_all(const Job& job) {
  with_channels(job.channels, [&](auto channels) {
    with_scale(job.log2_scale, [&](auto scale) {
      for_rows(job, [&](int y) {
        for (int x = 0; x < job.width; ++x) prepare<T, channels, scale>(job, x, y, false);
      });
    });
  });
}

/// Medians over the pixels of a cell that are not left out.
class CellLight {
 public:
  CellLight(const Job& job, int x, int y)
      : job_(job),
        left_(x * cell),
        top_(y * cell),
        right_(std::min(left_ + cell, job.width)),
        bottom_(std::min(top_ + cell, job.height)) {}

  /// By value(median) of bin(pixel); empty if there are too few pixels.
  template <typename Bin, typename Value>
  float median(Bin bin, Value value) const {
    unsigned histogram[bins] = {}, total = 0;
    for (int y = top_; y < bottom_; ++y)
      for (int x = left_; x < right_; ++x)
        if (const std::size_t at = job_.at(x, y); shows_light(job_, at)) ++histogram[bin(at)], ++total;
    const unsigned pixels = unsigned(right_ - left_) * unsigned(bottom_ - top_);
    return enough_in_cell(total, pixels) ? value(median_of(histogram, total)) : empty;
  }

 private:
  const Job& job_;
  const int left_, top_, right_, bottom_;
};

/// The gain of the frame, if no cell has one.
float gain_of_frame(const Job& job) {
  unsigned histogram[bins] = {}, total = 0, pixels = 0;
  for (int y = 0; y < job.height; y += sparse)
    for (int x = 0; x < job.width; x += sparse, ++pixels)
      if (const std::size_t at = job.at(x, y); shows_light(job, at)) ++histogram[gain_bin(job, at)], ++total;
  return enough_in_frame(total, pixels) ? gain_of(median_of(histogram, total)) : 1;
}

/// Fills the cells that are empty, round by round. `none`: the value if all are empty.
void fill(const Job& job, int c, float none) {
  float* const light = job.light[c];
  const int cells = job.cells_x * job.cells_y;
  if (std::all_of(light, light + cells, [](float value) { return value == empty; })) {
    std::fill_n(light, cells, none);
    return;
  }
  while (std::count(light, light + cells, empty) > 0) {
    for (int i = 0; i < cells; ++i)
      job.spare[c][i] = filled(job, i % job.cells_x, i / job.cells_x, [&](int x, int y) { return light[y * job.cells_x + x]; });
    std::copy_n(job.spare[c], cells, light);
  }
}

/// Sums of the square of 2·radius + 1 pixels, inside of the frame.
cv::Mat sums_around(const cv::Mat& values, int radius) {
  cv::Mat sums;
  const int side = 2 * radius + 1;
  cv::boxFilter(values, sums, CV_32S, {side, side}, {-1, -1}, false, cv::BORDER_CONSTANT);
  return sums;
}

}  // namespace

void CpuSteps::estimate_light(const Job& job) {
  const int cells = job.cells_x * job.cells_y;
  cv::parallel_for_({0, cells}, [&](const cv::Range& range) {
    for (int i = range.start; i < range.end; ++i) {
      const CellLight here(job, i % job.cells_x, i / job.cells_x);
      const float gain = job.light[0][i] = here.median([&](std::size_t at) { return gain_bin(job, at); }, gain_of);
      for (int c = 1; c < job.channels; ++c)
        job.light[c][i] = here.median([&](std::size_t at) { return offset_bin(job, c, at, gain); }, offset_of);
    }
  });
  const bool none = std::count(job.light[0], job.light[0] + cells, empty) == cells;
  for (int c = 0; c < job.channels; ++c) fill(job, c, c == 0 && none ? gain_of_frame(job) : 0);
  for (int c = 0; c < job.channels; ++c) {
    smooth_[c].resize(std::size_t(cells));
    for (int i = 0; i < cells; ++i) smooth_[c][std::size_t(i)] = smooth(job, c, i % job.cells_x, i / job.cells_x);
  }
}

template <int channels>
void CpuSteps::expect_all(const Job& job) {
  for (cv::Mat* picture : {&evidence_, &luma_, &expected_luma_}) picture->create(job.height, job.width, CV_32S);
  for (cv::Mat* picture : {&gain_, &expected_[0], &expected_[1], &expected_[2]}) picture->create(job.height, job.width, CV_32F);
  for_rows(job, [&](int y) {
    const Between down = between(y, job.cells_y);
    const auto cell_light = [&](int c, int x) {
      const float* const light = smooth_[c].data();
      return mixed(light[down.first * job.cells_x + x], light[down.second * job.cells_x + x], down.weight);
    };
    for (int x = 0; x < job.width; ++x) {
      Light light;
      if (job.compensates) {
        const Between across = between(x, job.cells_x);
        const auto light_of = [&](int c) {
          return mixed(cell_light(c, across.first), cell_light(c, across.second), across.weight);
        };
        light.gain = light_of(0);
        for (int c = 1; c < channels; ++c) light.offset[c] = light_of(c);
      }
      const std::size_t at = job.at(x, y);
      const Expected expected = expect<channels>(job, at, light);
      for (int c = 0; c < channels; ++c) expected_[c].at<float>(y, x) = expected.values[c];
      gain_.at<float>(y, x) = light.gain;
      evidence_.at<int>(y, x) = expected.evidence;
      luma_.at<int>(y, x) = coarse_luma(job.frame[at]);
      expected_luma_.at<int>(y, x) = coarse_luma(to_fixed(expected.values[0]));
    }
  });
}

template <int channels>
Expected CpuSteps::expected_at(int x, int y) const {
  Expected expected{};
  for (int c = 0; c < channels; ++c) expected.values[c] = expected_[c].at<float>(y, x);
  return expected;
}

template <int channels>
void CpuSteps::find_changes(const Job& job, const Rates& rates, cv::Mat& changed) {
  for (cv::Mat* bytes : {&level_, &above_}) bytes->create(job.height, job.width, CV_8U);
  unlike_.create(job.height, job.width, CV_32S);
  const cv::Mat evidence = sums_around(evidence_, 2);
  cv::Mat frame, luma, unlike_sums;
  if (job.drops_shadows) frame = sums_around(luma_, 2), luma = sums_around(expected_luma_, 2);
  for_rows(job, [&](int y) {
    for (int x = 0; x < job.width; ++x) {
      const int count = count_around(job, 2, x, y);
      const Level level = level_of(rates, evidence.at<int>(y, x), count);
      level_.at<uchar>(y, x) = uchar(level);
      above_.at<uchar>(y, x) = level >= above;
      if (!job.drops_shadows) continue;
      unlike_.at<int>(y, x) =
          unlike_shadow<channels>(job, job.at(x, y), expected_at<channels>(x, y), frame.at<int>(y, x), luma.at<int>(y, x), count);
    }
  });
  if (job.drops_shadows) unlike_sums = sums_around(unlike_, 1);
  for_rows(job, [&](int y) {
    for (int x = 0; x < job.width; ++x) {
      const bool shadow = job.drops_shadows && unlike_sums.at<int>(y, x) <= unlike * count_around(job, 1, x, y);
      changed.at<uchar>(y, x) = above_.at<uchar>(y, x) && !shadow ? 255 : 0;
    }
  });
}

template <int channels>
void CpuSteps::learn_all(const Job& job, const Rates& rates) const {
  for_rows(job, [&](int y) {
    for (int x = 0; x < job.width; ++x) {
      const Seen seen{Level(level_.at<uchar>(y, x)), near_above_.at<uchar>(y, x) != 0, near_changed_.at<uchar>(y, x) != 0};
      learn<channels>(job, job.at(x, y), expected_at<channels>(x, y), gain_.at<float>(y, x), seen, rates);
    }
  });
}

void CpuSteps::update(const Job& job, bool bytes, std::uint64_t began, cv::Mat& changed) {
  bytes ? prepare_all<std::uint8_t>(job) : prepare_all<std::uint16_t>(job);
  if (job.begin) {
    changed.setTo(0);
    return;
  }
  if (job.compensates) estimate_light(job);
  with_channels(job.channels, [&](auto channels) {
    expect_all<channels>(job);
    const Rates rates = rates_of(job, job.number - began);
    find_changes<channels>(job, rates, changed);
    cv::dilate(above_, near_above_, cv::Mat());  // 3 × 3
    cv::dilate(changed, near_changed_, cv::Mat());
    learn_all<channels>(job, rates);
  });
}

std::uint64_t sum_of_differences(const Job& job, const cv::Mat& counted) {
  std::atomic<std::uint64_t> sum{0};
  with_channels(job.channels, [&](auto channels) {
    for_rows(job, [&](int y) {
      std::uint64_t of_row = 0;
      for (int x = 0; x < job.width; ++x)
        if (counted.empty() || counted.at<uchar>(y, x)) of_row += std::uint64_t(difference<channels>(job, job.at(x, y)));
      sum += of_row;
    });
  });
  return sum;
}

void begin_anew(const Job& job) {
  for (std::size_t i = 0; i < job.channels * job.pixels(); ++i) job.next_mean[i] = from_fixed(job.frame[i]);
  std::fill_n(job.recent, job.pixels(), std::uint8_t(0));
}

}  // namespace cudavision::diff::pooled
