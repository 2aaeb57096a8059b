// SPDX-License-Identifier: LGPL-2.1-or-later
// Separable 3×3 kernels of integers whose sums fit in 16 bits (Sobel, Scharr, Prewitt), for bytes. Each instruction
// processes twice as many samples as OpenCV's sums, and no second pass over the sums is needed.
#pragma once

#include <opencv2/core.hpp>

#include "kernels/convolve/plan.hpp"

namespace cudavision::convolve {

/// Whether small_kernel() computes this plan: all intermediate values are integers with absolute values below 2^15.
bool is_small(const Plan& plan);

/// Computes `result` (8 bits) from `window`, which has two more rows and columns. Plan describes the arithmetic.
void small_kernel(const Plan& plan, const cv::Mat& window, double before, double after, bool absolute, cv::Mat& result);

}  // namespace cudavision::convolve
