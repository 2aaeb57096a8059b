// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled on the CPU backend.
#pragma once

#include <opencv2/core.hpp>
#include <vector>

#include "kernels/diff/pooled_learn.hpp"

namespace cudavision::diff::pooled {

/// The steps of pooled.hpp, and the pictures between them.
class CpuSteps {
 public:
  /// Updates the background of a frame with 8-bit samples or, if not `bytes`, 16-bit ones. `began`: the number of the frame with which
  /// it began. Sets the changed pixels to 255.
  void update(const Job& job, bool bytes, std::uint64_t began, cv::Mat& changed);

 private:
  void estimate_light(const Job& job);
  template <int channels>
  void expect_all(const Job& job);
  template <int channels>
  Expected expected_at(int x, int y) const;
  template <int channels>
  void find_changes(const Job& job, const Rates& rates, cv::Mat& changed);
  template <int channels>
  void learn_all(const Job& job, const Rates& rates) const;

  std::vector<float> smooth_[3];                      // light of the cells
  cv::Mat gain_, expected_[3];                        // float
  cv::Mat evidence_, luma_, expected_luma_, unlike_;  // int
  cv::Mat level_, above_;                             // bytes: a Level, and whether it is above or strong
  cv::Mat near_above_, near_changed_;                 // bytes: whether the pixel or one beside it is
};

/// The sum of difference() of the pixels that are counted: all, or those where `counted` is not 0.
std::uint64_t sum_of_differences(const Job& job, const cv::Mat& counted);
/// Lets the means begin with the frame of the last update.
void begin_anew(const Job& job);

}  // namespace cudavision::diff::pooled
