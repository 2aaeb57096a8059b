// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstdint>
#include <opencv2/imgproc.hpp>

#include "kernels/cpu/filter.hpp"
#include "kernels/diff/cpu_stages.hpp"

namespace cudavision::diff {
namespace {

template <typename T, typename Fixed, bool limited>
void step_rows(const cv::Mat& v, cv::Mat background, cv::Mat& was, bool begin, Follow follow) {
  const int samples = v.cols * v.channels();
  for (int y = 0; y < v.rows; ++y) {
    const T* from = v.ptr<T>(y);
    auto* fixed = reinterpret_cast<Fixed*>(background.ptr(y));
    T* to = was.ptr<T>(y);
    for (int i = 0; i < samples; ++i) {
      const std::uint32_t before = begin ? std::uint32_t(from[i]) << background_bits(sizeof(T)) : fixed[i];
      to[i] = T(background_sample<T>(before));
      fixed[i] = Fixed(background_step<T, limited>(before, from[i], follow));
    }
  }
}

template <typename T, typename Fixed>
void step(const cv::Mat& v, const cv::Mat& background, cv::Mat& was, bool begin, const Follow& follow) {
  const bool limited = follow.most != unlimited_step(sizeof(T));
  limited ? step_rows<T, Fixed, true>(v, background, was, begin, follow)
          : step_rows<T, Fixed, false>(v, background, was, begin, follow);
}

template <typename T>
void show_samples(const Show& show, const cv::Mat& v, const cv::Mat& r, cv::Mat& out, bool about_middle) {
  for (int y = 0; y < v.rows; ++y) {
    const T *from = v.ptr<T>(y), *reference = r.ptr<T>(y);
    T* to = out.ptr<T>(y);
    for (int i = 0; i < v.cols * v.channels(); ++i) to[i] = T(show(int(from[i]) - int(reference[i]), about_middle));
  }
}

int sample_at(const cv::Mat& m, int y, int x, int c) {
  const int at = x * m.channels() + c;
  return m.depth() == CV_8U ? int(m.ptr<std::uint8_t>(y)[at]) : int(m.ptr<std::uint16_t>(y)[at]);
}

}  // namespace

void step_background(const cv::Mat& v, const cv::Mat& background, cv::Mat& was, bool begin, const Follow& follow) {
  v.depth() == CV_8U ? step<std::uint8_t, std::uint16_t>(v, background, was, begin, follow)
                     : step<std::uint16_t, std::uint32_t>(v, background, was, begin, follow);
}

void show_difference(const Show& show, const cv::Mat& v, const cv::Mat& r, cv::Mat& out, bool about_middle) {
  v.depth() == CV_8U ? show_samples<std::uint8_t>(show, v, r, out, about_middle)
                     : show_samples<std::uint16_t>(show, v, r, out, about_middle);
}

cv::Mat luma_of_sets(const FormatInfo& format, const cv::Mat* sets, bool already) {
  cv::Mat rgb[3];
  for (int i = 0; i < format.set_count; ++i)
    for (int c = 0; c < format.sets[i].channels; ++c)
      if (const int at = int(format.sets[i].roles[c]) - int(Role::red); at >= 0 && at < 3)
        cv::extractChannel(sets[i], rgb[at], c);
  if (already) return rgb[0];
  cv::Mat luma;
  cpu::make_luma(rgb[0], rgb[1], rgb[2], luma);
  return luma;
}

cv::Mat greatest(const cv::Mat& samples, const std::vector<int>& channels) {
  if (samples.channels() == 1) return samples;
  cv::Mat most, one;
  for (int c : channels) {
    cv::extractChannel(samples, one, c);
    most = most.empty() ? one.clone() : cv::max(most, one);
  }
  return most;
}

cv::Mat at_pixels(const cv::Mat& samples, const ChannelSet& set, cv::Size pixels) {
  if (set.shift_x == 0 && set.shift_y == 0) return samples;
  cv::Mat all;
  cv::resize(samples, all, {samples.cols << set.shift_x, samples.rows << set.shift_y}, 0, 0, cv::INTER_NEAREST);
  return all(cv::Rect({0, 0}, pixels));
}

void clear_shadows(const Shadow& shadow, const FormatInfo& format,
                   const std::array<std::vector<int>, max_sets>& channels, const cv::Mat (&v)[max_sets],
                   const cv::Mat (&background)[max_sets], cv::Mat& changed) {
  for (int y = 0; y < changed.rows; ++y) {
    for (int x = 0; x < changed.cols; ++x) {
      if (!changed.at<uchar>(y, x)) continue;
      int sample[3], lit[3], count = 0;
      for (int i = 0; i < format.set_count; ++i) {
        const int sy = y >> format.sets[i].shift_y, sx = x >> format.sets[i].shift_x;
        for (int c : channels[std::size_t(i)]) {
          if (count == shadow.channels) break;
          sample[count] = sample_at(v[i], sy, sx, c);
          lit[count++] = sample_at(background[i], sy, sx, c);
        }
      }
      if (shadow(sample, lit)) changed.at<uchar>(y, x) = 0;
    }
  }
}

}  // namespace cudavision::diff
