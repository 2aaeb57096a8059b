// SPDX-License-Identifier: LGPL-2.1-or-later
// Masks of changed pixels on the CPU backend: one byte for each pixel, 0 or 255.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/diff/motion.hpp"

namespace cudavision::diff {

/// For each subsampled sample: whether any of its pixels is set. `mask` begins at a sample.
/// Chroma is never subsampled in height only.
cv::Mat any_of(const cv::Mat& mask, int shift_x, int shift_y);
/// Repeats the values for each of `channels` channels.
cv::Mat repeated(const cv::Mat& one, int channels);
/// Sets each byte to one of two numbers. cv::Mat::setTo() with a mask takes many times as long.
void show_mask(const cv::Mat& changed, std::uint8_t unchanged_sample, std::uint8_t changed_sample, cv::Mat& shown);
/// Mixes the samples of changed pixels half and half with a colour, rounded half up.
void tint(const cv::Mat& changed, const cv::Scalar& colour, cv::Mat& shown);
/// Counts the changed pixels of the frame in the cells of a grid. Each pixel of the mask stands for scale × scale
/// pixels of the frame; pixels beyond the edge of the frame do not count. The size of cells is a multiple of `scale`.
void count(const cv::Mat& mask, int scale, const CellGrid& grid, std::vector<std::uint32_t>& cells);

}  // namespace cudavision::diff
