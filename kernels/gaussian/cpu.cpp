// SPDX-License-Identifier: LGPL-2.1-or-later
#include <atomic>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "kernels/core/sample.hpp"
#include "kernels/cpu/filter.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/gaussian/plan.hpp"

namespace cudavision::gaussian {
namespace {

// Before version 4.6, cv::GaussianBlur clipped 16-bit values (OpenCV issue 20121) or lost the picture (issue 20792).
constexpr bool exact_16u = CV_VERSION_MAJOR * 100 + CV_VERSION_MINOR >= 406;

static_assert(int(Border::reflect_101) == cv::BORDER_REFLECT_101 && int(Border::reflect) == cv::BORDER_REFLECT &&
                  int(Border::replicate) == cv::BORDER_REPLICATE && int(Border::constant) == cv::BORDER_CONSTANT,
              "a Border becomes a cv::BorderTypes of the same number");

/// Calls cv::GaussianBlur where OpenCV computes the plan's weights, and cv::sepFilter2D in float64 elsewhere. Both are
/// exact.
class CpuGaussian final : public cpu::CpuFilter {
 public:
  explicit CpuGaussian(Plan plan)
      : CpuFilter(plan.geometry, plan.border, plan.border_value, plan.filter_alpha), plan_(std::move(plan)) {
    for (int i = 0; i < info(plan_.geometry.format).set_count; ++i) {
      const Plan::Axes& axes = plan_.sets[i];
      column_[i] = cv::Mat(std::vector<double>(axes.y.weights.begin(), axes.y.weights.end()), true);
      row_[i] = cv::Mat(std::vector<double>(axes.x.weights.begin(), axes.x.weights.end()), true);
      sigma_y_[i] = sigma_y(axes);
    }
  }

 private:
  /// The vertical sigma to pass to cv::GaussianBlur, which reads 0 as "the same as the horizontal sigma". Returns 0
  /// where OpenCV cannot compute this axis: it uses its table of small kernels only if both sigmas are 0.
  static double sigma_y(const Plan::Axes& axes) {
    if (axes.y.sigma > 0 || axes.x.sigma <= 0) return axes.y.sigma;
    if (axes.y.taps == 1) return 1;
    return axes.y.taps > 9 ? 0.15 * axes.y.taps + 0.35 : 0;
  }

  /// Whether cv::GaussianBlur uses the plan's weights.
  bool in_opencv(int index) const {
    const Plan::Axes& axes = plan_.sets[index];
    return (plan_.fraction_bits == 8 || exact_16u) && (sigma_y_[index] > 0 || axes.x.sigma <= 0);
  }

  void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) override {
    const cpu::SetAccess& set = access(index);
    const bool whole = rect.width == frame.cols && rect.height == frame.rows;
    // OpenCV receives the number of the border, so this must be false for each border that cv::GaussianBlur lacks.
    const bool border_in_opencv =
        plan_.border == Border::constant ? set.border_value() == cv::Scalar() : plan_.border != Border::wrap;
    if (whole && border_in_opencv && in_opencv(index) && holds_values(index, frame)) {
      blur_frame(index, frame, out);
      for_strips(rect, set.channels(), 0, 0.1, [&](const Rect& strip, cpu::Scratch&) {
        const cv::Rect at = cpu::cv_rect(strip);
        set.write(out(at), frame(at), out(at));
      });
      return;
    }
    const int rx = plan_.sets[index].x.radius(), ry = plan_.sets[index].y.radius();
    for_strips(rect, set.channels(), 2 * ry, time_of_sample(index), [&](const Rect& strip, cpu::Scratch& scratch) {
      const cv::Rect at = cpu::cv_rect(strip), inner(rx, ry, strip.width, strip.height);
      const Rect window{strip.x - rx, strip.y - ry, strip.width + 2 * rx, strip.height + 2 * ry};
      const cv::Mat values = set.read(frame, window, scratch);
      cv::Mat blurred;
      if (in_opencv(index)) {
        cv::Mat all = cpu::sized(scratch.result, values.size(), values.type());
        // `values` also holds the samples outside the border.
        blur(index, values, all, cv::BORDER_REPLICATE | cv::BORDER_ISOLATED);
        blurred = all(inner);
      } else {
        blurred = set.target(out(at), scratch);
        sum(index, values(inner), blurred, scratch);
      }
      set.write(blurred, frame(at), out(at));
    });
  }

  /// Whether the stored words of the frame are sample values, so that OpenCV can read the frame directly.
  bool holds_values(int index, const cv::Mat& frame) {
    const cpu::SetAccess& set = access(index);
    if (!set.plain() || !can_exceed_depth(info(geometry().format))) return set.plain();
    std::atomic<bool> all{true};
    for_strips({0, 0, frame.cols, frame.rows}, set.channels(), 0, 0.1, [&](const Rect& strip, cpu::Scratch&) {
      if (!set.holds_values(frame(cpu::cv_rect(strip)))) all = false;
    });
    return all;
  }

  /// The approximate time per sample, in nanoseconds.
  double time_of_sample(int index) const { return 0.2 + 0.05 * (plan_.sets[index].x.taps + plan_.sets[index].y.taps); }

  /// Blurs the whole frame with OpenCV's weights, and uses OpenCV's threads if that is worthwhile.
  void blur_frame(int index, const cv::Mat& frame, cv::Mat& out) const {
    const auto blur_all = [&] { blur(index, frame, out, cv::BorderTypes(plan_.border)); };
    const double samples = double(frame.total()) * frame.channels();
    if (cpu::parts_of(cpu::picture_work(samples, time_of_sample(index)), frame.rows) > 1)
      blur_all();
    else
      cpu::in_one_thread(blur_all);
  }
  /// Blurs with OpenCV's weights.
  void blur(int index, const cv::Mat& values, cv::Mat& blurred, int border) const {
    const Plan::Axes& axes = plan_.sets[index];
    cv::GaussianBlur(values, blurred, {axes.x.taps, axes.y.taps}, axes.x.sigma, sigma_y_[index], border);
  }

  /// Blurs with any weights, in the same arithmetic. Every sum is below 2^48 and is therefore exact in float64.
  void sum(int index, const cv::Mat& values, cv::Mat& blurred, cpu::Scratch& scratch) const {
    const int bits = 2 * plan_.fraction_bits;
    cv::Mat sums = cpu::sized(scratch.sums, values.size(), CV_MAKETYPE(CV_64F, values.channels()));
    cv::sepFilter2D(values, sums, CV_64F, row_[index], column_[index]);
    // The added quarter of a step makes ½ round up.
    sums.convertTo(sums, CV_64F, std::ldexp(1, -bits), std::ldexp(1, -bits - 2));
    sums.convertTo(blurred, blurred.depth());
  }

  Plan plan_;
  std::array<cv::Mat, max_sets> row_, column_;  ///< weights of each channel set, for cv::sepFilter2D
  std::array<double, max_sets> sigma_y_{};      ///< for cv::GaussianBlur; see sigma_y()
};

}  // namespace

Result<std::unique_ptr<Filter>> make_cpu(Plan plan) {
  return std::unique_ptr<Filter>(std::make_unique<CpuGaussian>(std::move(plan)));
}

}  // namespace cudavision::gaussian
