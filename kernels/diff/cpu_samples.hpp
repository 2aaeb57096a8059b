// SPDX-License-Identifier: LGPL-2.1-or-later
// Arithmetic on the samples of strips on the CPU backend. A matrix has the samples of a channel set.
#pragma once

#include <array>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/core/format.hpp"
#include "kernels/diff/arithmetic.hpp"

namespace cudavision::diff {

/// Updates the background; `was` gets the background before the update. `begin`: the background begins with v.
void step_background(const cv::Mat& v, const cv::Mat& background, cv::Mat& was, bool begin, const Follow& follow);
/// Shows v − r.
void show_difference(const Show& show, const cv::Mat& v, const cv::Mat& r, cv::Mat& out, bool about_middle);
/// The luma of the sets of an RGB format. `already`: red holds the luma.
cv::Mat luma_of_sets(const FormatInfo& format, const cv::Mat* sets, bool already);
/// The greatest of some channels of each sample.
cv::Mat greatest(const cv::Mat& samples, const std::vector<int>& channels);
/// The samples of a set, repeated for each of the pixels that they cover.
cv::Mat at_pixels(const cv::Mat& samples, const ChannelSet& set, cv::Size pixels);
/// Clears the changed pixels that are in the shadow of the background. channels: of each set, that are compared.
void clear_shadows(const Shadow& shadow, const FormatInfo& format,
                   const std::array<std::vector<int>, max_sets>& channels, const cv::Mat (&v)[max_sets],
                   const cv::Mat (&background)[max_sets], cv::Mat& changed);

}  // namespace cudavision::diff
