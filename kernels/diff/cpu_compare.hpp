// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares planes of bytes on the CPU backend.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

/// Frames of 8 bits whose compared samples lie in planes of one channel, or of Cb and Cr, in one pass.
class ByteRows {
 public:
  /// Whether the plan compares such frames with a frame, and uses the samples for nothing else.
  static bool fit(const Plan& plan);
  /// For plans that fit.
  explicit ByteRows(const Plan& plan);

  /// Compares rows begin … end of a frame that is compared, and keeps them. `unmasked`: not 0 for counted pixels, or
  /// empty for all. Sets the pixels of `changed`; if a model has set them, clears those that are not counted. Returns
  /// the sum of the pixels' differences.
  std::uint64_t compare(const Frame& frame, int begin, int end, const cv::Mat& unmasked, cv::Mat& changed) const;

 private:
  struct Set {
    std::size_t plane;
    int samples, channels, shift_x, shift_y;  ///< samples of a row
  };
  std::vector<Set> sets_;  ///< the first set has a sample for each pixel
  int width_, threshold_;
  bool has_model_;
};

}  // namespace cudavision::diff
