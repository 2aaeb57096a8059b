// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cmath>
#include <opencv2/core.hpp>

#include "kernels/cpu/filter.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {
namespace {

/// The base of both filters.
class CpuLocal : public cpu::CpuFilter {
 public:
  explicit CpuLocal(Plan plan) : CpuFilter(plan.geometry, Border::replicate, {}, false), plan_(std::move(plan)) {}

 protected:
  /// Whether channel `value` of a set's values is filtered.
  bool filtered(int set, int value) const {
    return is_color(info(plan_.geometry.format).sets[set].roles[access(set).stored_channel(value)]);
  }

  const Plan plan_;
};

/// The filters that use summed-area tables.
class CpuBox final : public CpuLocal {
 public:
  CpuBox(Plan plan, std::unique_ptr<integral::Integral> integral)
      : CpuLocal(std::move(plan)), integral_(std::move(integral)) {
    for (const integral::TableInfo& table : integral_->tables()) {
      const std::ptrdiff_t pitch = std::ptrdiff_t(table.width) * table.entry_bytes();
      memory_.emplace_back(std::size_t(pitch) * table.height);
      tables_.push_back({memory_.back().data(), pitch});
    }
  }

 private:
  Status begin(const Image& src, const Region&, Queue queue) override { return integral_->submit(src, tables_, queue); }

  void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) override {
    const cpu::SetAccess& set = access(index);
    const Window window = window_of(plan_, index, box());
    for_strips(rect, set.channels(), 0, 3, [&](const Rect& strip, cpu::Scratch& scratch) {
      const cv::Rect at = cpu::cv_rect(strip);
      cv::Mat result = set.target(out(at), scratch);
      for (int y = 0; y < strip.height; ++y)
        for (int c = 0; c < set.channels(); ++c) {
          if (!filtered(index, c)) continue;
          if (result.depth() == CV_8U)
            row<std::uint8_t>(index, c, window, strip, y, result);
          else
            row<std::uint16_t>(index, c, window, strip, y, result);
        }
      set.write(result, frame(at), out(at));
    });
  }

  template <typename T>
  void row(int index, int c, const Window& window, const Rect& strip, int y, cv::Mat& result) const {
    T* const out = result.ptr<T>(y) + c;
    const int step = result.channels();
    const int table = plan_.table_of[index][access(index).stored_channel(c)];
    if (plan_.fills(index)) {
      for (int x = 0; x < strip.width; ++x) out[x * step] = T(info(plan_.geometry.format).neutral_chroma());
    } else if (plan_.tables.tables[table].type == integral::SumType::u32) {
      box_row<T, std::uint32_t>(window, table, strip, strip.y + y, out, step);
    } else {
      box_row<T, std::uint64_t>(window, table, strip, strip.y + y, out, step);
    }
  }

  template <typename Sum>
  const Sum* table_row(int table, int y) const {
    return reinterpret_cast<const Sum*>(static_cast<const std::uint8_t*>(tables_[table].data) +
                                        y * tables_[table].pitch);
  }

  template <typename T, typename Sum>
  void box_row(const Window& window, int table, const Rect& strip, int y, T* out, int step) const {
    const int width = plan_.tables.tables[table].width - 1, height = plan_.tables.tables[table].height - 1;
    int y0, y1;
    window.y.window(y, height, y0, y1);
    const Sum *top = table_row<Sum>(table, y0), *bottom = table_row<Sum>(table, y1);
    const auto each = [&, axis = window.x](auto value) {
      for (int i = 0, x0 = 0, x1 = 0; i < strip.width; ++i) {
        const int x = strip.x + i;
        if (axis.side == 0 || i == 0 || x >= x1) axis.window(x, width, x0, x1);
        const Sum sum = (bottom[x1] - bottom[x0]) - (top[x1] - top[x0]);  // Sum may wrap; the difference is still exact
        out[i * step] = T(value(x, x0, x1, sum, (x1 - x0) * (y1 - y0)));
      }
    };
    switch (plan_.operation) {
      case Operation::threshold: {
        const Sum *here = table_row<Sum>(table, y), *below = table_row<Sum>(table, y + 1);
        const int max = info(plan_.geometry.format).max_value();
        return each([&](int x, int, int, Sum sum, int count) {
          const Sum sample = (below[x + 1] - below[x]) - (here[x + 1] - here[x]);
          return double(std::int64_t(sample) * count) < double(sum) * plan_.factor ? 0 : max;
        });
      }
      case Operation::deviation: {
        const auto *square_top = table_row<std::uint64_t>(table + plan_.squares, y0),
                   *square_bottom = table_row<std::uint64_t>(table + plan_.squares, y1);
        return each([&](int, int x0, int x1, Sum sum, int count) {
          const double squares = double((square_bottom[x1] - square_bottom[x0]) - (square_top[x1] - square_top[x0]));
          const double mean = double(sum) / count;
          return cvRound(std::sqrt(std::max(squares / count - mean * mean, 0.0)));
        });
      }
      case Operation::box_mean:
      case Operation::pixelate:
      case Operation::nlm:  // computed by CpuNlm
        return each([](int, int, int, Sum sum, int count) { return cvRound(double(sum) / count); });
    }
  }

  std::unique_ptr<integral::Integral> integral_;
  std::vector<std::vector<std::uint8_t>> memory_;
  std::vector<Plane> tables_;
};

/// Non-local means. For each offset, a table of squared differences gives the distances of all patches.
class CpuNlm final : public CpuLocal {
 public:
  using CpuLocal::CpuLocal;

 private:
  void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) override {
    const cpu::SetAccess& set = access(index);
    const Plan::Radius radius = plan_.radius[index], search = plan_.search[index];
    const double nanoseconds = 3.0 * (2 * search.x + 1) * (2 * search.y + 1);
    for_strips(rect, set.channels(), 2 * radius.y, nanoseconds, [&](const Rect& strip, cpu::Scratch& scratch) {
      const cv::Rect at = cpu::cv_rect(strip), whole(0, 0, frame.cols, frame.rows);
      const cv::Rect window = cv::Rect(at.x - radius.x - search.x, at.y - radius.y - search.y,
                                       at.width + 2 * (radius.x + search.x), at.height + 2 * (radius.y + search.y)) &
                              whole;
      const cv::Mat values = set.read(frame, {window.x, window.y, window.width, window.height}, scratch);
      cv::Mat result = set.target(out(at), scratch);
      for (int c = 0; c < set.channels(); ++c) {
        if (!filtered(index, c)) continue;
        cv::Mat one, denoised;
        cv::extractChannel(values, one, c);
        one.convertTo(one, CV_32S);
        denoise(index, one, window, at, whole, denoised);
        denoised.convertTo(denoised, result.depth());
        cv::insertChannel(denoised, result, c);
      }
      set.write(result, frame(at), out(at));
    });
  }

  /// `values` holds the samples of the rectangle `window`; `result` receives the samples of the rectangle `at`, in
  /// float64.
  void denoise(int index, const cv::Mat& values, const cv::Rect& window, const cv::Rect& at, const cv::Rect& whole,
               cv::Mat& result) const {
    const Plan::Radius radius = plan_.radius[index], search = plan_.search[index];
    cv::Mat weights = cv::Mat::zeros(at.size(), CV_64F);
    result = cv::Mat::zeros(at.size(), CV_64F);
    std::vector<std::uint64_t> table;
    cv::Mat distances(1, at.width, CV_32F);
    for (int dy = -search.y; dy <= search.y; ++dy) {
      for (int dx = -search.x; dx <= search.x; ++dx) {
        // Samples for which the sample at the offset is also inside the frame.
        const cv::Rect both = whole & (whole - cv::Point(dx, dy));
        const cv::Rect points = at & both;
        const cv::Rect area =
            cv::Rect(at.x - radius.x, at.y - radius.y, at.width + 2 * radius.x, at.height + 2 * radius.y) & both;
        if (points.empty()) continue;
        const std::size_t stride = std::size_t(area.width) + 1;
        table.assign(stride * (area.height + 1), 0);
        for (int y = 0; y < area.height; ++y) {
          const int* const here = values.ptr<int>(area.y + y - window.y) + area.x - window.x;
          const int* const there = values.ptr<int>(area.y + y + dy - window.y) + area.x + dx - window.x;
          const std::uint64_t* const above = &table[y * stride];
          std::uint64_t* const line = &table[(y + 1) * stride];
          std::uint64_t sum = 0;
          for (int x = 0; x < area.width; ++x) {
            const std::int64_t difference = here[x] - there[x];
            line[x + 1] = above[x + 1] + (sum += std::uint64_t(difference * difference));
          }
        }
        for (int y = points.y; y < points.y + points.height; ++y) {
          const int y0 = std::max(y - radius.y, area.y), y1 = std::min(y + radius.y + 1, area.y + area.height);
          const std::uint64_t *top = &table[(y0 - area.y) * stride], *bottom = &table[(y1 - area.y) * stride];
          cv::Mat line = distances.colRange(0, points.width);
          float* const distance = line.ptr<float>();
          for (int i = 0; i < points.width; ++i) {
            const int x = points.x + i, x0 = std::max(x - radius.x, area.x) - area.x,
                      x1 = std::min(x + radius.x + 1, area.x + area.width) - area.x;
            const double sum = double((bottom[x1] - bottom[x0]) - (top[x1] - top[x0]));
            distance[i] = float(sum * plan_.scale / ((x1 - x0) * (y1 - y0)));
          }
          cv::exp(line, line);
          const int* const there = values.ptr<int>(y + dy - window.y) + points.x + dx - window.x;
          double* const sums = result.ptr<double>(y - at.y) + points.x - at.x;
          double* const counts = weights.ptr<double>(y - at.y) + points.x - at.x;
          for (int i = 0; i < points.width; ++i) {
            sums[i] += double(distance[i]) * there[i];
            counts[i] += distance[i];
          }
        }
      }
    }
    cv::divide(result, weights, result);
  }
};

}  // namespace

Result<std::unique_ptr<Filter>> make_cpu(Plan plan) {
  if (plan.operation == Operation::nlm) return std::unique_ptr<Filter>(std::make_unique<CpuNlm>(std::move(plan)));
  auto integral = integral::make_cpu(plan.tables);
  if (!integral.ok()) return integral.error();
  return std::unique_ptr<Filter>(std::make_unique<CpuBox>(std::move(plan), std::move(integral.value())));
}

}  // namespace cudavision::local
