// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "kernels/convolve/cpu_small.hpp"
#include "kernels/convolve/plan.hpp"
#include "kernels/cpu/filter.hpp"

namespace cudavision::convolve {
namespace {

/// Kernels with at least this many weights are faster if samples are converted to float first. GRAY8, 1920 × 1080: 15 ×
/// 15 takes 13.4 ms in float and 19.1 ms from bytes; 3 × 3 takes 0.8 ms and 0.6 ms.
constexpr int many_taps = 50;

class CpuConvolve final : public cpu::CpuFilter {
 public:
  explicit CpuConvolve(Plan plan)
      : CpuFilter(plan.geometry, extrapolation(plan.border), plan.border_value, plan.filter_alpha),
        plan_(std::move(plan)) {
    const FormatInfo& format = info(plan_.geometry.format);
    max_ = format.max_value();
    for (int i = 0; i < format.set_count; ++i) {
      // All roles of a set have the same offsets, because either all or none of them are chroma.
      const ChannelSet& set = format.sets[i];
      const Role role = *std::find_if(set.roles.begin(), set.roles.end(), [](Role r) { return r != Role::other; });
      before_[i] = plan_.before[std::size_t(role)];
      after_[i] = plan_.after[std::size_t(role)];
      chroma_[i] = is_chroma(role);
    }
    small_ = is_small(plan_);
    const bool wide = plan_.wide || (plan_.gradient() && format.depth > 8) || !fits_float();
    direct_ = format.depth == 8 && !wide && !plan_.gradient() && !plan_.absolute &&
              (plan_.separable() || plan_.width * plan_.height < many_taps);
    sum_depth_ = wide ? CV_64F : CV_32F;
    const double scale = direct_ ? plan_.scale : 1;
    if (plan_.separable()) {
      // The factors 2 and ½ prevent a path of OpenCV that rounds ties up: it is taken if both kernels are symmetric,
      // positive and sum to 1.
      row_ = cv::Mat(plan_.row, true).t() * 2;
      column_ = cv::Mat(plan_.column, true) * (scale / 2);
    } else {
      kernel_ = cv::Mat(plan_.weights, true).reshape(1, plan_.height) * scale;
      if (plan_.gradient()) vertical_ = cv::Mat(plan_.vertical, true).reshape(1, plan_.height);
    }
  }

 private:
  /// With Border::fill and Border::copy, no result depends on pixels outside the frame, so any extrapolation is valid.
  static Border extrapolation(Border border) { return extrapolates(border) ? border : Border::replicate; }

  /// Whether float32 can hold all intermediate values: integers exactly, other values with three bits after the point.
  bool fits_float() const {
    double reach = 0;
    for (const auto* weights : {&plan_.weights, &plan_.vertical})
      for (double weight : *weights) reach += std::abs(weight * plan_.scale) * max_;
    bool integers = true;
    double offset = 0;
    for (const auto* offsets : {&before_, &after_})
      for (double value : *offsets) {
        offset = std::max(offset, std::abs(value));
        integers = integers && value == std::nearbyint(value);
      }
    return (reach + 2 * offset) * (integers ? 1 : 8) <= 0x1p24;
  }

  void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) override {
    const double nanoseconds =
        0.5 + (plan_.separable() ? 0.1 * (plan_.width + plan_.height) : 0.05 * plan_.width * plan_.height);
    for_strips(rect, access(index).channels(), plan_.height - 1, nanoseconds,
               [&](const Rect& strip, cpu::Scratch& scratch) { filter_strip(index, frame, out, strip, scratch); });
  }

  void filter_strip(int index, const cv::Mat& frame, cv::Mat& out, Rect strip, cpu::Scratch& scratch) {
    const cpu::SetAccess& set = access(index);
    if (plan_.skips_edges()) {
      const cv::Rect at = cpu::cv_rect(strip);
      cv::Mat values = plan_.border == Border::copy ? set.read(frame, strip, scratch) : set.target(out(at), scratch);
      if (plan_.border == Border::fill) values.setTo(set.border_value());
      set.write(values, frame(at), out(at));
      const int x = std::max(strip.x, plan_.anchor_x), y = std::max(strip.y, plan_.anchor_y);
      const int x_end = std::min(strip.x + strip.width, frame.cols - plan_.width + 1 + plan_.anchor_x);
      const int y_end = std::min(strip.y + strip.height, frame.rows - plan_.height + 1 + plan_.anchor_y);
      strip = {x, y, x_end - x, y_end - y};
      if (strip.empty()) return;
    }
    const cv::Rect at = cpu::cv_rect(strip), inner(plan_.anchor_x, plan_.anchor_y, strip.width, strip.height);
    const Rect window{strip.x - inner.x, strip.y - inner.y, strip.width + plan_.width - 1,
                      strip.height + plan_.height - 1};
    cv::Mat result = set.target(out(at), scratch);
    cv::Mat values = set.read(frame, window, scratch);
    if (small_) {
      small_kernel(plan_, values, before_[index], after_[index], plan_.absolute && !chroma_[index], result);
      return set.write(result, frame(at), out(at));
    }
    if (!direct_ && !plan_.separable()) {
      cv::Mat floats = cpu::sized(scratch.floats, values.size(), CV_MAKETYPE(sum_depth_, values.channels()));
      values.convertTo(floats, sum_depth_);
      values = floats;
    }
    // values(inner) is a part of a matrix, and OpenCV reads the samples around it. So OpenCV's border does not matter,
    // and OpenCV uses no DFT.
    compute(index, values(inner), result, scratch);
    set.write(result, frame(at), out(at));
  }

  void compute(int index, const cv::Mat& values, cv::Mat& result, cpu::Scratch& scratch) const {
    if (plan_.gradient() && chroma_[index]) {
      result.setTo(cv::Scalar::all(after_[index]));
      return;
    }
    if (direct_) return correlate(values, result, kernel_, before_[index] + after_[index]);
    const int type = CV_MAKETYPE(sum_depth_, values.channels());
    cv::Mat sums = cpu::sized(scratch.sums, values.size(), type);
    correlate(values, sums, kernel_, 0);
    if (plan_.gradient()) {
      cv::Mat down = cpu::sized(scratch.second_sums, values.size(), type);
      correlate(values, down, vertical_, 0);
      cv::magnitude(sums, down, sums);
    }
    double scale = plan_.scale, offset = before_[index] + after_[index];
    if (plan_.absolute && !chroma_[index]) {
      sums.convertTo(sums, sum_depth_, scale, before_[index]);
      cv::absdiff(sums, cv::Scalar(), sums);
      scale = 1;
      offset = after_[index];
    }
    if (sum_depth_ == CV_32F) {
      sums.convertTo(result, result.depth(), scale, offset);
    } else {
      // In steps: convertTo() to integers would compute in float32, values above 32 bits would not saturate, and OpenCV
      // before 4.9 rounds doubles on arm64 with ties away from zero (its issue 24213). Adding 2⁵² rounds ties to even.
      sums.convertTo(sums, CV_64F, scale, offset);
      cv::min(sums, max_, sums);
      cv::max(sums, 0, sums);
      sums.convertTo(sums, CV_64F, 1, 0x1p52);
      sums.convertTo(sums, CV_64F, 1, -0x1p52);
      sums.convertTo(result, result.depth());
    }
    if (max_ != 255 && max_ != 65535) cv::min(result, max_, result);
  }

  void correlate(const cv::Mat& values, cv::Mat& result, const cv::Mat& kernel, double offset) const {
    const cv::Point anchor(plan_.anchor_x, plan_.anchor_y);
    if (plan_.separable())
      cv::sepFilter2D(values, result, result.depth(), row_, column_, anchor, offset, cv::BORDER_REPLICATE);
    else
      cv::filter2D(values, result, result.depth(), kernel, anchor, offset, cv::BORDER_REPLICATE);
  }

  Plan plan_;
  double max_ = 255;
  std::array<double, max_sets> before_{}, after_{};
  std::array<bool, max_sets> chroma_{};
  bool small_ = false;   ///< whether small_kernel() computes the plan
  bool direct_ = false;  ///< whether one OpenCV call computes bytes from bytes
  int sum_depth_ = CV_32F;
  cv::Mat kernel_, vertical_, row_, column_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_cpu(Plan plan) {
  return std::unique_ptr<Filter>(std::make_unique<CpuConvolve>(std::move(plan)));
}

}  // namespace cudavision::convolve
