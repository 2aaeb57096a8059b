// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <mutex>
#include <opencv2/core.hpp>

#include "kernels/core/sample.hpp"
#include "kernels/cpu/filter.hpp"
#include "kernels/histogram/histogram.hpp"

namespace cudavision::detail {
namespace {

/// One row of samples of one channel.
template <typename T>
struct Channel {
  const T* row;
  int step, shift, max_value;
  int operator[](int x) const { return sample_of(row[x * step], shift, max_value); }
};

/// A channel of a frame: the plane it is in and its place there.
struct Place {
  const unsigned char* data = nullptr;
  std::ptrdiff_t pitch = 0;
  int step = 1, shift = 0, max_value = 0;

  template <typename T>
  Channel<T> row(int y) const {
    return {reinterpret_cast<const T*>(data + y * pitch), step, shift, max_value};
  }
};

Place place_of(const Image& image, Role role) {
  const FormatInfo& format = info(image.geometry.format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    for (int c = 0; c < set.channels; ++c)
      if (set.roles[c] == role)
        return {static_cast<const unsigned char*>(image.planes[set.plane].data) + c * format.sample_bytes(),
                image.planes[set.plane].pitch, set.channels, format.shift, format.max_value()};
  }
  return {};
}

constexpr int rows_at_once = 16;
constexpr int spread = 4;  ///< tables that neighbouring 8-bit samples count in, so that equal ones do not wait for each other

class CpuHistogram final : public Histogram {
 public:
  explicit CpuHistogram(HistogramPlan given)
      : Histogram(std::move(given), Backend::cpu, true),
        sums_(std::size_t(plan().tables) * plan().fine),
        results_(words() * slots()),
        latest_(results_.data()) {}

  const std::uint32_t* latest() const override { return latest_; }

 private:
  const std::uint32_t* slot_counts(int slot) const override { return results_.data() + words() * slot; }

  Status count(const Image& src, const SetPieces& pieces, int slot, Queue) override {
    const FormatInfo& format = info(geometry().format);
    std::fill(sums_.begin(), sums_.end(), 0);
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      for (int c = 0; c < set.channels; ++c) {
        if (set.roles[c] == Role::other || plan().table_of[std::size_t(set.roles[c])] < 0) continue;
        const Place place = place_of(src, set.roles[c]);
        std::uint32_t* sums = sums_.data() + std::size_t(plan().table_of[std::size_t(set.roles[c])]) * plan().fine;
        if (format.sample_bytes() == 1)
          count_channel<std::uint8_t>(place, pieces[i], sums);
        else
          count_channel<std::uint16_t>(place, pieces[i], sums);
      }
    }
    if (plan().rgb_luma) {
      const std::array<Place, 3> rgb{place_of(src, Role::red), place_of(src, Role::green), place_of(src, Role::blue)};
      if (format.sample_bytes() == 1)
        count_luma<std::uint8_t>(rgb, pieces[0]);
      else
        count_luma<std::uint16_t>(rgb, pieces[0]);
    }
    gather(results_.data() + words() * slot);
    return {};
  }

  /// Calls count_row(y, begin, end, counters) for all rows of the pieces, on OpenCV's threads, each with `tables` × fine counters
  /// of its own, which are then added to `sums`.
  template <typename CountRow>
  void for_rows(const std::vector<Rect>& pieces, int tables, std::uint32_t* sums, CountRow count_row) {
    const std::size_t fine = std::size_t(plan().fine);
    for (const Rect& rect : pieces) {
      const int strips = (rect.height + rows_at_once - 1) / rows_at_once,
                jobs = std::clamp(strips, 1, std::max(1, cv::getNumThreads()));
      cv::parallel_for_(
          {0, jobs},
          [&](const cv::Range& range) {
            std::vector<std::uint32_t> counters(tables * fine);
            for (int y = int(std::int64_t(rect.height) * range.start / jobs); y < int(std::int64_t(rect.height) * range.end / jobs);
                 ++y)
              count_row(rect.y + y, rect.x, rect.x + rect.width, counters.data());
            const std::lock_guard<std::mutex> lock(mutex_);
            for (std::size_t i = 0; i < counters.size(); ++i) sums[i % fine] += counters[i];
          },
          jobs);
    }
  }

  template <typename T>
  void count_channel(const Place& place, const std::vector<Rect>& pieces, std::uint32_t* sums) {
    const FormatInfo& format = info(geometry().format);
    const int fine = plan().fine;
    if (sizeof(T) == 1) {
      for_rows(pieces, spread, sums, [&](int y, int begin, int end, std::uint32_t* counters) {
        const auto row = place.row<T>(y);
        int x = begin;
        for (; x + spread <= end; x += spread)
          for (int k = 0; k < spread; ++k) ++counters[k * 256 + row[x + k]];
        for (; x < end; ++x) ++counters[row[x]];
      });
      return;
    }
    const std::uint32_t bins = plan().by_value() ? 1 : std::uint32_t(fine);
    const int bin_shift = plan().by_value() ? 0 : format.depth;
    for_rows(pieces, 1, sums, [&](int y, int begin, int end, std::uint32_t* counters) {
      const auto row = place.row<T>(y);
      for (int x = begin; x < end; ++x) ++counters[std::uint32_t(row[x]) * bins >> bin_shift];
    });
  }

  template <typename T>
  void count_luma(const std::array<Place, 3>& rgb, const std::vector<Rect>& pieces) {
    const FormatInfo& format = info(geometry().format);
    const std::uint32_t bins = plan().by_value() ? 1 : std::uint32_t(plan().fine);
    const int bin_shift = plan().by_value() ? 0 : format.depth, max_value = format.max_value();
    for_rows(pieces, 1, sums_.data(), [&](int y, int begin, int end, std::uint32_t* counters) {
      const auto red = rgb[0].row<T>(y), green = rgb[1].row<T>(y), blue = rgb[2].row<T>(y);
      for (int x = begin; x < end; ++x)
        ++counters[std::uint32_t(luma_of(red[x], green[x], blue[x], plan().weights, max_value)) * bins >> bin_shift];
    });
  }

  void gather(std::uint32_t* result) {
    const int bins = plan().bins, depth = info(geometry().format).depth;
    latest_ = result;
    std::fill_n(result, words(), 0);
    for (std::size_t c = 0; c < plan().channels.size(); ++c) {
      const std::uint32_t* from = sums_.data() + std::size_t(plan().table[c]) * plan().fine;
      for (int entry = 0; entry < plan().fine; ++entry)
        result[c * bins + (plan().by_value() ? std::size_t(std::uint64_t(entry) * unsigned(bins) >> depth) : std::size_t(entry))] +=
            from[entry];
    }
  }

  std::mutex mutex_;
  std::vector<std::uint32_t> sums_, results_;
  const std::uint32_t* latest_;
};

class CpuEqualize final : public cpu::CpuFilter {
 public:
  CpuEqualize(const HistogramPlan& plan, std::unique_ptr<Histogram> histogram)
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
    const bool chroma = std::any_of(set.roles.begin(), set.roles.begin() + set.channels, is_chroma);
    for_strips(rect, set.channels, 0, [&](const Rect& strip, cpu::Scratch&) {
      const cv::Rect at = cpu::cv_rect(strip);
      if (chroma)
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
    const Place places[] = {place_of(src_, Role::red), place_of(src_, Role::green), place_of(src_, Role::blue)};
    const T* table = table_.ptr<T>();
    for (int y = rect.y; y < rect.y + rect.height; ++y) {
      const T* in = frame.ptr<T>(y);
      T* to = out.ptr<T>(y);
      const auto red = places[0].row<T>(rgb_ ? y : 0), green = places[1].row<T>(rgb_ ? y : 0),
                 blue = places[2].row<T>(rgb_ ? y : 0);
      for (int x = rect.x; x < rect.x + rect.width; ++x) {
        int change = 0;
        if (rgb_) {
          const int luma = luma_of(red[x], green[x], blue[x], weights_, max_value);
          change = table[luma] - luma;
        }
        for (int c = 0; c < set.channels; ++c) {
          const int at = x * set.channels + c;
          if (set.roles[c] == Role::luma)
            to[at] = T(table[sample_of(in[at], shift, max_value)] << shift);
          else if (set.roles[c] <= Role::blue)
            to[at] = T(std::clamp(in[at] + change, 0, max_value));
          else if (set.roles[c] != Role::other)
            to[at] = in[at];
        }
      }
    }
  }

  const bool rgb_;
  const LumaWeights weights_;
  const std::unique_ptr<Histogram> histogram_;
  cv::Mat table_;
  Image src_;
};

class CpuOverlay final : public HistogramOverlay {
 public:
  CpuOverlay(OverlayPlan plan, const Histogram& histogram)
      : HistogramOverlay(Backend::cpu),
        plan_(plan),
        histogram_(histogram),
        heights_(std::size_t(plan.channels) * plan.position.width) {}

 private:
  Status draw(const Image& picture, Queue) override {
    const FormatInfo& format = info(plan_.geometry.format);
    set_heights();
    for (int i = 0; i < format.set_count; ++i) {
      if (format.sample_bytes() == 1)
        draw_set<std::uint8_t>(format.sets[i], picture);
      else
        draw_set<std::uint16_t>(format.sets[i], picture);
    }
    return {};
  }

  void set_heights() {
    const int width = plan_.position.width;
    for (int c = 0; c < plan_.channels; ++c) {
      const std::uint32_t* counts = histogram_.latest() + std::size_t(c) * plan_.bins;
      const std::uint32_t largest = *std::max_element(counts, counts + plan_.bins);
      for (int x = 0; x < width; ++x) {
        const int begin = first_bin(x, plan_.bins, width), end = std::max(begin + 1, first_bin(x + 1, plan_.bins, width));
        heights_[std::size_t(c) * width + x] =
            std::uint16_t(bar_height(*std::max_element(counts + begin, counts + end), largest, plan_.position.height, plan_.log));
      }
    }
  }

  template <typename T>
  void draw_set(const ChannelSet& set, const Image& picture) const {
    const FormatInfo& format = info(plan_.geometry.format);
    const int shift = format.shift, max_value = format.max_value();
    const Rect rect = overlay_rect(plan_, set);
    const Plane& plane = picture.planes[set.plane];
    for (int y = rect.y; y < rect.y + rect.height; ++y) {
      T* row = reinterpret_cast<T*>(static_cast<unsigned char*>(plane.data) + y * plane.pitch);
      for (int x = rect.x; x < rect.x + rect.width; ++x) {
        const unsigned covering =
            covering_bars(plan_, heights_.data(), (x << set.shift_x) - plan_.position.x, (y << set.shift_y) - plan_.position.y);
        for (int c = 0; c < set.channels; ++c) {
          T& sample = row[x * set.channels + c];
          if (set.roles[c] < Role::alpha)
            sample = T(overlaid(plan_, sample_of(sample, shift, max_value), int(set.roles[c]), covering) << shift);
        }
      }
    }
  }

  const OverlayPlan plan_;
  const Histogram& histogram_;
  std::vector<std::uint16_t> heights_;
};

}  // namespace

Result<std::unique_ptr<Histogram>> make_histogram_cpu(HistogramPlan plan) {
  return std::unique_ptr<Histogram>(std::make_unique<CpuHistogram>(std::move(plan)));
}

Result<std::unique_ptr<Filter>> make_equalize_cpu(HistogramPlan plan) {
  auto histogram = make_histogram_cpu(plan);
  return std::unique_ptr<Filter>(std::make_unique<CpuEqualize>(plan, std::move(histogram.value())));
}

Result<std::unique_ptr<HistogramOverlay>> make_histogram_overlay_cpu(OverlayPlan plan, const Histogram& histogram) {
  return std::unique_ptr<HistogramOverlay>(std::make_unique<CpuOverlay>(plan, histogram));
}

}  // namespace cudavision::detail
