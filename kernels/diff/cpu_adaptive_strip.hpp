// SPDX-License-Identifier: LGPL-2.1-or-later
// A strip of rows of Reference::adaptive on the CPU backend: all steps from the expected values to learning, row by
// row. Each step trails the previous one by the number of rows that it needs ahead, so that rows stay in the cache:
//
//   row y        expected values, evidence; sums of the evidence of 5 rows
//   row y − 2    level, above                                             needs evidence of 2 rows ahead
//   row y − 3    near above; unlike a shadow, beside pixels above         … above of 1, luma of 2
//   row y − 4    changed                                                  … unlike of 1
//   row y − 5    learn                                                    … changed of 1
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/diff/adaptive_learn.hpp"

namespace cudavision::diff::adaptive {

class Strip {
 public:
  static constexpr int reach = 5;  ///< rows beyond the strip that its pixels depend on

  /// For rows begin … end: copies the means and variances of the adjacent rows, which other strips will change.
  void prepare(const Job& job, int begin, int end);
  /// Updates the rows. light: light of the cells, if the job compensates. For the other parameters see
  /// CpuSteps::update.
  std::uint64_t update(const Job& job, const std::vector<float> (&light)[3], const Rates& rates,
                       const cv::Mat& unmasked, cv::Mat& changed);

 private:
  template <int channels, int N>
  friend struct StripSource;
  template <int channels, int N>
  friend struct StripWork;

  /// The last rows of 16-bit numbers, with zeros on both sides of a row and for rows outside the frame.
  class Rows {
   public:
    static constexpr int kept = 8, margin = 16;
    void resize(int width) {
      pitch_ = 2 * margin + (width + row_unit - 1) / row_unit * row_unit;
      memory_.assign(std::size_t(kept + 1) * pitch_, 0);
    }
    std::int16_t* at(int y) { return &memory_[std::size_t(y & (kept - 1)) * pitch_ + margin]; }
    const std::int16_t* zeros() const { return &memory_[std::size_t(kept) * pitch_ + margin]; }

   private:
    std::size_t pitch_ = 0;
    std::vector<std::int16_t> memory_;
  };

  int begin_ = 0, end_ = 0, width_ = 0;
  std::vector<float> beyond_;  ///< means and variances of rows beyond the strip
  Rows evidence_, luma_, level_, above_, near_above_, unlike_, changed_;
  std::vector<std::int16_t> evidence_sums_;  ///< sums of 5 rows
  std::vector<std::uint16_t> counts_[2];     ///< number of frame pixels among 3 and 5 pixels of a row
  std::vector<float> light_[Rows::kept];     ///< light of the pixels of the last rows, channel by channel
  std::vector<float> rises_;                 ///< light of the cells along a row, and its rise to the next cell
  std::vector<std::uint8_t> learning_;       ///< decisions for a row
  std::vector<std::uint8_t> usual_;          ///< Learning::usual for all pixels of a row
  bool any_above_[Rows::kept] = {}, any_changed_[Rows::kept] = {};
};

}  // namespace cudavision::diff::adaptive
