// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cstring>
#include <opencv2/imgproc.hpp>

#include "kernels/cpu/filter.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/integral/plan.hpp"

namespace cudavision::integral {
namespace {

/// The rows of one call of cv::integral. Its int32 sums of bytes and its float64 sums of deeper samples and of squares
/// are
/// exact for 32 rows of 16384 samples, and the sums of a strip stay in the cache.
constexpr int strip_rows = 32;

class CpuIntegral final : public Integral {
 public:
  explicit CpuIntegral(Plan plan)
      : Integral(Backend::cpu, plan.tables), plan_(std::move(plan)), work_(plan_.tables.size()) {
    const FormatInfo& format = info(plan_.geometry.format);
    for (int i = 0; i < format.set_count; ++i)
      access_[i] = cpu::SetAccess(format, format.sets[i], Border::replicate, {}, true);
  }

 private:
  /// Memory for the computation of one table, reused from frame to frame.
  struct Work {
    std::array<cpu::Scratch, 3> scratch;
    std::array<cv::Mat, 3> samples;
    cv::Mat luma, sums, squares;
    std::vector<std::uint32_t> carry32;
    std::vector<std::uint64_t> carry64;
  };

  Status compute(const Image& src, const std::vector<Plane>& tables, Queue) override {
    double samples = 0;
    for (const TableInfo& table : plan_.tables) samples += double(table.width) * table.height;
    cpu::for_ranges(int(tables.size()), cpu::picture_work(samples, 0.7), [&](int begin, int end) {
      for (int i = begin; i < end; ++i) fill(src, i, tables[std::size_t(i)]);
    });
    return {};
  }

  /// The samples of one component in `rect`, as a matrix with one channel.
  cv::Mat component(const Image& src, const TableSource& from, const Rect& rect, cpu::Scratch& scratch,
                    cv::Mat& store) const {
    const ChannelSet& set = info(plan_.geometry.format).sets[from.set];
    const cv::Mat values = access_[from.set].read(cpu::set_mat(src, set), rect, scratch);
    if (values.channels() == 1) return values;
    int channel = 0;
    for (int c = 0; c < from.channel; ++c) channel += set.roles[c] != Role::other;
    cv::Mat one = cpu::sized(store, values.size(), values.depth());
    cv::extractChannel(values, one, channel);
    return one;
  }

  /// The samples of a table in `rect`.
  cv::Mat samples(const Image& src, const TableSource& source, const Rect& rect, Work& work) const {
    if (!source.luma) return component(src, source, rect, work.scratch[0], work.samples[0]);
    const FormatInfo& format = info(plan_.geometry.format);
    constexpr Role rgb[] = {Role::red, Role::green, Role::blue};
    cv::Mat parts[3];
    for (int c = 0; c < 3; ++c)
      parts[c] = component(src, find_role(format, rgb[c]), rect, work.scratch[c], work.samples[c]);
    cv::Mat luma = cpu::sized(work.luma, parts[0].size(), parts[0].depth());
    cpu::make_luma(parts[0], parts[1], parts[2], luma);
    return luma;
  }

  /// Fills table `index`, strip by strip.
  void fill(const Image& src, int index, const Plane& table) {
    Work& work = work_[index];
    const TableInfo& entry = plan_.tables[index];
    const int columns = entry.width - plan_.padded, rows = entry.height - plan_.padded;
    work.carry32.assign(columns + 1, 0);
    work.carry64.assign(columns + 1, 0);
    auto* row = static_cast<std::uint8_t*>(table.data);
    if (plan_.padded) {
      std::memset(row, 0, std::size_t(entry.width) * entry.entry_bytes());
      row += table.pitch;
    }
    for (int y = 0; y < rows; y += strip_rows) {
      const Rect rect{0, y, columns, std::min(strip_rows, rows - y)};
      const cv::Mat values = samples(src, plan_.sources[index], rect, work);
      const bool bytes = values.depth() == CV_8U;
      if (entry.squared)
        cv::integral(values, work.sums, work.squares, bytes ? CV_32S : CV_64F, CV_64F);
      else
        cv::integral(values, work.sums, bytes ? CV_32S : CV_64F);
      if (entry.squared || !bytes)
        add_strip<double>(entry.squared ? work.squares : work.sums, entry, work, row, table.pitch);
      else
        add_strip<int>(work.sums, entry, work, row, table.pitch);
      row += rect.height * table.pitch;
    }
  }

  /// Writes the rows of a strip, in the type of the table.
  template <typename Sum>
  void add_strip(const cv::Mat& sums, const TableInfo& entry, Work& work, std::uint8_t* out,
                 std::ptrdiff_t pitch) const {
    switch (entry.type) {
      case SumType::u32:
        return add_rows<Sum, std::uint32_t>(sums, work.carry32, out, pitch);
      case SumType::f32:
        return add_rows<Sum, float>(sums, work.carry64, out, pitch);
      case SumType::f64:
        return add_rows<Sum, double>(sums, work.carry64, out, pitch);
      case SumType::u64:
      case SumType::automatic:  // a plan never has this type
        return add_rows<Sum, std::uint64_t>(sums, work.carry64, out, pitch);
    }
  }

  /// Writes the sums of a strip plus the row of the table above it (`carry`). Then `carry` becomes the last row of the
  /// strip.
  template <typename Sum, typename Out, typename Carry>
  void add_rows(const cv::Mat& sums, std::vector<Carry>& carry, std::uint8_t* out, std::ptrdiff_t pitch) const {
    const int first = plan_.padded ? 0 : 1, count = sums.cols - first;
    for (int y = 1; y < sums.rows; ++y, out += pitch) {
      const Sum* const from = sums.ptr<Sum>(y) + first;
      const Carry* const above = carry.data() + first;
      Out* const to = reinterpret_cast<Out*>(out);
      for (int x = 0; x < count; ++x) to[x] = Out(Carry(from[x]) + above[x]);
    }
    const Sum* const last = sums.ptr<Sum>(sums.rows - 1);
    for (int x = 0; x < sums.cols; ++x) carry[x] += Carry(last[x]);
  }

  const Plan plan_;
  std::array<cpu::SetAccess, max_sets> access_;
  std::vector<Work> work_;
};

}  // namespace

Result<std::unique_ptr<Integral>> make_cpu(Plan plan) {
  return std::unique_ptr<Integral>(std::make_unique<CpuIntegral>(std::move(plan)));
}

}  // namespace cudavision::integral
