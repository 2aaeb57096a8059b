// SPDX-License-Identifier: LGPL-2.1-or-later
#include <atomic>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "kernels/core/sample.hpp"
#include "kernels/cpu/filter.hpp"
#include "kernels/gaussian/gaussian.hpp"

namespace cudavision::detail {
namespace {

// Before 4.6 cv::GaussianBlur's 16-bit path clipped values (OpenCV issue 20121) or lost the picture (issue 20792).
constexpr bool exact_16u = CV_VERSION_MAJOR * 100 + CV_VERSION_MINOR >= 406;

class CpuGaussian final : public cpu::CpuFilter {
 public:
  explicit CpuGaussian(GaussianPlan plan)
      : CpuFilter(plan.geometry, plan.border, plan.border_value, plan.filter_alpha), plan_(std::move(plan)) {
    for (int i = 0; i < info(plan_.geometry.format).set_count; ++i) {
      const GaussianPlan::Axes& axes = plan_.sets[i];
      column_[i] = cv::Mat(std::vector<double>(axes.y.weights.begin(), axes.y.weights.end()), true);
      row_[i] = cv::Mat(std::vector<double>(axes.x.weights.begin(), axes.x.weights.end()), true);
      sigma_y_[i] = sigma_y(axes);
    }
  }

 private:
  /// What cv::GaussianBlur needs for the vertical axis, as it reads 0 as "the same as horizontal"; or 0 where its table of
  /// small kernels, which is for sigma 0, cannot be had for this axis alone.
  static double sigma_y(const GaussianPlan::Axes& axes) {
    if (axes.y.sigma > 0 || axes.x.sigma <= 0) return axes.y.sigma;
    if (axes.y.taps == 1) return 1;
    return axes.y.taps > 9 ? 0.15 * axes.y.taps + 0.35 : 0;
  }

  /// Whether cv::GaussianBlur has the weights of the plan.
  bool in_opencv(int index) const {
    const GaussianPlan::Axes& axes = plan_.sets[index];
    return (plan_.fraction_bits == 8 || exact_16u) && (sigma_y_[index] > 0 || axes.x.sigma <= 0);
  }

  void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) override {
    const cpu::SetAccess& set = access(index);
    const bool whole = rect.width == frame.cols && rect.height == frame.rows;
    const bool border_in_opencv =
        plan_.border == Border::constant ? set.border_value() == cv::Scalar() : plan_.border != Border::wrap;
    if (whole && border_in_opencv && in_opencv(index) && holds_values(index, frame)) {
      blur(index, frame, out, cv::BorderTypes(plan_.border));
      for_strips(rect, set.channels(), 0, [&](const Rect& strip, cpu::Scratch&) {
        const cv::Rect at = cpu::cv_rect(strip);
        set.write(out(at), frame(at), out(at));
      });
      return;
    }
    const int rx = plan_.sets[index].x.radius(), ry = plan_.sets[index].y.radius();
    for_strips(rect, set.channels(), 2 * ry, [&](const Rect& strip, cpu::Scratch& scratch) {
      const cv::Rect at = cpu::cv_rect(strip), inner(rx, ry, strip.width, strip.height);
      const Rect window{strip.x - rx, strip.y - ry, strip.width + 2 * rx, strip.height + 2 * ry};
      const cv::Mat values = set.read(frame, window, scratch);
      cv::Mat blurred;
      if (in_opencv(index)) {
        cv::Mat all = cpu::sized(scratch.result, values.size(), values.type());
        blur(index, values, all, cv::BORDER_REPLICATE | cv::BORDER_ISOLATED);  // the border is in the window
        blurred = all(inner);
      } else {
        blurred = set.target(out(at), scratch);
        sum(index, values(inner), blurred, scratch);
      }
      set.write(blurred, frame(at), out(at));
    });
  }

  bool holds_values(int index, const cv::Mat& frame) {
    const cpu::SetAccess& set = access(index);
    if (!set.plain() || !can_exceed_depth(info(geometry().format))) return set.plain();
    std::atomic<bool> all{true};
    for_strips({0, 0, frame.cols, frame.rows}, set.channels(), 0, [&](const Rect& strip, cpu::Scratch&) {
      if (!set.holds_values(frame(cpu::cv_rect(strip)))) all = false;
    });
    return all;
  }

  void blur(int index, const cv::Mat& values, cv::Mat& blurred, int border) const {
    const GaussianPlan::Axes& axes = plan_.sets[index];
    cv::GaussianBlur(values, blurred, {axes.x.taps, axes.y.taps}, axes.x.sigma, sigma_y_[index], border);
  }

  /// The same arithmetic, with any weights: every sum is below 2^48, and so exact in float64.
  void sum(int index, const cv::Mat& values, cv::Mat& blurred, cpu::Scratch& scratch) const {
    const int bits = 2 * plan_.fraction_bits;
    cv::Mat sums = cpu::sized(scratch.sums, values.size(), CV_MAKETYPE(CV_64F, values.channels()));
    cv::sepFilter2D(values, sums, CV_64F, row_[index], column_[index]);
    sums.convertTo(sums, CV_64F, std::ldexp(1, -bits), std::ldexp(1, -bits - 2));  // a little more, so that ½ rounds up
    sums.convertTo(blurred, blurred.depth());
  }

  GaussianPlan plan_;
  std::array<cv::Mat, 3> row_, column_;
  std::array<double, 3> sigma_y_{};
};

}  // namespace

Result<std::unique_ptr<Filter>> make_gaussian_cpu(GaussianPlan plan) {
  return std::unique_ptr<Filter>(std::make_unique<CpuGaussian>(std::move(plan)));
}

}  // namespace cudavision::detail
