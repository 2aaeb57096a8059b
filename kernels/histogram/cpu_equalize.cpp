// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <opencv2/core.hpp>

#include "kernels/cpu/filter.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/histogram/arithmetic.hpp"
#include "kernels/histogram/counting.hpp"

namespace cudavision::histogram {
namespace {

class CpuEqualize final : public cpu::CpuFilter {
 public:
  CpuEqualize(const Plan& plan, std::unique_ptr<Counting> histogram)
      : CpuFilter(plan.geometry, Border::replicate, {}, true),
        rgb_(plan.rgb_luma),
        weights_(plan.weights),
        histogram_(std::move(histogram)),
        table_(1, plan.bins, plan.bins == 256 ? CV_8U : CV_16U) {}

 private:
  Status begin(const Image& src, const Region& region, Queue queue) override {
    if (Status status = histogram_->submit(src, region, queue); !status.ok()) return status;
    src_ = src;
    const std::uint32_t* counts = histogram_->latest();
    std::uint32_t total = 0, lowest = 0, below = 0;
    for (int v = 0; v < table_.cols; ++v) {
      if (lowest == 0) lowest = counts[v];
      total += counts[v];
    }
    for (int v = 0; v < table_.cols; ++v) {
      below += counts[v];
      const int to = equalized(v, below, lowest, total, table_.cols - 1);
      if (table_.depth() == CV_8U)
        table_.at<std::uint8_t>(v) = std::uint8_t(to);
      else
        table_.at<std::uint16_t>(v) = std::uint16_t(to);
    }
    return {};
  }

  void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) override {
    const ChannelSet& set = info(geometry().format).sets[index];
    const auto changes = [](Role role) { return is_color(role) && !is_chroma(role); };
    const bool copied = std::none_of(set.roles.begin(), set.roles.begin() + set.channels, changes);
    for_strips(rect, set.channels, 0, 0.5, [&](const Rect& strip, cpu::Scratch&) {
      const cv::Rect at = cpu::cv_rect(strip);
      if (copied)
        access(index).copy(frame(at), out(at));
      else if (!rgb_ && set.channels == 1 && frame.depth() == CV_8U)
        cv::LUT(frame(at), table_, out(at));
      else if (frame.depth() == CV_8U)
        map<std::uint8_t>(set, frame, out, strip);
      else
        map<std::uint16_t>(set, frame, out, strip);
    });
  }

  template <typename T>
  void map(const ChannelSet& set, const cv::Mat& frame, cv::Mat& out, const Rect& rect) const {
    const FormatInfo& format = info(geometry().format);
    const int shift = format.shift, max_value = format.max_value();
    const cpu::LumaRows rows(src_, weights_);
    std::vector<int> luma(std::size_t(rect.width));
    const T* table = table_.ptr<T>();
    for (int y = rect.y; y < rect.y + rect.height; ++y) {
      const T* in = frame.ptr<T>(y);
      T* to = out.ptr<T>(y);
      if (rgb_) rows.read(rect.x, y, rect.width, luma.data());
      for (int x = rect.x; x < rect.x + rect.width; ++x) {
        const int now = luma[std::size_t(x - rect.x)], change = rgb_ ? table[now] - now : 0;
        for (int c = 0; c < set.channels; ++c) {
          const int at = x * set.channels + c;
          if (set.roles[c] == Role::luma)
            to[at] = T(table[sample_of(in[at], shift, max_value)] << shift);
          else if (is_color(set.roles[c]))
            to[at] = T(std::clamp(sample_of(in[at], shift, max_value) + change, 0, max_value) << shift);
          else if (set.roles[c] != Role::other)
            to[at] = in[at];
        }
      }
    }
  }

  const bool rgb_;
  const LumaWeights weights_;
  const std::unique_ptr<Counting> histogram_;
  cv::Mat table_;
  Image src_;
};

}  // namespace

Result<std::unique_ptr<Filter>> make_equalize_cpu(Plan plan) {
  auto histogram = make_cpu(plan);
  if (!histogram.ok()) return histogram.error();
  return std::unique_ptr<Filter>(std::make_unique<CpuEqualize>(plan, std::move(histogram.value())));
}

}  // namespace cudavision::histogram
