// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <functional>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"

namespace cudavision::cpu {

/// Memory of one thread, kept between frames.
struct Scratch {
  cv::Mat raw, values, floats, result, sums, second_sums;
};

/// A matrix of this size and type in the memory of `store`, which grows if needed, so that strips and sets of different
/// sizes reuse one allocation.
cv::Mat sized(cv::Mat& store, cv::Size size, int type);

inline cv::Rect cv_rect(const Rect& rect) { return {rect.x, rect.y, rect.width, rect.height}; }

/// A view of the whole grid of a channel set: 8- or 16-bit unsigned, `set.channels` channels. In packed 4:2:2 it
/// includes the channels of Role::other, which the caller must not write.
cv::Mat set_mat(const Image& image, const ChannelSet& set);

/// Sets `luma` to the luma of red, green and blue, as luma_of() computes it. The matrices have one channel of 8 or 16
/// bits.
void make_luma(const cv::Mat& red, const cv::Mat& green, const cv::Mat& blue, cv::Mat& luma);

/// Converts a channel set's stored words to values and back. Values are samples of 0 … 2^depth − 1 without the channels
/// of Role::other. Nothing is copied if the stored words are the values.
class SetAccess {
 public:
  SetAccess() = default;
  SetAccess(const FormatInfo& format, const ChannelSet& set, Border border, const BorderValue& border_value,
            bool filter_alpha);

  /// Whether stored words are values. Then a filter may write directly to the planes. If holds_values(), it may also
  /// read directly from them.
  bool plain() const { return shift_ == 0 && channels() == stored_channels_; }
  /// Whether all stored words in a part of the frame are values: none exceeds the range of the depth.
  bool holds_values(const cv::Mat& stored) const;
  int channels() const { return int(load_.size() / 2); }
  /// The channel of the set that holds channel `value` of the values.
  int stored_channel(int value) const { return load_[2 * std::size_t(value)]; }
  int type() const { return CV_MAKETYPE(depth_, channels()); }
  const cv::Scalar& border_value() const { return border_value_; }

  /// The values of `window`, which may reach beyond the edges: a view of `frame`, or a copy in `scratch`. A stored
  /// value above the range of the depth counts as the largest sample.
  cv::Mat read(const cv::Mat& frame, const Rect& window, Scratch& scratch) const;
  /// The matrix for the results of a filter in a rectangle: `out` itself, or memory in `scratch`, which write() stores
  /// to `out`.
  cv::Mat target(const cv::Mat& out, Scratch& scratch) const;
  /// Stores the values, unless they already are in `out`. Then copies from `in` the channels that are not filtered.
  void write(const cv::Mat& values, const cv::Mat& in, cv::Mat out) const;
  /// Copies the stored words of the set's own channels.
  void copy(const cv::Mat& in, cv::Mat out) const;

 private:
  cv::Mat extrapolate(const cv::Mat& frame, const Rect& window, cv::Mat& store) const;

  int depth_ = CV_8U, stored_channels_ = 1, shift_ = 0;
  int max_value_ = 255;
  bool can_exceed_ = false;         ///< see can_exceed_depth
  int unused_end_ = 0;              ///< bytes of Role::other at the end of a pixel
  std::vector<int> load_, store_;   ///< pairs of channels (from, to): stored to value, and value to stored
  std::vector<int> copied_, kept_;  ///< pairs (input, output): all channels of the set, and those that are not filtered
  Border border_ = Border::replicate;
  cv::Scalar border_value_;  ///< as values
  cv::Mat border_pixel_;     ///< as stored, 1×1
};

/// The base of CPU filters: copies, iterates over channel sets, and splits work into strips for several threads.
class CpuFilter : public Filter {
 public:
  CpuFilter(const Geometry& geometry, Border border, const BorderValue& border_value, bool filter_alpha);

 protected:
  Status filter(const Image& src, const Image& dst, const SetRects& rects, Queue queue) final;
  Status copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) override;
  Status copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline,
                      Coverage coverage, Queue queue) override;

  /// Computes `rect` of channel set `index`. `frame` and `out` are the whole planes of the set; `rect` is not empty.
  virtual void filter_set(int index, const cv::Mat& frame, cv::Mat& out, const Rect& rect) = 0;

  const SetAccess& access(int index) const { return access_[std::size_t(index)]; }

  /// Cuts a rectangle of a picture with `channels` channels into strips of rows that fit in the cache, and calls `work`
  /// for each strip on OpenCV's threads (threads.hpp). `overlap`: rows that a strip reads beyond its own.
  /// `nanoseconds`: the approximate time per sample.
  void for_strips(const Rect& rect, int channels, int overlap, double nanoseconds,
                  const std::function<void(const Rect&, Scratch&)>& work);

 private:
  std::array<SetAccess, max_sets> access_;
  std::vector<Scratch> scratch_;
};

}  // namespace cudavision::cpu
