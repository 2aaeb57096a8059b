// SPDX-License-Identifier: LGPL-2.1-or-later
// The outline of the mask (adaptive_outline.hpp) on the CPU backend.
#pragma once

#include <opencv2/core.hpp>

#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/cpu_stages.hpp"

namespace cudavision::diff::adaptive {

/// Refines `whole`, which holds the blocks of `mask` at the size of the frame, as the bytes `shown`. Blocks that are
/// not counted stay unchanged: those where `unmasked` is 0; an empty `unmasked` counts all. `bytes`: whether samples
/// have 8 bits.
void refine_outline(const Job& job, bool bytes, const cv::Mat& mask, const cv::Mat& unmasked, MaskBytes shown,
                    cv::Mat& whole);

}  // namespace cudavision::diff::adaptive
