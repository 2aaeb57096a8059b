// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of luma, computed a strip of rows at a time on OpenCV's threads. A sum is a dot product with ones, which OpenCV
// computes several times faster than sum() and norm(). All sums of a strip are integers below 2^53, so OpenCV's doubles
// are exact.
#include <algorithm>
#include <array>
#include <mutex>
#include <opencv2/core.hpp>

#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/histogram/measuring.hpp"

namespace cudavision::histogram {
namespace {

/// Rows of a strip, chosen so that its luma fits in the cache.
constexpr int strip_rows = 16;

class CpuSharpness final : public MeasuringPlan {
 public:
  CpuSharpness(const SharpnessParams& params, const Geometry& geometry)
      : MeasuringPlan(params, geometry, Backend::cpu),
        weights_(luma_weights(params.luma)),
        results_(std::size_t(params.history)),
        type_(info(geometry.format).sample_bytes() == 1 ? CV_8U : CV_16U),
        ones_(strip_rows, geometry.width, type_, cv::Scalar(1)) {
    if (params.compare) kept_.create(geometry.height, geometry.width, type_);
  }

 private:
  using Sums = std::array<std::uint64_t, sum_count>;

  const std::uint64_t* sums_of(int slot) const override { return results_[std::size_t(slot)].data(); }

  Status measure(const Measuring& work, Queue) override {
    Sums& sums = results_[std::size_t(work.slot)];
    sums.fill(0);
    for (const Rect& piece : work.pieces) for_strips(piece, [&](const Rect& strip) { sum_strip(work, strip, sums); });
    // If the pieces are the whole frame, each strip keeps its luma.
    if (work.keep && !work.whole)
      for_strips(frame()[0], [&](const Rect& strip) { store_luma(luma(work.src, strip), strip); });
    return {};
  }

  template <typename Work>
  static void for_strips(const Rect& rect, Work work) {
    const int strips = (rect.height + strip_rows - 1) / strip_rows;
    cpu::for_ranges(strips, cpu::picture_work(double(rect.width) * rect.height, 0.3), [&](int begin, int end) {
      for (int strip = begin; strip < end; ++strip) {
        const int y = strip * strip_rows;
        work(Rect{rect.x, rect.y + y, rect.width, std::min(strip_rows, rect.height - y)});
      }
    });
  }

  void sum_strip(const Measuring& work, const Rect& strip, Sums& sums) {
    // The strip with its neighbours to the right and below, as far as they are in the picture.
    const int width = std::min(strip.width + 1, geometry().width - strip.x),
              height = std::min(strip.height + 1, geometry().height - strip.y);
    const cv::Mat all = luma(work.src, {strip.x, strip.y, width, height}),
                  here = all(cv::Rect(0, 0, strip.width, strip.height));
    Sums added{};
    cv::Mat scratch;
    const auto add = [&](LumaSum which, double sum) { added[which] += std::uint64_t(sum); };
    const auto add_differences = [&](LumaSum which, const cv::Mat& one, const cv::Mat& other) {
      cv::absdiff(one, other, scratch);
      add(which, scratch.dot(ones(scratch)));
    };
    add(sum_luma, here.dot(ones(here)));
    add(sum_squares, here.dot(here));
    if (width > 1)
      add_differences(sum_gradients, all(cv::Rect(1, 0, width - 1, strip.height)),
                      all(cv::Rect(0, 0, width - 1, strip.height)));
    if (height > 1)
      add_differences(sum_gradients, all(cv::Rect(0, 1, strip.width, height - 1)),
                      all(cv::Rect(0, 0, strip.width, height - 1)));
    if (work.compare) add_differences(sum_differences, here, stored_luma(strip));
    if (work.keep && work.whole) store_luma(here, strip);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t i = 0; i < added.size(); ++i) sums[i] += added[i];
  }

  /// A matrix of ones with the size of `like`.
  cv::Mat ones(const cv::Mat& like) const { return ones_(cv::Rect(0, 0, like.cols, like.rows)); }
  cv::Mat stored_luma(const Rect& rect) const { return kept_(cv::Rect(rect.x, rect.y, rect.width, rect.height)); }
  void store_luma(const cv::Mat& luma, const Rect& rect) const { luma.copyTo(stored_luma(rect)); }

  /// The luma of a rectangle: a view of the picture if its luma bytes are contiguous, or a copy.
  cv::Mat luma(const Image& src, const Rect& rect) const {
    const ChannelView direct = channel_of(src, Role::luma);
    if (type_ == CV_8U && direct.data && direct.step == 1)
      return cv::Mat(rect.height, rect.width, CV_8U, direct.at(rect.x, rect.y), std::size_t(direct.pitch));
    const cpu::LumaRows rows(src, weights_);
    cv::Mat numbers(rect.height, rect.width, CV_32S), copied;
    for (int y = 0; y < rect.height; ++y) rows.read(rect.x, rect.y + y, rect.width, numbers.ptr<int>(y));
    numbers.convertTo(copied, type_);
    return copied;
  }

  const LumaWeights weights_;
  std::vector<Sums> results_;
  const int type_;
  const cv::Mat ones_;
  cv::Mat kept_;  ///< the luma of the previous frame
  std::mutex mutex_;
};

}  // namespace

Result<std::unique_ptr<Sharpness>> make_sharpness_cpu(const SharpnessParams& params, const Geometry& geometry) {
  return std::unique_ptr<Sharpness>(std::make_unique<CpuSharpness>(params, geometry));
}

}  // namespace cudavision::histogram
