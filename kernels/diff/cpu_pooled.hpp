// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled on the CPU backend.
#pragma once

#include <opencv2/core.hpp>

#include "kernels/diff/pooled.hpp"

namespace cudavision::diff::pooled {

/// Updates the background of a frame with 8-bit samples or, if not `bytes`, 16-bit ones. `began`: the number of the frame with which
/// it began. Sets the changed pixels to 255.
void update(const Job& job, bool bytes, std::uint64_t began, cv::Mat& changed);
/// Lets the means begin with the frame of the last update.
void begin_anew(const Job& job, bool bytes);

}  // namespace cudavision::diff::pooled
