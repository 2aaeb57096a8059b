// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames at a part of their size (Params::analysis_scale), on the CPU backend.
#pragma once

#include <opencv2/core.hpp>

namespace cudavision::diff {

/// The mean of each scale × scale samples of every channel, rounded half up. Blocks at the right and bottom edge end
/// with `values`, which have 8 or 16 bits. `small` has ceil(size / scale) samples.
void shrink(const cv::Mat& values, int scale, cv::Mat& small);
/// Each sample of `small` scale × scale times, cut off at `size`.
cv::Mat enlarged(const cv::Mat& small, int scale, cv::Size size);

}  // namespace cudavision::diff
