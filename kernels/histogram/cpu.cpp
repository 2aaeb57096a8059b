// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <cstring>
#include <mutex>
#include <opencv2/core.hpp>
#include <type_traits>

#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/threads.hpp"
#include "kernels/histogram/counting.hpp"

namespace cudavision::histogram {
namespace {

/// A task counts about this many rows.
constexpr int rows_at_once = 16;
constexpr int samples_at_once = 1024;
/// Number of tables. Adjacent bytes use different tables, so that equal bytes increment different counters.
constexpr int spread = 4;

class CpuHistogram final : public Counting {
 public:
  explicit CpuHistogram(Plan given)
      : Counting(std::move(given), Backend::cpu, true),
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
        const std::size_t table = std::size_t(plan().table_of[std::size_t(set.roles[c])]);
        count_rows(cpu::rows_of(src, set.roles[c]), pieces[i], sums_.data() + table * plan().fine);
      }
    }
    if (plan().rgb_luma) count_rows(cpu::LumaRows(src, plan().weights), pieces[0], sums_.data());
    gather(results_.data() + words() * slot);
    return {};
  }

  /// Calls count_row(y, begin, end, counters) for all rows of the pieces, on OpenCV's threads. Each thread has `tables`
  /// × fine counters, which are then added to `sums`.
  template <typename CountRow>
  void for_rows(const std::vector<Rect>& pieces, int tables, std::uint32_t* sums, CountRow count_row) {
    const std::size_t fine = std::size_t(plan().fine);
    for (const Rect& rect : pieces) {
      const int strips = std::max(1, (rect.height + rows_at_once - 1) / rows_at_once),
                jobs = cpu::parts_of(cpu::picture_work(double(rect.width) * rect.height, 0.3), strips);
      cpu::for_parts(jobs, [&](int job) {
        std::vector<std::uint32_t> counters(tables * fine);
        for (int y = cpu::begin_of_part(job, jobs, rect.height); y < cpu::begin_of_part(job + 1, jobs, rect.height);
             ++y)
          count_row(rect.y + y, rect.x, rect.x + rect.width, counters.data());
        const std::lock_guard<std::mutex> lock(mutex_);
        for (std::size_t i = 0; i < counters.size(); ++i) sums[i % fine] += counters[i];
      });
    }
  }

  /// Counts the samples of cpu::Rows or cpu::LumaRows.
  template <typename AnyRows>
  void count_rows(const AnyRows& rows, const std::vector<Rect>& pieces, std::uint32_t* sums) {
    const FormatInfo& format = info(geometry().format);
    const bool bytes = format.sample_bytes() == 1;
    const unsigned bins = plan().by_value() ? 1 : unsigned(plan().fine);
    const int bin_shift = plan().by_value() ? 0 : format.depth;
    for_rows(pieces, bytes ? spread : 1, sums, [&](int y, int begin, int end, std::uint32_t* counters) {
      int x = begin;
      if constexpr (std::is_same_v<AnyRows, cpu::Rows>) {
        if (bytes && rows.channel.step == 1) {  // one load for 8 samples
          for (const unsigned char* const row = rows.channel.at(0, y); x + 8 <= end; x += 8) {
            std::uint64_t eight;
            std::memcpy(&eight, row + x, sizeof eight);
#pragma GCC unroll 8
            for (int k = 0; k < 8; ++k) ++counters[k % spread * 256 + (eight >> 8 * k & 255)];
          }
        }
      }
      int samples[samples_at_once];
      for (int count; x < end; x += count) {
        count = std::min(samples_at_once, end - x);
        rows.read(x, y, count, samples);
        if (bytes) {
#pragma GCC unroll 4
          for (int i = 0; i < count; ++i) ++counters[unsigned(i) % spread * 256 + unsigned(samples[i])];
        } else {
          for (int i = 0; i < count; ++i) ++counters[unsigned(samples[i]) * bins >> bin_shift];
        }
      }
    });
  }

  /// Sums the entries of the tables into bins.
  void gather(std::uint32_t* result) {
    const int bins = plan().bins, depth = info(geometry().format).depth;
    latest_ = result;
    std::fill_n(result, words(), 0);
    for (std::size_t c = 0; c < plan().channels.size(); ++c) {
      const std::uint32_t* from = sums_.data() + std::size_t(plan().table[c]) * plan().fine;
      for (int entry = 0; entry < plan().fine; ++entry)
        result[c * bins + (plan().by_value() ? std::size_t(std::uint64_t(entry) * unsigned(bins) >> depth)
                                             : std::size_t(entry))] += from[entry];
    }
  }

  std::mutex mutex_;
  std::vector<std::uint32_t> sums_, results_;
  const std::uint32_t* latest_;
};

}  // namespace

Result<std::unique_ptr<Counting>> make_cpu(Plan plan) {
  return std::unique_ptr<Counting>(std::make_unique<CpuHistogram>(std::move(plan)));
}

}  // namespace cudavision::histogram
