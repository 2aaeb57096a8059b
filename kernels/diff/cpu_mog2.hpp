// SPDX-License-Identifier: LGPL-2.1-or-later
// The mixtures of Gaussians on the CPU backend.
#pragma once

#include <cstddef>
#include <opencv2/core.hpp>

#include "kernels/diff/mog2.hpp"

namespace cudavision::diff::mog2 {

/// Bytes of the state of update_rows() for 1 or 3 channels; zeros at first.
std::size_t row_state_bytes(int width, int height, int channels);
/// Does the work of pixel() for the rows begin … end, with the same bits, but the state has its own layout
/// (Job::weight, variance, mean and count are not used). `bytes`: whether samples have 8 bits. Sets the pixels of
/// `changed`, which has the size of the frame, to 255 for foreground and to 0 elsewhere.
void update_rows(const Job& job, const Rates& rates, bool bytes, int channels, void* state, int begin, int end,
                 cv::Mat& changed);

}  // namespace cudavision::diff::mog2
