// SPDX-License-Identifier: LGPL-2.1-or-later
// The stages of a frame on the CPU backend, for the plan in cpu.cpp. The stages of Reference::adaptive have their own
// headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <vector>

#include "kernels/cpu/filter.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

// ---- Comparing: cpu_compare.cpp -------------------------------------------------------------------------------------

/// Compares frames of 8-bit samples in one pass, if the compared samples are in planes of one channel, or of Cb and Cr.
class ByteRows {
 public:
  /// Whether the plan compares such frames with other frames, and needs the samples for nothing else.
  static bool fit(const Plan& plan);
  /// Only for plans that fit.
  explicit ByteRows(const Plan& plan);

  /// Compares rows begin … end of a frame with Frame::compared, and keeps them. `unmasked`: not 0 for counted pixels;
  /// empty: all are counted. Sets the pixels of `changed`; if a model has set them, clears those that are not counted.
  /// Returns the sum of the pixels' differences.
  std::uint64_t compare(const Frame& frame, int begin, int end, const cv::Mat& unmasked, cv::Mat& changed) const;

 private:
  struct Set {
    std::size_t plane;
    int samples, channels, shift_x, shift_y;  ///< samples: their number in a row
  };
  std::vector<Set> sets_;  ///< the first set has a sample for each pixel
  int width_, threshold_;
  bool has_model_;
};

// ---- Channel sets: cpu_sets.cpp -------------------------------------------------------------------------------------

/// Processes each channel set of a frame. Rows begin … end are a strip: few enough for the cache, and an even number
/// for subsampled chroma.
/// The bytes of pixels in a mask.
struct MaskBytes {
  std::uint8_t unchanged = 0, changed = 255;
};

class FrameSets {
 public:
  /// `plan` must outlive this object.
  explicit FrameSets(const Plan& plan);

  /// Not 0 for the pixels of the analysis that are counted. Empty: all are counted.
  const cv::Mat& unmasked() const { return unmasked_[0]; }
  /// Compares a strip: sets the pixels of `changed`, shows the differences if requested, and keeps the frame. Returns
  /// the sum of the pixels' differences.
  std::uint64_t compare(const Frame& frame, int begin, int end, cv::Mat& changed) const;
  /// The approximate time of compare() per pixel, in nanoseconds.
  double time_of_pixel() const { return bytes_ ? 0.5 : 5; }
  /// Shows `mask`, which has the size of the frame, in a strip as a mask or an overlay. Empty: mask_plane() has the
  /// mask already; writes the other sets.
  void show_changed(const Frame& frame, const cv::Mat& mask, int begin, int end) const;
  /// The samples of a shown mask, if they are the bytes of one plane, and all other samples are the same for each mask;
  /// otherwise an empty matrix.
  cv::Mat mask_plane(const Image& dst) const;
  MaskBytes mask_bytes() const;
  /// Shrinks a frame to the size of the analysis. Writes only compared sets.
  void shrink_frame(const Image& src, const Image& to) const;
  /// Shows a difference that has the size of the analysis in the frame.
  void enlarge_difference(const Image& from, const Frame& frame) const;
  /// Restarts the background with a picture of the analysis, and `first`, the first frame, unless it is nullptr.
  void restart(const Image& src, const Image* first);
  /// Fills rectangles with the colour of boxes.
  void fill(const Image& dst, const std::vector<Fill>& fills) const;
  void swap_background(FrameSets& other) { background_.swap(other.background_); }

 private:
  /// The role of channel `value` of a set's values.
  Role role(int index, int value) const;
  cv::Mat values(int index, const Image& image, const cv::Rect& rect, cpu::Scratch& scratch) const;

  const Plan& plan_;
  const FormatInfo& format_;
  std::array<cpu::SetAccess, max_sets> access_;
  std::array<bool, max_sets> compared_{};  ///< whether the set is compared
  std::array<std::vector<int>, max_sets> compared_channels_;
  std::array<cv::Scalar, max_sets> white_, black_, tint_;
  std::array<cv::Mat, max_sets> background_, unmasked_;  ///< unmasked_: empty if all pixels are counted
  std::optional<ByteRows> bytes_;
  int mask_set_ = -1;  ///< the set of mask_plane(); -1: none
};

// ---- Arithmetic on strips: cpu_samples.cpp. A matrix holds the samples of a channel set -----------------------------

/// Updates the background; `was` receives the background before the update. `begin`: the background begins with v.
void step_background(const cv::Mat& v, const cv::Mat& background, cv::Mat& was, bool begin, const Follow& follow);
/// Shows v − r.
void show_difference(const Show& show, const cv::Mat& v, const cv::Mat& r, cv::Mat& out, bool about_middle);
/// The luma of the sets of an RGB format. `already`: red already holds the luma.
cv::Mat luma_of_sets(const FormatInfo& format, const cv::Mat* sets, bool already);
/// The largest of some channels of each sample.
cv::Mat greatest(const cv::Mat& samples, const std::vector<int>& channels);
/// The samples of a set, repeated for each pixel that they cover.
cv::Mat at_pixels(const cv::Mat& samples, const ChannelSet& set, cv::Size pixels);
/// Clears changed pixels that are in the shadow of the background. channels: the compared channels of each set.
void clear_shadows(const Shadow& shadow, const FormatInfo& format,
                   const std::array<std::vector<int>, max_sets>& channels, const cv::Mat (&v)[max_sets],
                   const cv::Mat (&background)[max_sets], cv::Mat& changed);

// ---- Frames at a reduced size (Params::analysis_scale): cpu_scale.cpp -----------------------------------------------

/// The mean of each block of scale × scale samples of every channel, rounded half up. Blocks at the right and bottom
/// edges end with `values`, which have 8 or 16 bits. `small` has ceil(size / scale) samples.
void shrink(const cv::Mat& values, int scale, cv::Mat& small);
/// Repeats each sample of `small` in a block of scale × scale samples, and crops the result to `size`.
cv::Mat enlarged(const cv::Mat& small, int scale, cv::Size size);
/// Like enlarged(), for a mask of 0 and 255. Writes `bytes` to `all`, which has the size of the result.
void enlarge_mask(const cv::Mat& small, int scale, MaskBytes bytes, cv::Mat& all);

// ---- Masks of changed pixels, one byte for each pixel, 0 or 255: cpu_masks.cpp --------------------------------------

/// For each subsampled sample: whether any of its pixels is set. `mask` begins at a sample. No chroma is subsampled
/// only in height.
cv::Mat any_of(const cv::Mat& mask, int shift_x, int shift_y);
/// Repeats each value for `channels` channels.
cv::Mat repeated(const cv::Mat& one, int channels);
/// Sets each byte to one of two numbers. cv::Mat::setTo() with a mask takes many times as long.
void show_mask(const cv::Mat& changed, std::uint8_t unchanged_sample, std::uint8_t changed_sample, cv::Mat& shown);
/// Mixes the samples of changed pixels half and half with a colour, rounded half up.
void tint(const cv::Mat& changed, const cv::Scalar& colour, cv::Mat& shown);
/// Counts the changed pixels of the frame in the cells of a grid. Each mask pixel represents scale × scale pixels of
/// the frame; pixels beyond the edge of the frame are not counted. The size of cells is a multiple of `scale`.
void count(const cv::Mat& mask, int scale, const CellGrid& grid, std::vector<std::uint32_t>& cells);

// ---- The inside of outlines (enclosed.hpp): cpu_enclosed.cpp --------------------------------------------------------

class Filler {
 public:
  /// Sets the enclosed pixels of a mask (0 or 255) to 255: all, or only those where a non-empty `unmasked` is not 0.
  void fill(int reach, const cv::Mat& unmasked, cv::Mat& mask);

 private:
  /// Packs the mask to bits. Returns whether any pixel is set.
  bool pack(const cv::Mat& mask);

  std::vector<std::uint32_t> bits_;  ///< rows of words, with a word of zeros on both sides
};

// ---- The looks of cells: cpu_looks.cpp ------------------------------------------------------------------------------

/// Sets the looks of cells that have changed pixels, as far as LooksJob asks for them; other looks stay unchanged.
/// `bytes`: stored words are bytes. `mask`: at the size of the analysis, not 0 where a pixel changed. `changed`: for
/// each cell, 0 if it has no changed pixels.
void measure_looks(const LooksJob& job, bool bytes, const cv::Mat& mask, const Cells& cells,
                   const std::vector<std::uint32_t>& changed, std::vector<CellLooks>& looks);

// ---- Mixtures of Gaussians: cpu_mog2.cpp ----------------------------------------------------------------------------

namespace mog2 {
/// Bytes of the state of update_rows() for 1 or 3 channels. The state must be zeroed at first.
std::size_t row_state_bytes(int width, int height, int channels);
/// Does the work of pixel() for the rows begin … end, with the same bits. The state has another layout (Job::weight,
/// variance, mean and count are not used). `bytes`: whether samples have 8 bits. Sets the pixels of `changed`, which
/// has the size of the frame, to 255 for foreground and to 0 elsewhere.
void update_rows(const Job& job, const Rates& rates, bool bytes, int channels, void* state, int begin, int end,
                 cv::Mat& changed);
}  // namespace mog2

}  // namespace cudavision::diff
