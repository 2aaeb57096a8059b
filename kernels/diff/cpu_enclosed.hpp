// SPDX-License-Identifier: LGPL-2.1-or-later
// Fills the inside of the outline of an object (enclosed.hpp) on the CPU backend.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

namespace cudavision::diff {

class Filler {
 public:
  /// Sets the enclosed pixels of a mask (0 or 255) to 255: all, or those where `unmasked` is not 0, unless it is empty.
  void fill(int reach, const cv::Mat& unmasked, cv::Mat& mask);

 private:
  /// Whether any pixel of the mask is set. Packs it.
  bool pack(const cv::Mat& mask);

  std::vector<std::uint32_t> bits_;  ///< rows of words, with a word of zeros on both sides
};

}  // namespace cudavision::diff
