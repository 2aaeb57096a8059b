// SPDX-License-Identifier: LGPL-2.1-or-later
// The looks of the changed pixels of a cell: their positions, luma and chroma. The tracker computes tight boxes
// from them, and uses them to tell objects apart.
//
// The changed pixels are the pixels of the final mask: pixels of the analysis that are counted, changed, and remain
// after the opening. A pixel of the analysis belongs to every cell in which it covers pixels of the frame. It belongs
// to more than one if the size of cells is not a multiple of the scale of the analysis.
//
// A changed pixel has the looks of the pixel of the frame in its middle, with any reference and at any scale of the
// analysis: the pixel at (x·s + s/2, y·s + s/2), with s/2 rounded down, or the nearest pixel inside the frame. Its
// samples are cut to their 8 highest bits:
//   YUV   the luma sample, and the chroma samples that cover the pixel, relative to 128
//   RGB   luma Y = luma_of(R, G, B) with the weights of BT.601, Cb = 144·(B − Y) ÷ 256, Cr = 183·(R − Y) ÷ 256, both
//         rounded down
//   gray  the sample, and chroma 0
// All sums are integer sums, and bits are combined with `or`: the order of the pixels does not matter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/luma.hpp"
#include "kernels/core/sample.hpp"
#include "kernels/diff/structure.hpp"

namespace cudavision::diff {

/// The looks of a pixel, in 8-bit steps.
struct PixelLooks {
  int luma, cb, cr;  ///< 0–255; −128–127, 0: neutral
};

/// Whether a cell moves; see RegionRules::cell_threshold.
CUDAVISION_HOST_DEVICE inline bool cell_moves(std::uint32_t changed, std::uint32_t unmasked, double threshold) {
  return changed > 0 && double(changed) >= threshold * double(unmasked);
}

/// The first and the last pixel of the analysis, across or down, that covers pixels of a cell.
struct CellSpan {
  int first, last;
};
/// `cell`: column or row of the cell; `size`: width or height of the frame, in pixels.
CUDAVISION_HOST_DEVICE inline CellSpan span_of_cell(int cell, int cell_size, int size, int log2_scale) {
  const int end = (cell + 1) * cell_size < size ? (cell + 1) * cell_size : size;
  return {(cell * cell_size) >> log2_scale, (end - 1) >> log2_scale};
}

/// The number of columns of a cell for each bit of CellLooks::columns, as its logarithm: 1, or the power of two with
/// which the columns fit in 64 bits.
CUDAVISION_HOST_DEVICE inline int log2_columns(CellSpan across) {
  int log2 = 0;
  while ((across.last - across.first) >> log2 >= 64) ++log2;
  return log2;
}

/// The changed pixels of a cell, at most 1024 × 1024. All 0: none. A plain struct, because kernels keep it in shared
/// and page-locked memory.
struct CellLooks {
  std::uint16_t left, top, right, bottom;  ///< box around the changed pixels (inclusive), in pixels of the analysis
  std::uint32_t pixels;                    ///< number of changed pixels
  std::uint32_t luma;                      ///< sums
  std::int32_t cb, cr;
  std::uint64_t luma_squares;
  /// The columns that have changed pixels: bit (x − first column of the cell) >> log2_columns().
  std::uint64_t columns;
  Structure structure{};  ///< of all pixels of the cell, changed or not; with Reference::adaptive

  /// Adds a pixel of a cell that covers the columns `across`.
  CUDAVISION_HOST_DEVICE void add(int x, int y, const PixelLooks& looks, CellSpan across) {
    add({std::uint16_t(x),
         std::uint16_t(y),
         std::uint16_t(x),
         std::uint16_t(y),
         1,
         std::uint32_t(looks.luma),
         looks.cb,
         looks.cr,
         std::uint64_t(looks.luma * looks.luma),
         std::uint64_t(1) << ((x - across.first) >> log2_columns(across)),
         {}});
  }
  CUDAVISION_HOST_DEVICE void add(const CellLooks& other) {
    if (other.pixels == 0) return;
    if (pixels == 0) {
      *this = other;
      return;
    }
    left = other.left < left ? other.left : left;
    top = other.top < top ? other.top : top;
    right = other.right > right ? other.right : right;
    bottom = other.bottom > bottom ? other.bottom : bottom;
    pixels += other.pixels;
    luma += other.luma;
    cb += other.cb;
    cr += other.cr;
    luma_squares += other.luma_squares;
    columns |= other.columns;
    structure.add(other.structure);
  }
};
static_assert(sizeof(CellLooks) == 56, "kernels store it as words of 8 bytes");

/// The frame whose looks are measured.
struct LooksJob {
  ChannelView channels[3];                         ///< luma, Cb, Cr; red, green, blue; or luma
  int count = 3;                                   ///< number of channels, 1 or 3
  bool rgb = false;                                ///< whether the channels are red, green and blue
  int width = 0, height = 0;                       ///< size of the frame, in pixels
  int log2_scale = 0;                              ///< log2 of the scale of the analysis
  int shift = 0, extra_bits = 0, max_value = 255;  ///< properties of the format; extra_bits: depth − 8
  StructureJob structure;
  bool only_extents = false;  ///< measure only extents and structure
  /// Only the extent is measured for cells that do not move (see cell_moves(); all pixels count).
  double cell_threshold = 0;

  /// Whether more than the extent of a cell is measured. changed, size: numbers of its changed pixels and of all its
  /// pixels in the frame.
  CUDAVISION_HOST_DEVICE bool measures(std::uint32_t changed, std::uint32_t size) const {
    return (!only_extents || structure.frame) && cell_moves(changed, size, cell_threshold);
  }
};

/// The looks of pixel (x, y) of the analysis. T: the type of stored words.
template <typename T>
CUDAVISION_HOST_DEVICE PixelLooks looks_of(const LooksJob& job, int x, int y) {
  const int half = (1 << job.log2_scale) >> 1, middle_x = (x << job.log2_scale) + half,
            middle_y = (y << job.log2_scale) + half;
  const int at_x = middle_x < job.width ? middle_x : job.width - 1,
            at_y = middle_y < job.height ? middle_y : job.height - 1;
  const auto sample = [&](int c) {
    return sample_of(job.channels[c].template word<const T>(at_x, at_y), job.shift, job.max_value) >> job.extra_bits;
  };
  if (job.count == 1) return {sample(0), 0, 0};
  if (!job.rgb) return {sample(0), sample(1) - 128, sample(2) - 128};
  const int red = sample(0), green = sample(1), blue = sample(2), luma = luma_of(red, green, blue);
  return {luma, (144 * (blue - luma)) >> 8, (183 * (red - luma)) >> 8};
}

}  // namespace cudavision::diff
